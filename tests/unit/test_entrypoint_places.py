"""entrypoint.sh, which cannot ask the ecosystems, knows every place that the sandbox opens."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems import ECOSYSTEMS
from releasekit.fields import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.host.sandbox import Cache

SCRIPT = Path(__file__).parents[2].joinpath("entrypoint.sh").read_text(encoding="utf-8")
CACHES = [cache for each in ECOSYSTEMS.values() for cache in each.caches]
CASES = [
    (cache, moved)
    for cache in CACHES
    for moved in ("", "XDG_CACHE_HOME", "XDG_DATA_HOME", cache.variable)
]


def open_places(cwd: Path, environment: Mapping[str, str]) -> set[Path]:
    functions, _, start = SCRIPT.partition("\nhere=")
    assert start
    done = subprocess.run(
        ["bash", "-c", functions + '\nfind_open_places\nprintf "%s\\n" "${open_places[@]}"'],
        cwd=cwd,
        env={"PATH": os.defpath, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {Path(line) for line in done.stdout.splitlines()}


@pytest.mark.parametrize(("cache", "moved"), CASES)
def test_each_cache_is_an_open_place(cache: Cache, moved: str, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path / "home")}
    if moved and moved == cache.variable:
        options = ("-Dx ", cache.option, " -Dy") if cache.option else ("", "", "")
        environment[cache.variable] = "{}{}{}{}".format(
            *options[:2], tmp_path / "moved", options[2]
        )
    elif moved:
        environment[moved] = str(tmp_path / "xdg")
    # What every tool that is there would make; `sh` stands for the tool.
    made = replace(cache, tool="sh").places({**environment, "PATH": os.defpath})
    directories = [place for place, is_directory in made.items() if is_directory]
    for place in directories:
        if place.is_relative_to(tmp_path):
            place.mkdir(parents=True)
    (tmp_path / "cwd").mkdir()
    found = open_places(tmp_path / "cwd", environment) - {Path("/tmp")}
    for place in directories:
        assert not place.exists() or {place, *place.parents} & found
