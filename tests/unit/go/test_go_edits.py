from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

import fakes
from releasekit.ecosystems.go import GoOptions
from releasekit.ecosystems.go.target import Go, GoTarget
from releasekit.errors import PlanError, told_of
from releasekit.host.process import Processes
from releasekit.problems import Problem
from releasekit.text.bounds import parse_toml
from versions.writing import write_versions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.model import Package, Published

# «what stands there|what is going to»
MARK = re.compile(r"«([^|»]*)\|([^»]*)»")


async def absent(_package: Package) -> Published | None:
    return None


def find(root: Path) -> GoTarget:
    table = parse_toml((root / "releasekit.toml").read_text())["go"]
    services = fakes.services(fakes.config(root), Processes(environment={}))
    go = Go(GoOptions.from_table(table), services, absent, edits=True)
    return GoTarget(asyncio.run(go.discover(root.resolve())), fakes.FakeRegistry())


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(MARK.sub(r"\1", text).encode())
    return root.resolve()


MODULES = {
    "go.mod": "module a.b/m\n",
    "one/go.mod": "module a.b/m/one\nrequire a.b/m v1.2.0\n",
    "two/go.mod": "module a.b/m/two/v2\n",
}


@pytest.mark.parametrize(
    ("files", "versions"),
    [
        (
            {
                "releasekit.toml": '[go]\nversion-file = "VERSION"\n',
                "VERSION": "\n  «1.2.0|1.3.0»\r\n",
                "two/VERSION": "v«2.0.9|2.1.0»",
            },
            {"a.b/m": "1.3.0", "a.b/m/one": "1.3.0", "a.b/m/two/v2": "2.1.0"},
        ),
        (
            {
                "releasekit.toml": '[go]\nversion-file = "version.go"\n[go.versions]\ntwo="2.0.0"',
                "version.go": '// 1.2.0\nconst Version = "v«1.2.0|1.3.0»"\nvar version = "1.2.0"\n',
            },
            {"a.b/m": "1.3.0", "a.b/m/one": "1.3.0"},
        ),
        (
            {
                "releasekit.toml": "# 1.2.0\r\n[go]\r\nversion\t= '«1.2.0|1.3.0»'  # of all\r\n"
                '[go.versions]\r\n"a.b/m/two/v2"="v«2.0.0|2.0.1»"\r\n"one" = "1.2.0"',
            },
            {"a.b/m": "1.3.0", "a.b/m/two/v2": "2.0.1"},
        ),
    ],
)
def test_a_version_is_written_where_it_stands(
    tmp_path: Path, files: Mapping[str, str], versions: Mapping[str, str]
) -> None:
    files = {**MODULES, **files}
    root = write(tmp_path, files)
    changed = write_versions(root, find(root), versions)
    after = {name: MARK.sub(r"\2", text).encode() for name, text in files.items()}
    assert {name: (root / name).read_bytes() for name in files} == after
    assert changed == {name for name, text in files.items() if MARK.search(text)}
    target = find(root)
    found = {each.id.name: each.version.removeprefix("v") for each in target.workspace.packages}
    assert found == {**found, **versions}
    assert write_versions(root, target, versions) == set()


@pytest.mark.parametrize(
    ("config", "versions", "message"),
    [
        (
            'version-file = "VERSION"',
            {"a.b/m": "2.0.0", "a.b/m/one": "1.3.0"},
            "go.mod: v2.0.0 does not belong to a.b/m; write a version of v0 or v1, or `module a",
        ),
        (
            'version-file = "VERSION"',
            {"a.b/m": "1.3.0"},
            "one/go.mod: keeps v1.2.0, and VERSION is going to be 1.3.0",
        ),
        (
            'versions = { "." = "1.2\\u002e0", one = "1.2.0" }',
            {"a.b/m": "1.3.0"},
            "releasekit.toml: go.versions.. is not spelled plainly",
        ),
    ],
)
def test_what_cannot_be_written_is_named_and_nothing_is(
    tmp_path: Path, config: str, versions: Mapping[str, str], message: str
) -> None:
    files = {**MODULES, "VERSION": "1.2.0", "releasekit.toml": f"[go]\n{config}\nprivate = ['two']"}
    root = write(tmp_path, files)
    with pytest.raises(PlanError) as raised:
        write_versions(root, find(root), versions)
    (error,) = told_of(raised.value)
    assert str(error).startswith(message)
    assert error.problem is Problem.CANNOT_WRITE
