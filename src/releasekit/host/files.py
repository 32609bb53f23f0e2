"""Files of the workspace as repositories have them: any size, any encoding, links to anywhere."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from releasekit.errors import PathError, Unreadable
from releasekit.host.folder import open_file
from releasekit.text.bounds import check_bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")


def inside(root: Path, path: Path, *, where: str) -> Path:
    """`path` without symbolic links; raises ConfigError when that is not below `root`."""
    try:
        path.stat()
    except ValueError as error:
        raise PathError(f"{where}: no path has a NUL character in it") from error
    except OSError as error:
        if error.errno == errno.ELOOP:  # where `resolve` raises nothing since Python 3.13
            raise PathError(f"{where}: {path} cannot be followed (a loop of links?)") from error
    resolved = path.resolve()
    if not resolved.is_relative_to(root):
        raise PathError(
            f"{where} leads out of the workspace, to {resolved}",
            hint=f"Everything that is published has to be below {root}.",
        )
    return resolved


def exists(path: Path) -> bool:
    """Whether anything is at a path that a manifest names, be it one that no file can have."""
    return os.path.exists(path)  # noqa: PTH110 (Path.exists raises for it)


def is_file(path: Path) -> bool:
    """As `exists`, for a file."""
    return os.path.isfile(path)  # noqa: PTH113 (Path.is_file raises for it)


def follow(path: Path) -> Path:
    """Where a path that a manifest names leads. Before Python 3.13, `Path.resolve` raises
    RuntimeError for a loop of links, which leads nowhere.
    """
    return Path(os.path.realpath(path))


def find_closed(path: Path) -> Path | None:
    """The directory in which this user may not write, where `path`, a directory, is or would be."""
    above = next(filter(os.path.exists, (path, *path.parents)))
    return None if os.access(above, os.W_OK | os.X_OK) else above


def repository_of(directory: Path) -> Path | None:
    """The root of the git repository (or worktree) that holds `directory`; no process."""
    for level in (directory, *directory.parents):
        if (level / ".git").exists():
            return level
    return None


def find_top(directory: Path) -> Path:
    """The root of its repository; outside git, the directory itself."""
    return repository_of(directory) or directory


def is_in_checkout(path: Path, root: Path) -> bool:
    """Whether `path`, or what it leads to, comes with the sources of the workspace at `root`.

    These are those of the outermost repository: a change of it can make any directory a submodule.
    """
    places = (Path(os.path.abspath(path)), path.resolve())  # noqa: PTH100 (keeps links)
    return any(place.is_relative_to(checkout_of(root)) for place in places)


def checkout_of(root: Path) -> Path:
    """The outermost repository that holds the workspace at `root`, or that itself."""
    return [root, *(level for level in root.parents if (level / ".git").exists())][-1]


def read_file(path: Path, *, max_bytes: int) -> bytes:
    """The whole file; raises ConfigError when it is not a regular one, or is longer."""
    try:
        with opened(path) as file:
            # Refuse a sparse file before reading it.
            longer = os.fstat(file.fileno()).st_size > max_bytes
            data = b"" if longer else file.read(max_bytes + 1)
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read ({error.strerror})") from error
    if longer or len(data) > max_bytes:
        raise Unreadable(f"{path}: larger than {max_bytes} bytes")
    return data


def read_head(path: Path, size: int) -> bytes:
    """At most the first `size` bytes of a regular file; raises OSError."""
    with opened(path) as file:
        return file.read(size)


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """For reading; raises OSError for anything but a regular file, and never waits for a writer.

    A link is followed once: what is opened is what it led to then, through no other one, and
    nothing in /proc, where what is read could be our own.
    """
    try:
        descriptor = open_file(path, os.O_RDONLY)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        try:
            place = path.resolve()
        except RuntimeError as loop:  # before Python 3.13
            raise error from loop
        if place.is_relative_to("/proc"):
            raise OSError(errno.EINVAL, "leads into /proc", str(path)) from error
        descriptor = open_file(place, os.O_RDONLY)
    with os.fdopen(descriptor, "rb") as file:
        yield file


def read_text(path: Path, *, max_bytes: int) -> str:
    """The whole file; raises ConfigError also when it is not UTF-8."""
    data = read_file(path, max_bytes=max_bytes)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"{path}: line {line} is not UTF-8; save it as UTF-8") from error


def read_parsed(path: Path, parse: Callable[[str], T], *, complaint: str, max_bytes: int) -> T:
    """What `parse` makes of the text, without a byte order mark; raises ConfigError where it raises
    ValueError. `complaint` is what to say of the file then: "is not valid TOML".
    """
    text = read_text(path, max_bytes=max_bytes).removeprefix("\ufeff")
    try:
        return check_bounds(parse(text))
    except RecursionError as error:
        raise Unreadable(f"{path} {complaint}: it is nested too deeply") from error
    except ValueError as error:
        reason = " ".join(str(error).split())
        if "integer string conversion" in reason:  # Python names a function that turns this off
            reason = "it holds an integer of thousands of digits"
        raise Unreadable(f"{path} {complaint}: {reason}") from error
