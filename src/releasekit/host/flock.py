"""Locks on open files, flock(2): the kernel drops one with the last copy of its descriptor."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.text.escape import visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

PAUSES: Final = 1_000
_PAUSE_S: Final = 0.01
_PROCESSES: Final = Path("/proc")


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock without waiting; False where another process has the lock."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def find_holders(files: Collection[Path]) -> dict[int, str]:
    """The other processes that hold a lock on one of `files`, and their programs: those that Linux
    shows to this user, none on other systems.
    https://man7.org/linux/man-pages/man5/proc_pid_fdinfo.5.html
    """
    wanted = set()
    for file in files:
        with contextlib.suppress(OSError):
            wanted.add(_identify(file.lstat()))
    found: dict[int, str] = {}
    with contextlib.suppress(OSError):
        for process in _PROCESSES.iterdir():
            # One that has ended meanwhile, or is somebody else's, tells nothing.
            with contextlib.suppress(OSError, ValueError):
                number = int(process.name)
                if number != os.getpid() and any(_list_locked(process, wanted)):
                    program = (process / "comm").read_text("utf-8", "replace")
                    found[number] = visible(program.strip())
    return found


def _list_locked(process: Path, wanted: Collection[tuple[int, int]]) -> Iterator[bool]:
    """For each descriptor of one of the files: whether the lock is on it, inherited or not."""
    for descriptor in (process / "fd").iterdir():
        with contextlib.suppress(OSError):
            if _identify(descriptor.stat()) in wanted:
                told = (process / "fdinfo" / descriptor.name).read_text("ascii", "replace")
                yield "FLOCK" in told


def _identify(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


@contextlib.contextmanager
def exclusive(descriptor: int, pauses: int = PAUSES) -> Iterator[int]:
    """Hold the lock for the length of a block; yields how many of the `pauses` are left. Raises
    OSError once there are none.

    We never keep it for longer than one write, but any process that may read the file may lock it.
    """
    while not try_lock(descriptor):
        if not pauses:
            raise OSError(errno.EWOULDBLOCK, "another process keeps it locked")
        pauses -= 1
        time.sleep(_PAUSE_S)
    try:
        yield pauses
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
