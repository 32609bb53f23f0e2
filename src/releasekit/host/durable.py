"""Files that survive a crash of the process or of the machine.

The order of the calls is the whole point: temporary file, fsync, rename, fsync of the directory
(https://lwn.net/Articles/457667/). A reader sees the old bytes or the new ones, never a mixture.
No call follows a symbolic link, and none replaces or removes anything but a regular file. Every
OSError has the name of the file as `filename`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from releasekit.host.folder import Folder, open_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedReader, BufferedWriter
    from pathlib import Path
    from typing import BinaryIO

_CHUNK: Final = 1024 * 1024
MAX_DEPTH: Final = 100
# Errors that can only be about a file that is written.
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})


class Attributes(Struct, frozen=True, kw_only=True):
    """Mode and owner of a file."""

    mode: int
    uid: int
    gid: int

    @classmethod
    def from_status(cls, status: os.stat_result) -> Self:
        return cls(mode=status.st_mode & 0o7777, uid=status.st_uid, gid=status.st_gid)


def replace(
    path: Path,
    data: bytes,
    *,
    attributes: Attributes | None = None,
    times_ns: tuple[int, int] | None = None,
    temporary: Path | None = None,
    last_look: Callable[[], None] | None = None,
) -> None:
    """Put `data` at `path`, durably, whether or not something is there; its directory exists.

    `times_ns` are access and modification time, now if not given. `temporary` is a file of the same
    directory that no other process uses meanwhile; without it the name is random, so that any
    number of writers may replace one path at once (the last one wins). Only a killed process leaves
    it. `last_look` may raise, once only the rename is left to do.
    Raises OSError, with the temporary file gone and `path` untouched.
    """
    random = f".{path.name}.{secrets.token_hex(8)}.tmp"
    name = random if temporary is None else temporary.name
    with Folder.reached(path.parent) as folder:
        if temporary is not None:
            # A killed run may have left a read-only one, which cannot be opened again.
            folder.unlink(name)
        try:
            # No other user may look inside before the file has its final mode.
            mode = 0o666 if attributes is None else 0o600
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with _closing(folder.open(name, flags, mode), path) as descriptor:
                write_all(descriptor, data)
                if attributes is not None:
                    _set_attributes(descriptor, attributes)
                if times_ns is not None:
                    os.utime(descriptor, ns=times_ns)
                os.fsync(descriptor)
            if last_look is not None:
                last_look()
            folder.rename(name, path.name)
        except BaseException:
            with contextlib.suppress(OSError):
                folder.unlink(name)
            raise
        folder.sync()


def make_directory(path: Path, *, sync: bool = True) -> None:
    """Create `path` and its missing parents, each entered durably into the one above if it is to
    `sync`.
    """
    with Folder.reached(path, make=True, sync=sync):
        pass


def remove(path: Path) -> None:
    """Remove a file durably, if it is there."""
    with Folder.reached(path.parent) as folder:
        folder.unlink(path.name)
        folder.sync()


def rename(old: Path, new: Path) -> None:
    """Give a file another name in its directory, durably."""
    with Folder.reached(old.parent) as folder:
        folder.rename(old.name, new.name)
        folder.sync()


def names(directory: Path) -> list[str]:
    """The names in the directory, sorted; empty if the directory is missing."""
    try:
        with Folder.reached(directory) as folder:
            return folder.names()
    except (FileNotFoundError, NotADirectoryError):
        return []


def read_file(path: Path, *, max_bytes: int) -> bytes:
    """The bytes of a file; raises OSError for one with more than `max_bytes`."""
    return b"".join(chunks(path, max_bytes=max_bytes))


def sha256_of(path: Path, *, max_bytes: int) -> str:
    """In hex; raises OSError for a file with more than `max_bytes`."""
    digest = hashlib.sha256()
    for chunk in chunks(path, max_bytes=max_bytes):
        digest.update(chunk)
    return digest.hexdigest()


def chunks(path: Path, *, max_bytes: int) -> Iterator[bytes]:
    """The bytes of a file; raises OSError as soon as they are more than `max_bytes`."""
    left = max_bytes
    with reading(path) as file:
        # Refuse a sparse file before reading it; any file may grow meanwhile.
        longer = os.fstat(file.fileno()).st_size > max_bytes
        while not longer and (chunk := file.read(_CHUNK)):
            left -= len(chunk)
            longer = left < 0
            if not longer:
                yield chunk
    if longer:
        raise OSError(errno.EFBIG, f"is larger than {max_bytes} bytes", str(path))


@contextlib.contextmanager
def reading(path: Path) -> Iterator[BufferedReader]:
    """A regular file, to read from."""
    with opened(path, os.O_RDONLY) as descriptor, open(descriptor, "rb", closefd=False) as file:
        yield file


@contextlib.contextmanager
def writing(path: Path) -> Iterator[BufferedWriter]:
    """A new regular file in a directory that exists; callers that need it durable call `fsync`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with opened(path, flags) as descriptor, open(descriptor, "wb", closefd=False) as file:
        yield file


