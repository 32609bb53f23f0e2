from __future__ import annotations

import json
import os
import socket
import time
from contextvars import Context
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from releasekit.errors import LockHeld, StateError
from releasekit.state import locks

if TYPE_CHECKING:
    from collections.abc import Collection


def another_run(state: Path, ecosystems: Collection[str]) -> locks.Locks:
    """What a run of another process does: it knows nothing of what is held in this one."""
    return Context().run(locks.acquire, state, ecosystems)


def test_a_held_lock_is_refused_at_once_and_names_its_holder(tmp_path: Path) -> None:
    """R26"""
    with locks.acquire(tmp_path, ["pypi"]):
        with pytest.raises(LockHeld) as caught:
            another_run(tmp_path, ["npm", "pypi"])
        assert f"process {os.getpid()} on {socket.gethostname()}, started 20" in str(caught.value)
        assert "deleting the file does not help" in caught.value.hint
        assert caught.value.exit_code == 4
    with locks.acquire(tmp_path, ["npm", "pypi"]):
        pass


def test_other_ecosystems_go_on_meanwhile(tmp_path: Path) -> None:
    """R26: one run per ecosystem, and none is left locked when another cannot be had."""
    with locks.acquire(tmp_path, ["pypi"]):
        with pytest.raises(LockHeld):
            another_run(tmp_path, ["cargo", "pypi"])
        with another_run(tmp_path, ["cargo", "npm"]) as held:
            assert held.ecosystems == ("cargo", "npm")


def test_several_are_taken_in_name_order_whatever_the_caller_says(tmp_path: Path) -> None:
    """R26"""
    with locks.acquire(tmp_path, ["pypi", "cargo", "npm", "cargo"]) as held:
        assert held.ecosystems == ("cargo", "npm", "pypi")
        with pytest.raises(
            RuntimeError, match="lock ecosystem maven asked for after ecosystem pypi"
        ):
            held.take(tmp_path, "maven")


def test_children_can_inherit_the_descriptors(tmp_path: Path) -> None:
    """R27"""
    with locks.acquire(tmp_path, ["npm", "pypi"]) as held:
        assert [os.fstat(number).st_ino for number in held.descriptors] == [
            (tmp_path / name).stat().st_ino for name in ("lock.npm", "lock.pypi")
        ]
        assert not any(map(os.get_inheritable, held.descriptors))
        for number in held.descriptors:
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.write(number, b"what a build would say")
    assert held.descriptors == ()


def test_the_file_stays_and_is_empty_after_a_run_in_order(tmp_path: Path) -> None:
    """R26: a lock file is never deleted."""
    held = locks.acquire(tmp_path, ["pypi"])
    file = locks.lock_file(tmp_path, "pypi")
    inode = file.stat().st_ino
    assert locks.holder(file) is not None
    held.close()
    held.close()
    assert (file.stat().st_ino, file.read_bytes()) == (inode, b"")
    assert locks.holder(file) is None


def test_the_state_directory_ignores_itself_in_git(tmp_path: Path) -> None:
    """R25"""
    state = tmp_path / "deep" / ".releasekit"
    locks.acquire(state, []).close()
    assert (state / ".gitignore").read_text() == "*\n"
    (state / ".gitignore").write_text("mine\n")
    locks.acquire(state, []).close()
    assert (state / ".gitignore").read_text() == "mine\n"


def test_a_symbolic_link_is_no_lock_file(tmp_path: Path) -> None:
    """R26: O_NOFOLLOW"""
    (tmp_path / "elsewhere").touch()
    (tmp_path / "lock.pypi").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateError, match=r"lock\.pypi: cannot be opened as a lock file"):
        locks.acquire(tmp_path, ["pypi"])
    assert not locks.is_held(tmp_path / "lock.pypi")


@pytest.mark.parametrize("name", ["", "../pypi", "PyPI", "a/b", "a\n"])
def test_only_names_of_ecosystems_become_file_names(tmp_path: Path, name: str) -> None:
    """R36"""
    with pytest.raises(ValueError, match="not the name of an ecosystem"):
        locks.acquire(tmp_path, [name])


def test_a_look_at_the_lock_does_not_make_a_run_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R30: `check` has the lock for microseconds; it is gone at the second attempt."""
    looking = locks.acquire(tmp_path, ["pypi"])
    monkeypatch.setattr(time, "sleep", lambda _: looking.close())
    with another_run(tmp_path, ["pypi"]):
        assert locks.is_held(locks.lock_file(tmp_path, "pypi"))
    assert not locks.is_held(locks.lock_file(tmp_path, "pypi"))
    assert not locks.is_held(locks.lock_file(tmp_path, "npm"))


@pytest.mark.parametrize(
    ("pid", "host", "error", "words"),
    [
        (4_194_305, socket.gethostname(), ProcessLookupError, "what it started still runs"),
        (1, socket.gethostname(), PermissionError, "Wait for that run to end"),
        (4_194_305, "elsewhere", ProcessLookupError, "Wait for that run to end"),
        (10**30, socket.gethostname(), OverflowError, "Wait for that run to end"),
    ],
)
def test_the_hint_tells_a_run_from_an_orphan(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pid: int,
    host: str,
    error: type[Exception],
    words: str,
) -> None:
    """R27"""

    def kill(_: int, signal: int) -> None:
        assert signal == 0
        raise error

    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with locks.acquire(tmp_path, ["pypi"]):
        file = locks.lock_file(tmp_path, "pypi")
        file.write_text(json.dumps({"pid": pid, "host": host, "started": "2026"}))
        with pytest.raises(LockHeld) as caught:
            another_run(tmp_path, ["pypi"])
        assert words in f"{caught.value} {caught.value.hint}"


def test_all_ecosystems_are_named_that_a_run_keeps_from_another(tmp_path: Path) -> None:
    """R26: the first by name says nothing of what is published."""
    with locks.acquire(tmp_path, ["cargo", "npm"]):
        with pytest.raises(
            LockHeld, match=r"publishes from this workspace \(cargo, npm\): process"
        ):
            another_run(tmp_path, ["cargo", "go", "npm"])
        with pytest.raises(LockHeld, match="publishes from this workspace: process"):
            another_run(tmp_path, ["cargo", "npm"])
        with pytest.raises(LockHeld, match=r"publishes from this workspace \(npm\): process"):
            another_run(tmp_path, ["npm"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"pid": "x", "host": "", "started": ""}',
        '{"pid": 1e999}',
        "[" * 60_000,
    ],
)
def test_a_holder_that_cannot_be_read_is_nobody(tmp_path: Path, text: str) -> None:
    held = locks.acquire(tmp_path, ["pypi"])
    file = locks.lock_file(tmp_path, "pypi")
    file.write_text(text)
    assert locks.holder(file) is None
    with pytest.raises(LockHeld, match="it does not say who"):
        another_run(tmp_path, ["pypi"])
    held.close()


def test_a_full_disk_costs_the_name_in_the_file_not_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    locks.acquire(tmp_path, []).close()
    monkeypatch.setattr(os, "write", full)
    with locks.acquire(tmp_path, ["pypi"]), pytest.raises(LockHeld):
        another_run(tmp_path, ["pypi"])


def test_a_state_directory_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match="cannot be used as the state directory: Not a directory"):
        locks.acquire(tmp_path / "file" / "state", ["pypi"])


def test_a_refused_lock_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    with locks.acquire(tmp_path, ["pypi"]):
        before = len(list(Path("/proc/self/fd").iterdir()))
        with pytest.raises(LockHeld):
            another_run(tmp_path, ["pypi"])
        assert len(list(Path("/proc/self/fd").iterdir())) == before
