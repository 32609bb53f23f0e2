"""Directories that are reached by their names alone, without following a symbolic link.

Each component of a path is opened in the one before it, and no link is followed: by Linux in one
call of openat2(2), or by us with openat(2) and O_NOFOLLOW. So changing a directory on the way
cannot lead us elsewhere, whenever it happens.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PLAIN: Final = os.O_NOFOLLOW | os.O_CLOEXEC
# Only Linux has it. Elsewhere it is 0, and opening a directory for writing fails.
_TMPFILE: Final[int] = getattr(os, "O_TMPFILE", 0)
_NO_TMPFILE: Final = frozenset(
    {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.EACCES, errno.EPERM}
)
# O_PATH needs no permission to list the directory; only Linux has it.
_STEP: Final[int] = _PLAIN | os.O_DIRECTORY | getattr(os, "O_PATH", 0)
# The same number on all of Linux: https://man7.org/linux/man-pages/man2/openat2.2.html
_OPENAT2: Final = 437
_AT_FDCWD: Final = -100
_RESOLVE_NO_SYMLINKS: Final = 4
_HOW: Final = struct.Struct("=QQQ")
try:
    import ctypes

    _syscall = ctypes.CDLL(None).syscall if sys.platform == "linux" else None
except (ImportError, OSError, AttributeError):  # no Python has to have it
    _syscall = None
# Names in one directory: that of all packages of a registry may have so many, and a build may leave
# any number.
MAX_NAMES: Final = 200_000
# Files of one tree: removing that many takes some ten seconds.
MAX_REMOVED: Final = 500_000
LINK: Final = "is a symbolic link, and no link is followed here"


class Folder:
    """An open directory; every name is one in it. Errors carry the whole path as `filename`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def reached(cls, path: Path, *, make: bool = False, sync: bool = True) -> Self:
        """The directory at `path`; `make` creates it and what is missing above it, durably if it
        is to `sync`.

        Raises OSError for a link on the way.
        """
        descriptor = _open_without_links(path, _STEP)
        if descriptor is not None:
            return cls(path, descriptor)
        here = Path(path.anchor or ".")
        names = path.relative_to(here).parts
        folder = cls(here, os.open(here, _STEP))
        try:
            for name in names:
                folder._step(name, make=make, sync=sync)
        except BaseException:
            folder.close()
            raise
        return folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """A descriptor of a regular file; anything else is refused."""
        with self._telling(name):
            descriptor = os.open(
                name, flags | _PLAIN | os.O_NONBLOCK, mode, dir_fd=self._descriptor
            )
            try:
                _require_regular(os.fstat(descriptor))
            except BaseException:
                os.close(descriptor)
                raise
            return descriptor

    def open_unnamed(self) -> int:
        """A descriptor of a new file that never has a name, to write and read.

        File systems that have none (NFS) give it one for a moment.
        """
        flags = os.O_RDWR | os.O_EXCL | _PLAIN
        with self._telling("."):
            try:
                return os.open(".", flags | _TMPFILE, 0o600, dir_fd=self._descriptor)
            except OSError as error:
                if error.errno not in _NO_TMPFILE:
                    raise
        name = f".{secrets.token_hex(8)}.tmp"
        descriptor = self.open(name, flags | os.O_CREAT, 0o600)
        self.unlink(name)
        return descriptor

    def unlink(self, name: str) -> None:
        """Remove a regular file, if it is there; anything else is refused."""
        with self._telling(name), contextlib.suppress(FileNotFoundError):
            _require_regular(self._status(name))
            os.unlink(name, dir_fd=self._descriptor)

    def rename(self, old: str, new: str) -> None:
        """Put `old` in the place of `new`, if that is a regular file or nothing."""
        with self._telling(new):
            with contextlib.suppress(FileNotFoundError):
                _require_regular(self._status(new))
            os.replace(old, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def link(self, old: str, new: str) -> None:
        """Give the regular file `old` a second name, where nothing has that name yet; file systems
        without hard links give it that name only.
        """
        with self._telling(new), contextlib.suppress(FileExistsError):
            _require_regular(self._status(old))
            try:
                os.link(
                    old,
                    new,
                    src_dir_fd=self._descriptor,
                    dst_dir_fd=self._descriptor,
                    follow_symlinks=False,
                )
            except FileExistsError:
                raise
            except OSError:
                self.rename(old, new)

    def inner(self, name: str) -> Self:
        """The directory of this name in it; raises OSError for a link."""
        with self._telling(name):
            return type(self)(self.path / name, self._open_inner(name))

    def make(self, name: str, mode: int = 0o777) -> None:
        """A new, empty directory in it."""
        with self._telling(name):
            os.mkdir(name, mode, dir_fd=self._descriptor)

    def open_pipe(self, name: str) -> tuple[int, int]:
        """Make a named pipe, and return its two ends; neither waits for another process."""
        with self._telling(name), contextlib.ExitStack() as undo:
            os.mkfifo(name, 0o600, dir_fd=self._descriptor)
            ends = []
            for flags in (os.O_RDONLY, os.O_WRONLY):
                end = os.open(name, flags | _PLAIN | os.O_NONBLOCK, dir_fd=self._descriptor)
                undo.callback(os.close, end)
                if not stat.S_ISFIFO(os.fstat(end).st_mode):
                    raise OSError(errno.EINVAL, "is not the pipe that was made")
                ends.append(end)
            undo.pop_all()
            return ends[0], ends[1]

    def is_directory(self, name: str) -> bool:
        """Whether a directory has this name, and not a link to one."""
        return self._has(name, stat.S_ISDIR)

    def is_file(self, name: str) -> bool:
        """Whether a regular file has this name, and not a link to one."""
        return self._has(name, stat.S_ISREG)

    def _has(self, name: str, is_kind: Callable[[int], bool]) -> bool:
        with self._telling(name):
            try:
                return is_kind(self._status(name).st_mode)
            except FileNotFoundError:
                return False

    def move(self, name: str, into: Folder, new: str) -> None:
        """Put what has this name, a link itself too, in a free place or an empty directory's."""
        with self._telling(name):
            os.rename(name, new, src_dir_fd=self._descriptor, dst_dir_fd=into._descriptor)

    def remove_tree(self, name: str) -> None:
        """Remove a file, a link itself or a directory with all it holds, if it is there.

        It may be of any depth: directories are moved up, into the one that goes last. Raises
        OSError, with a part of it gone, if it holds too much, for instance because it still grows.
        """
        with self._telling(name), contextlib.suppress(FileNotFoundError):
            if not self._removed(name):
                with self.inner(name) as tree:
                    tree._empty()  # noqa: SLF001
                os.rmdir(name, dir_fd=self._descriptor)

    def remove_empty(self, name: str) -> None:
        """Remove a directory that nothing is in."""
        with self._telling(name):
            os.rmdir(name, dir_fd=self._descriptor)

    def _empty(self) -> None:
        prefix, number, pending = secrets.token_hex(8), 0, self.names()
        left = MAX_REMOVED - len(pending)
        while pending:
            name = pending.pop()
            if self._removed(name):
                continue
            with self.inner(name) as directory:
                children = directory.names()
                left -= len(children)
                if left < 0:
                    raise OSError(errno.EFBIG, f"holds more than {MAX_REMOVED} files")
                for child in children:
                    if not directory._removed(child):  # noqa: SLF001
                        number += 1
                        directory.move(child, self, f"{prefix}-{number}")
                        pending.append(f"{prefix}-{number}")
            os.rmdir(name, dir_fd=self._descriptor)

    def _removed(self, name: str) -> bool:
        """False for a directory, which is left as it is."""
        if stat.S_ISDIR(self._status(name).st_mode):
            return False
        os.unlink(name, dir_fd=self._descriptor)
        return True

    def names(self) -> list[str]:
        """Sorted; the children of the directory. Raises OSError where there are too many."""
        directories, others = self.listed()
        return sorted([*directories, *others])

    def listed(self) -> tuple[list[str], list[str]]:
        """Sorted; the directories in it, and all else. Raises OSError where there are too many."""
        there: dict[str, bool] = {}
        with self._telling("."), contextlib.ExitStack() as stack:
            for each in stack.enter_context(os.scandir(stack.enter_context(self._listable()))):
                there[each.name] = each.is_dir(follow_symlinks=False)
                if len(there) > MAX_NAMES:
                    raise OSError(errno.EFBIG, f"holds more than {MAX_NAMES} names")
        names = sorted(there)
        return [each for each in names if there[each]], [each for each in names if not there[each]]

    def sync(self) -> None:
        """Make the names durable."""
        with self._telling("."), self._listable() as descriptor:
            os.fsync(descriptor)

    def close(self) -> None:
        """Once."""
        os.close(self._descriptor)

    def _step(self, name: str, *, make: bool, sync: bool) -> None:
        """Moves on to the directory of this name in it."""
        with self._telling(name):
            try:
                inner = self._open_inner(name)
            except FileNotFoundError:
                if not make:
                    raise
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=self._descriptor)
                if sync:
                    self.sync()
                inner = self._open_inner(name)
        above, self._descriptor = self._descriptor, inner
        self.path /= name
        os.close(above)

    def _open_inner(self, name: str) -> int:
        try:
            return os.open(name, _STEP, dir_fd=self._descriptor)
        except NotADirectoryError:
            # What O_DIRECTORY says of a link too.
            if stat.S_ISLNK(self._status(name).st_mode):
                raise OSError(errno.ELOOP, LINK) from None
            raise

    def _status(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)

    @contextlib.contextmanager
    def _listable(self) -> Iterator[int]:
        descriptor = os.open(".", os.O_RDONLY | _PLAIN, dir_fd=self._descriptor)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _telling(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            error.filename = str(self.path / name)
            if error.errno == errno.ELOOP:
                error.strerror = LINK
            raise


def open_file(path: Path, flags: int, mode: int = 0o666) -> int:
    """The descriptor of a regular file, which the caller closes. Raises OSError for a link, on the
    way or in its place.
    """
    descriptor = _open_without_links(path, flags | _PLAIN | os.O_NONBLOCK, mode)
    if descriptor is not None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    # Step by step it is known what is wrong.
    with Folder.reached(path.parent) as folder:
        return folder.open(path.name, flags, mode)


def _open_without_links(path: Path, flags: int, mode: int = 0) -> int | None:
    """A descriptor, by one call of a kernel that follows no link in any component; None where it
    has no such call, forbids it, or fails.
    """
    name = os.fsencode(path)
    # C would end the path at a NUL.
    if _syscall is None or b"\0" in name:
        return None
    how = _HOW.pack(flags, mode if flags & os.O_CREAT else 0, _RESOLVE_NO_SYMLINKS)
    descriptor: int = _syscall(_OPENAT2, _AT_FDCWD, name, how, _HOW.size)
    return descriptor if descriptor >= 0 else None


def _require_regular(status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, LINK)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file")
