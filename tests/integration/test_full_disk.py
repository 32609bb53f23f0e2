"""A disk that is full, wherever a run keeps something."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from full_disks import fill
from integration.test_planted_links import two_packages
from releasekit.__main__ import main
from releasekit.host.folder import Folder
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path

WHEEL = "core-1.0.0-py3-none-any.whl"


@pytest.fixture(name="workspace")
def _workspace(tmp_path: Path) -> Path:
    return two_packages(tmp_path / "w")


@pytest.mark.parametrize(
    ("call", "where", "named", "code"),
    [
        ("write", ".releasekit/..gitignore.", ".releasekit: cannot be used", 1),
        ("write", ".releasekit/journal.jsonl", ".releasekit/journal.jsonl: ", 1),
        ("write", ".releasekit/backup/pypi/", ".releasekit/backup/pypi/", 1),
        ("write", "packages/app/.pyproject.toml", "packages/app/pyproject.toml: ", 1),
        ("fsync", WHEEL, f".releasekit/dist/pypi/core/1.0.0/{WHEEL}: ", 1),
        ("write", "r/pypi/files/core/", "r/pypi/files/core/core-1.0.0", 1),
        ("write", ".releasekit/.results.json.", ".releasekit/results.json: ", 2),
        ("write", ".releasekit/.report.html.", ".releasekit/report.html ", 0),
    ],
)
def test_each_message_has_the_file_for_which_there_is_no_room(
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    call: str,
    where: str,
    named: str,
    code: int,
) -> None:
    """R22, R40: the system names none; no manifest is changed."""
    arguments = ["publish", str(workspace), f"--registry=dir:{tmp_path / 'r'}"]
    with monkeypatch.context() as patch:
        refused = fill(patch, call, where)
        assert main(arguments) == code
    assert refused
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert git(workspace, "status", "--porcelain", "--untracked-files=no") == ""
    said = (captured.out + captured.err).splitlines()
    told = [line for line in said if "No space left" in line]
    assert told
    assert [line for line in told if named not in line] == []
    assert not code or any("Make room" in line for line in said)
    assert main(arguments) == 0


def test_what_cannot_be_built_for_want_of_room_is_said_in_a_sentence(
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """R40"""
    make = Folder.make

    def refuse(folder: Folder, name: str, mode: int = 0o777) -> None:
        if name.endswith(".building"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder.path / name))
        make(folder, name, mode)

    arguments = ["publish", str(workspace), f"--registry=dir:{tmp_path / 'r'}"]
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "make", refuse)
        assert main(arguments) == 1
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    assert ".1.0.0.building: No space left on device" in said.out
    assert "Make room" in said.out
    assert main(arguments) == 0
