"""Builds that put links into the state directory while a run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.__main__ import main
from workspaces import git, uv_workspace

if TYPE_CHECKING:
    from pathlib import Path

HOOK = """
import os, pathlib
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

class Hook(BuildHookInterface):
    def initialize(self, version, build_data):
        place = pathlib.Path({place!r})
        if place.is_symlink():
            return
        if os.path.lexists(place):
            place.rename({aside!r})
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to({target!r})
"""
# Where a link of a build of `demo-a` lies, and what it leads to in a directory of others.
PLACES = {
    "dist": "dist",
    "dist/pypi": "dist/pypi",
    "dist/pypi/demo-b": "dist/pypi/demo-b",
    "dist/pypi/demo-b/1.0.0": "dist/pypi/demo-b/1.0.0",
    "dist/pypi/demo-b/.1.0.0.building": "dist/pypi/demo-b/1.0.0",
    "backup": "backup",
    "journal.jsonl": "file",
    "results.json": "file",
    "lock.pypi": "file",
    "logs": "logs",
    "work": "dist",
    ".gitignore": "file",
}


@pytest.mark.parametrize("place", PLACES)
def test_no_link_that_a_build_plants_is_followed(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """R52: nothing at its end is read, written or deleted, and no traceback."""
    workspace = uv_workspace(tmp_path / "w", {"demo-a": (), "demo-b": ("demo-a",)})
    state, elsewhere = workspace / ".releasekit", tmp_path / "elsewhere"
    for directory in ("dist/pypi/demo-b/1.0.0", "backup/pypi", "logs"):
        (elsewhere / directory).mkdir(parents=True)
        (elsewhere / directory / "precious").write_bytes(b"precious")
    (elsewhere / "file").write_bytes(b"precious")
    before = tree(elsewhere)
    member = workspace / "packages" / "demo-a"
    (member / "hatch_build.py").write_text(
        HOOK.format(
            place=str(state / place),
            aside=str(tmp_path / "aside"),
            target=str(elsewhere / PLACES[place]),
        )
    )
    with (member / "pyproject.toml").open("a") as file:
        file.write('\n[tool.hatch.build.hooks.custom]\npath = "hatch_build.py"\n')
    git(workspace, "add", "--all")
    git(workspace, "commit", "--quiet", "--message", "Plant")
    arguments = [str(workspace), f"--registry=dir:{tmp_path / 'r'}", "--build-concurrency=1"]
    code = main(["publish", *arguments])
    said = capsys.readouterr()
    assert tree(elsewhere) == before, said
    assert code in {0, 1, 2, 3}
    assert "Traceback" not in said.err
    assert git(workspace, "status", "--porcelain", "--untracked-files=no") == ""
    if (state / place).is_symlink():
        assert main(["publish", *arguments]) == 3
        assert tree(elsewhere) == before


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(root.rglob("*"))
    }
