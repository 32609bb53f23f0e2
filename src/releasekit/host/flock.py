"""flock(2), and what Windows has in its place: mandatory, exclusive, not inherited."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# Of a hundredth of a second each.
PAUSES: Final = 1_000

if sys.platform == "win32":
    import msvcrt

    # Far beyond the text of the file, which stays readable for all.
    LOCKED_BYTE = 1 << 30

    def try_lock(descriptor: int, *, shared: bool = False) -> bool:
        """Without waiting. Closing the last copy of the descriptor gives the lock back."""
        del shared  # there is no such lock
        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    @contextlib.contextmanager
    def exclusive(descriptor: int, pauses: int = PAUSES) -> Iterator[int]:
        """Wait for the lock (up to 10 s, then OSError) and release it at the end."""
        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
        try:
            yield pauses  # who holds the lock may write the file
        finally:
            os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    _PAUSE_S = 0.01

    def try_lock(descriptor: int, *, shared: bool = False) -> bool:
        """Without waiting. Closing the last copy of the descriptor gives the lock back."""
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @contextlib.contextmanager
    def exclusive(descriptor: int, pauses: int = PAUSES) -> Iterator[int]:
        """Wait for the lock, and release it at the end; the pauses that are left. Raises OSError
        once there are none.

        We never keep it for longer than one write. But who may read a file may lock it, too.
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
