"""Builds that put links into the state directory while a run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from effort import SEARCHING
from hostile.builds import TOOLS
from hostile.planted import project
from releasekit.__main__ import main
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path

PLANT = """
def build_sdist(directory, *_):
    place = Path({place!r})
    if not place.is_symlink():
        if os.path.lexists(place):
            place.rename({aside!r})
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to({target!r})
    return sdist(directory)
"""
# Where a link of a build of `core` lies, and what it leads to in a directory of others.
PLACES = {
    "dist": "dist",
    "dist/pypi/app/1.0.0": "dist/pypi/app/1.0.0",
    "dist/pypi/app/.1.0.0.building": "dist/pypi/app/1.0.0",
    "backup": "backup",
    "journal.jsonl": "file",
    "results.json": "file",
    "lock.pypi": "file",
    "logs": "logs",
    "work": "dist",
    ".gitignore": "file",
}
if SEARCHING:  # a directory in between is opened as the first one is
    PLACES |= {"dist/pypi": "dist/pypi", "dist/pypi/app": "dist/pypi/app"}


@pytest.mark.parametrize("place", PLACES)
def test_no_link_that_a_build_plants_is_followed(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """R52: nothing at its end is read, written or deleted, and no traceback."""
    state, elsewhere = tmp_path / "w" / ".releasekit", tmp_path / "elsewhere"
    for directory in ("dist/pypi/app/1.0.0", "backup/pypi", "logs"):
        (elsewhere / directory).mkdir(parents=True)
        (elsewhere / directory / "precious").write_bytes(b"precious")
    (elsewhere / "file").write_bytes(b"precious")
    before = tree(elsewhere)
    plant = PLANT.format(
        place=str(state / place),
        aside=str(tmp_path / "aside"),
        target=str(elsewhere / PLACES[place]),
    )
    workspace = two_packages(tmp_path / "w", plant)
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


def two_packages(root: Path, code: str = "") -> Path:
    """`core` and `app`, which needs it: built by a backend beside them, to which `core` adds."""
    root.mkdir()
    (root / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["packages/*"]\n')
    for name, needs, more in (("core", "[]", code), ("app", '["core"]', "")):
        directory = root / "packages" / name
        directory.mkdir(parents=True)
        (directory / "pyproject.toml").write_text(project(name, needs=needs))
        (directory / "backend.py").write_text(TOOLS.replace("evil.py", "backend.py") + more)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    return root


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(root.rglob("*"))
    }
