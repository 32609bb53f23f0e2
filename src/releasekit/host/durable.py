"""Files that survive a crash of the process or of the machine.

The order of the calls is the whole point: temporary file, fsync, rename, fsync of the directory
(https://lwn.net/Articles/457667/). A reader sees the old bytes or the new ones, never a mixture.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Without it Windows would turn every \n into \r\n; elsewhere the flag does not exist.
O_BINARY: int = getattr(os, "O_BINARY", 0)
O_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
O_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)  # PEP 446 does it where the flag is missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Who may do what with a file."""

    mode: int
    uid: int
    gid: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        return cls(mode=status.st_mode & 0o7777, uid=status.st_uid, gid=status.st_gid)


def replace(
    path: Path,
    data: bytes,
    *,
    attributes: Attributes | None = None,
    times_ns: tuple[int, int] | None = None,
    temporary: Path | None = None,
) -> None:
    """Put `data` at `path`, durably, whether or not something is there; its directory exists.

    `times_ns` are access and modification time, now if not given.
    `temporary` is a file of the same directory that nobody else uses meanwhile; without it the name
    is random, so that any number of writers may replace one path at once (the last one wins). Only
    a kill leaves it behind. Raises OSError, with the temporary file gone and `path` untouched.
    """
    if temporary is None:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    else:
        # One left by a kill may be read-only by now, so it cannot simply be opened again.
        temporary.unlink(missing_ok=True)
    try:
        # Nobody may look inside before the file has the mode it is meant to have.
        mode = 0o666 if attributes is None else 0o600
        with opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode) as descriptor:
            write_all(descriptor, data)
            if attributes is not None:
                _set_attributes(descriptor, temporary, attributes)
            if times_ns is not None:
                os.utime(descriptor if os.utime in os.supports_fd else temporary, ns=times_ns)
            os.fsync(descriptor)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    fsync_directory(path.parent)


def make_directory(path: Path) -> None:
    """Create `path` and its missing parents, each entered durably into the one above."""
    if path.is_dir():
        return
    make_directory(path.parent)
    path.mkdir(exist_ok=True)
    fsync_directory(path.parent)


def remove(path: Path) -> None:
    """Remove a file durably; one that is not there is fine."""
    path.unlink(missing_ok=True)
    fsync_directory(path.parent)


def fsync(path: Path) -> None:
    """Make the bytes of a file that somebody else wrote durable; not its name."""
    # Windows flushes only what is open for writing.
    descriptor = os.open(path, (os.O_RDWR if sys.platform == "win32" else os.O_RDONLY) | O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fsync_directory(path: Path) -> None:
    """Make the names in a directory durable. Windows has no such call; NTFS journals them."""
    if sys.platform != "win32":
        fsync(path)


def write_all(descriptor: int, data: bytes) -> None:
    """write(2) until all is written: one call may write less, at 2 GiB and on a full disk."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


@contextlib.contextmanager
def opened(path: Path, flags: int, mode: int = 0o666) -> Iterator[int]:
    """The descriptor of a file, closed at the end; symbolic links are not followed."""
    descriptor = os.open(path, flags | O_BINARY | O_NOFOLLOW | O_CLOEXEC, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _set_attributes(descriptor: int, path: Path, attributes: Attributes) -> None:
    if sys.platform == "win32":
        path.chmod(attributes.mode)
        return
    # Root in a container gives a checkout back to its owner; nobody else can give files away.
    with contextlib.suppress(PermissionError):
        os.fchown(descriptor, attributes.uid, attributes.gid)  # may clear bits of the mode
    os.fchmod(descriptor, attributes.mode)
