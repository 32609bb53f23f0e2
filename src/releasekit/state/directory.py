"""The state directory itself: how it is made and kept out of git, how links in it are refused, and
how its files are recognized elsewhere.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from releasekit.errors import StateError, StateUnwritable
from releasekit.host import durable
from releasekit.host.folder import LINK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from releasekit.model import Package

# Unless `state-directory` says otherwise.
NAME: Final = ".releasekit"
_MAX_PATH: Final = 4096
BUILT: Final = "dist"
JOURNAL: Final = "journal.jsonl"
IGNORE: Final = ".gitignore"
MOVE_AWAY: Final = "Only releasekit writes it: move away what is there."
WAY_OUT: Final = "Delete it; if the repository has it, delete it there too. Nothing else was done."


def make_state_directory(path: Path) -> None:
    """A directory that git ignores, itself included."""
    try:
        durable.make_directory(path)
        if IGNORE not in durable.names(path):
            durable.replace(path / IGNORE, b"*\n")
    except OSError as error:
        raise state_error(
            error,
            f"{path}: cannot be used as the state directory: {error.strerror}",
            "Name one that can be written as `state-directory`.",
        ) from error


def within(state_directory: Path, tree: Path) -> str:
    """Where in `tree` the state directory lies; empty if it lies elsewhere."""
    inside = state_directory.is_relative_to(tree)
    return state_directory.relative_to(tree).as_posix() if inside else ""


def first_leaked(names: Iterable[str], package: Package, state_directory: Path) -> str:
    """The first of the names in an archive of `package` that lies in a state directory, whichever
    run kept it; empty where none does.

    A directory with the name of a renamed state directory counts if it holds a file that the state
    directory has, and any directory counts in which a lock lies beside a journal.
    """
    # No file has a longer name, and comparing the parts of one takes long.
    paths = [
        path for name in names if len(name) <= _MAX_PATH and (path := PurePosixPath(name)).name
    ]
    held = {path.parent for path in paths if path.name == JOURNAL}
    held &= {path.parent for path in paths if path.name.startswith("lock.")}
    own = state_directory if within(state_directory, package.directory) else None
    for path in paths:
        if NAME in path.parts[:-1] or (held and held.intersection(path.parents)):
            return str(path)
        if own is not None and _is_in(path, own):
            return str(path)
    return ""


def _is_in(path: PurePosixPath, state_directory: Path) -> bool:
    """Archives lay files out in their own way: a source root is not always part of the path."""
    *above, last = path.parts
    return last != IGNORE and any(
        name == state_directory.name and state_directory.joinpath(*path.parts[depth:]).is_file()
        for depth, name in enumerate(above, start=1)
    )


def built_directory(package: Package, state_directory: Path) -> Path:
    """Where the files of a package lie, from its build until a registry shows them, and after."""
    return state_directory / BUILT / package.place


@contextlib.contextmanager
def state_errors(hint: str, *, trouble: str = "") -> Iterator[None]:
    """Turn an OSError of the block into a StateError: the file, `trouble`, the system's words."""
    try:
        yield
    except OSError as error:
        raise state_error(error, f"{error.filename}: {trouble}{error.strerror}", hint) from error


def state_error(error: OSError, message: str, hint: str) -> StateError:
    """The error of a disk that takes no more says so, and leads to another exit code."""
    what_to_do = {
        errno.ENOSPC: "Make room",
        errno.EDQUOT: "Make room",
        errno.EFBIG: "Raise the limit of the size of files (ulimit -f)",
        errno.EROFS: "Let that file system be written",
    }
    if error.errno in what_to_do:
        return StateUnwritable(message, hint=f"{what_to_do[error.errno]}, and run it again. {hint}")
    return StateError(message, hint=hint)


def refuse_links(state_directory: Path) -> None:
    """Raises StateError for the first symbolic link in it.

    Tools that build are handed paths in there, and would follow one that a repository has planted.
    """
    for link in links(state_directory):
        raise StateError(f"{link}: {LINK}", hint=WAY_OUT)


def links(state_directory: Path) -> Iterator[Path]:
    """Every symbolic link in the state directory, except where builds work and may make their own:
    the next build deletes what lies there, and does not use it.
    """
    pending = [state_directory]
    while pending:
        directory = pending.pop()
        try:
            with os.scandir(directory) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue  # we can read neither it nor what it leads to
        for entry in entries:
            path = directory / entry.name
            if entry.is_symlink():
                yield path
            elif (
                entry.is_dir(follow_symlinks=False)
                and directory != state_directory / "work"
                and not path.name.endswith(".building")
            ):
                pending.append(path)
