from __future__ import annotations

import fcntl
import importlib.util
import os
import sys
from typing import TYPE_CHECKING

import pytest

from releasekit.host import flock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType


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


class _Msvcrt:
    """The locks of Windows: of one byte, refused with OSError, for one descriptor."""

    LK_NBLCK, LK_LOCK, LK_UNLCK = "try", "wait", "unlock"

    def __init__(self) -> None:
        self.owner: int | None = None

    def locking(self, descriptor: int, mode: str, size: int) -> None:
        assert size == 1
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == 1 << 30
        if mode == "unlock":
            assert self.owner == descriptor
            self.owner = None
        elif self.owner not in {None, descriptor}:
            raise OSError(13, "Permission denied")
        else:
            self.owner = descriptor


@pytest.fixture(name="windows")
def _windows(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as Windows would load it."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "msvcrt", _Msvcrt())
    spec = importlib.util.spec_from_file_location("flock_of_windows", flock.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_windows_locks_one_byte_far_behind_the_text(
    windows: ModuleType, descriptors: tuple[int, int]
) -> None:
    first, second = descriptors
    assert windows.try_lock(first)
    assert not windows.try_lock(second, shared=True)
    with windows.exclusive(first):
        assert not windows.try_lock(second)
    assert windows.try_lock(second)
