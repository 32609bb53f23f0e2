"""R52: `plan-file` and `results-file` replace nothing but what a run has written, whatever stands
at the path they name, and say so before anything is published.
"""

from __future__ import annotations

import errno
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from releasekit.__main__ import main
from releasekit.host import output_path
from releasekit.report.page import BEGINNING
from workspaces import uv_workspace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = uv_workspace(tmp_path / "w", {"demo-a": ()})
    (root / "empty.py").touch()
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


def _link(path: Path) -> Path:
    (path / "target.json").touch()
    (path / "link.json").symlink_to("target.json")
    return path / "link.json"


def _below_a_link(path: Path) -> Path:
    (path / "elsewhere").symlink_to(path.parent)
    return path / "elsewhere" / "new.json"


def _fifo(path: Path) -> Path:
    os.mkfifo(path / "fifo")
    return path / "fifo"


WAYS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a manifest": (lambda root: root / "pyproject.toml", "neither a plan nor results"),
    "a new manifest": (lambda root: root / "package.json", "files of their own"),
    "the configuration": (lambda root: root / "releasekit.toml", "files of their own"),
    "a hook": (lambda root: root / ".git" / "hooks" / "pre-push", "files of their own"),
    "an empty source": (lambda root: root / "empty.py", "a file that git tracks"),
    "the journal": (lambda root: root / ".releasekit" / "journal.jsonl", "state directory"),
    "built files": (lambda root: root / ".releasekit" / "dist" / "a.json", "state directory"),
    "a directory": (lambda root: root, "is a directory"),
    "a fifo": (_fifo, "is not a regular file"),
    "a link": (_link, "is a symbolic link"),
    "below a link": (_below_a_link, "is a symbolic link in the workspace"),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_there_stays_there(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    """R52, R33: one line with the input and the path, exit code 2, nothing published."""
    make, reason = WAYS[way]
    path = make(workspace)
    before = _tree(tmp_path)
    registry = f"--registry=dir:{tmp_path / 'r'}"
    for mode, *more in (["plan", registry], ["publish", registry], ["report"]):
        flag = "plan-file" if mode == "plan" else "results-file"
        assert main([mode, str(workspace), f"--{flag}={path}", *more]) == 2
        said = capsys.readouterr().err
        assert reason in said
        assert flag in said
        assert "Traceback" not in said
        assert len([line for line in said.splitlines() if line.startswith("error: ")]) == 1
        assert _tree(tmp_path) == before


def _tree(top: Path) -> dict[str, object]:
    return {
        str(path): path.read_bytes() if path.is_file() else path.lstat().st_mode
        for path in sorted(top.rglob("*"))
        if ".git" not in path.parts
    }


def test_a_page_that_is_among_the_sources_is_not_replaced(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R52: said before anything is published, as of results."""
    (workspace / "report.html").write_text(BEGINNING)
    subprocess.run(["git", "add", "report.html"], cwd=workspace, check=True)
    argv = ["publish", str(workspace), f"--registry=dir:{tmp_path / 'r'}"]
    assert main([*argv, f"--results-file={workspace / 'mine.json'}"]) == 2
    assert "report.html is a file that git tracks" in capsys.readouterr().err
    assert (workspace / "report.html").read_text() == BEGINNING
    assert not (tmp_path / "r").exists()


def test_a_page_that_may_not_be_read_stays_and_is_told_of(
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """R33, R52: a step that ran as root, for instance, has left it; it costs no run."""
    page = tmp_path / "report.html"
    page.write_text(BEGINNING)

    def denied(path: Path, size: int) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    argv = ["publish", str(workspace), f"--registry=dir:{tmp_path / 'r'}"]
    with monkeypatch.context() as patched:
        patched.setattr(output_path, "read_head", denied)
        assert main([*argv, f"--results-file={tmp_path / 'results.json'}"]) == 0
    assert f"{page} cannot be written: Permission denied" in capsys.readouterr().out
    assert page.read_text() == BEGINNING


def test_a_run_replaces_what_an_earlier_one_has_written(workspace: Path, tmp_path: Path) -> None:
    registry = f"--registry=dir:{tmp_path / 'r'}"
    place = workspace / ".releasekit" / "mine.json"
    for _ in range(2):
        assert main(["publish", str(workspace), registry, f"--results-file={place}"]) == 0
        assert main(["plan", str(workspace), registry, f"--plan-file={tmp_path / 'p.json'}"]) == 0


def test_what_appears_during_the_run_stays_too(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R52, R4: a build puts a link there; the state directory has the results all the same."""
    wanted, foreign = tmp_path / "results.json", tmp_path / "foreign"
    foreign.write_text("kept")
    package = workspace / "packages" / "demo-a"
    manifest = package / "pyproject.toml"
    manifest.write_text(
        manifest.read_text().replace('"hatchling.build"', '"own"\nbackend-path = ["."]')
    )
    (package / "own.py").write_text(
        "import os\nfrom hatchling.build import *\n"
        f"if not os.path.lexists({str(wanted)!r}): os.symlink({str(foreign)!r}, {str(wanted)!r})\n"
    )
    registry = f"--registry=dir:{tmp_path / 'r'}"
    assert main(["publish", str(workspace), registry, f"--results-file={wanted}"]) == 2
    assert f"{wanted} is a symbolic link" in capsys.readouterr().err
    assert foreign.read_text() == "kept"
    assert '"published"' in (workspace / ".releasekit" / "results.json").read_text()
