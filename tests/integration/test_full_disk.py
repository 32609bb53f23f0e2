"""A disk that is full, wherever a run keeps something."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from full_disks import fill
from releasekit.__main__ import main
from releasekit.host import durable
from releasekit.host.folder import Folder
from workspaces import git, uv_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.host.durable import Attributes

WHEEL = "demo_a-1.0.0-py3-none-any.whl"


@pytest.fixture(name="workspace")
def _workspace(tmp_path: Path) -> Path:
    return uv_workspace(tmp_path / "w", {"demo-a": (), "demo-b": ("demo-a",)})


def full(path: Path) -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


@pytest.mark.parametrize(
    ("where", "code"),
    [
        (".gitignore", 1),
        ("backup/pypi/", 1),
        ("packages/demo-b/pyproject.toml", 1),
        ("results.json", 2),
    ],
)
def test_what_cannot_be_saved_is_said_in_a_sentence(
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    where: str,
    code: int,
) -> None:
    """R22, R40: and no manifest is changed."""
    replace = durable.replace

    def refuse(
        path: Path,
        data: bytes,
        *,
        attributes: Attributes | None = None,
        times_ns: tuple[int, int] | None = None,
        temporary: Path | None = None,
    ) -> None:
        if where in str(path):
            raise full(path)
        replace(path, data, attributes=attributes, times_ns=times_ns, temporary=temporary)

    monkeypatch.setattr(durable, "replace", refuse)
    arguments = ["publish", str(workspace), f"--registry=dir:{tmp_path / 'r'}"]
    assert main(arguments) == code
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    assert "No space left on device" in said.out + said.err
    assert git(workspace, "status", "--porcelain", "--untracked-files=no") == ""
    monkeypatch.setattr(durable, "replace", replace)
    assert main(arguments) == 0


@pytest.mark.parametrize(
    ("call", "where", "named", "code"),
    [
        ("write", ".releasekit/..gitignore.", ".releasekit: cannot be used", 1),
        ("write", ".releasekit/journal.jsonl", ".releasekit/journal.jsonl: ", 1),
        ("write", ".releasekit/backup/pypi/", ".releasekit/backup/pypi/", 1),
        ("fsync", WHEEL, f".releasekit/dist/pypi/demo-a/1.0.0/{WHEEL}: ", 1),
        ("write", "r/pypi/files/demo-a/", "r/pypi/files/demo-a/demo_a-1.0.0", 1),
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
    """R40: the system names none."""
    arguments = ["publish", str(workspace), f"--registry=dir:{tmp_path / 'r'}"]
    with monkeypatch.context() as patch:
        refused = fill(patch, call, where)
        assert main(arguments) == code
    assert refused
    captured = capsys.readouterr()
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
            raise full(folder.path / name)
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
