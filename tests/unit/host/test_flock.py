from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from releasekit.host import flock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(name="descriptors")
def _descriptors(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Two processes' views of one file."""
    path = tmp_path / "file"
    first, second = (os.open(path, os.O_RDWR | os.O_CREAT) for _ in range(2))
    yield first, second
    os.close(first)
    os.close(second)


def test_one_at_a_time_unless_both_only_look(descriptors: tuple[int, int]) -> None:
    first, second = descriptors
    assert flock.try_lock(first, shared=True)
    assert flock.try_lock(second, shared=True)
    assert not flock.try_lock(first)


def test_exclusive_is_given_back_after_an_error(descriptors: tuple[int, int]) -> None:
    first, second = descriptors

    def fail() -> None:
        with flock.exclusive(first):
            assert not flock.try_lock(second)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert flock.try_lock(second)


def test_who_keeps_a_lock_keeps_nobody_for_ever(descriptors: tuple[int, int]) -> None:
    """R51: who may read a file may lock it."""
    first, second = descriptors
    assert flock.try_lock(first, shared=True)
    with (
        pytest.raises(OSError, match="another process keeps it locked"),
        flock.exclusive(second, 3),
    ):
        pass


def test_pauses_that_were_not_needed_are_left(
    descriptors: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = descriptors
    assert flock.try_lock(first)
    monkeypatch.setattr(
        "releasekit.host.flock.time.sleep", lambda _: fcntl.flock(first, fcntl.LOCK_UN)
    )
    with flock.exclusive(second, 3) as left:
        assert left == 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows them")
def test_who_inherited_a_lock_is_named_and_who_only_reads_is_not(tmp_path: Path) -> None:
    """R27: the line names a command that ends these processes."""
    path = tmp_path / "lock"
    path.touch()

    def start(descriptor: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sleep", "60"], pass_fds=[descriptor])

    with path.open("rb") as locked, path.open("rb") as read:
        assert flock.try_lock(locked.fileno())
        with start(locked.fileno()) as heir, start(read.fileno()) as reader:
            try:
                assert flock.find_holders([path, tmp_path / "absent"]) == {heir.pid: "sleep"}
            finally:
                heir.kill()
                reader.kill()
    assert flock.find_holders([path]) == {}
