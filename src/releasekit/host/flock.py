"""Locks on open files, flock(2): the kernel drops one with the last copy of its descriptor."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PAUSES: Final = 1_000
_PAUSE_S: Final = 0.01


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock without waiting; False where another process has the lock."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