@contextlib.contextmanager
def unnamed(directory: Path) -> Iterator[BinaryIO]:
    """A new file to write and to read, which no other process can open."""
    with Folder.reached(directory) as folder:
        descriptor = folder.open_unnamed()
    with os.fdopen(descriptor, "w+b") as file:
        yield file


def make_scratch(parent: Path, prefix: str) -> Path:
    """A new directory in `parent`, for this user alone."""
    name = f"{prefix}{secrets.token_hex(8)}"
    with Folder.reached(parent) as folder:
        folder.make(name, 0o700)
    return parent / name


def directories(directory: Path) -> list[str]:
    """The names of the directories in it, sorted; links do not count."""
    try:
        with Folder.reached(directory) as folder:
            return [name for name in folder.names() if folder.is_directory(name)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def walk(top: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Each directory at or below `top`, as deep as sources are, with the names of its directories
    and of all else in it. As with `os.walk`, names that are removed from the first list are not
    entered; links are not directories.
    """
    pending = [top]
    while pending:
        here = pending.pop()
        try:
            with Folder.reached(here) as folder:
                directories, others = folder.listed()
        except OSError:
            continue
        yield here, directories, others
        if len(here.parts) - len(top.parts) < MAX_DEPTH:
            pending += [here / name for name in reversed(directories)]


def is_file(path: Path) -> bool:
    """Whether a regular file is there; a link on the way or in its place does not count."""
    try:
        with Folder.reached(path.parent) as folder:
            return folder.is_file(path.name)
    except (FileNotFoundError, NotADirectoryError):
        return False


def remove_tree(path: Path) -> None:
    """Remove what has this name, if anything: a file, a link itself, a directory. Not durable."""
    with contextlib.suppress(FileNotFoundError), Folder.reached(path.parent) as folder:
        folder.remove_tree(path.name)


def fsync(path: Path) -> None:
    """Make the bytes of a file durable that another process wrote, but not its name."""
    with _closing(open_file(path, os.O_RDONLY), path) as descriptor:
        os.fsync(descriptor)


def fsync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    with Folder.reached(path) as folder:
        folder.sync()


def write_all(descriptor: int, data: bytes) -> None:
    """write(2) until all is written: one call may write less, at 2 GiB and on a full disk."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


@contextlib.contextmanager
def opened(path: Path, flags: int, mode: int = 0o666) -> Iterator[int]:
    """The descriptor of a regular file, closed at the end."""
    writes = bool(flags & (os.O_WRONLY | os.O_RDWR))
    with _closing(open_file(path, flags, mode), path, writes=writes) as descriptor:
        yield descriptor


@contextlib.contextmanager
def _closing(descriptor: int, path: Path, *, writes: bool = True) -> Iterator[int]:
    """Add the name: errors of read(2), write(2) and fsync(2) have none."""
    try:
        yield descriptor
    except OSError as error:
        of_this = error.filename is None and error.errno is not None
        # Beside what is only read, another file may be written.
        if of_this and (writes or error.errno not in _NO_ROOM):
            error.filename = str(path)
        raise
    finally:
        os.close(descriptor)


def _set_attributes(descriptor: int, attributes: Attributes) -> None:
    # Root in a container gives a checkout back to its owner; no other user can give files away.
    with contextlib.suppress(PermissionError):
        os.fchown(descriptor, attributes.uid, attributes.gid)  # may clear bits of the mode
    os.fchmod(descriptor, attributes.mode)
