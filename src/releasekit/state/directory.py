"""The state directory itself: made, ignored by git, and without links that lead out of it."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

from releasekit.errors import StateError
from releasekit.host import durable
from releasekit.host.folder import LINK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from releasekit.model import Package

WAY_OUT: Final = "Delete it; if the repository has it, delete it there too. Nothing else was done."


def make_state_directory(path: Path) -> None:
    """A directory that git ignores, itself included."""
    try:
        durable.make_directory(path)
        if ".gitignore" not in durable.names(path):
            durable.replace(path / ".gitignore", b"*\n")
    except OSError as error:
        raise StateError(
            f"{path}: cannot be used as the state directory: {error.strerror}",
            hint="Name one that can be written as `state-directory`.",
        ) from error


def built_directory(package: Package, state_directory: Path) -> Path:
    """Where the files of a package lie, from its build until a registry shows them, and after."""
    # A colon, which Maven puts between group and artifact, is no part of a path on Windows.
    parts = package.id.name.split(":")
    return state_directory.joinpath("dist", package.id.ecosystem, *parts, package.version)


@contextlib.contextmanager
def state_errors(hint: str, *, trouble: str = "") -> Iterator[None]:
    """Turn an OSError of the block into a StateError: the file, `trouble`, the system's words."""
    try:
        yield
    except OSError as error:
        raise StateError(f"{error.filename}: {trouble}{error.strerror}", hint=hint) from error


def refuse_links(state_directory: Path) -> None:
    """Raises StateError for the first symbolic link in it.

    Tools that build are handed paths in there, and would follow one that a repository has planted.
    """
    for link in links(state_directory):
        raise StateError(f"{link}: {LINK}", hint=WAY_OUT)


def links(state_directory: Path) -> Iterator[Path]:
    """Every symbolic link in the state directory, except where builds work and may make their own:
    what lies there is deleted, not used, by the next one.
    """
    pending = [state_directory]
    while pending:
        directory = pending.pop()
        try:
            with os.scandir(directory) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue  # not there, or not readable by us, and neither is what it leads to
        for entry in entries:
            path = directory / entry.name
            if entry.is_symlink():
                yield path
            elif entry.is_dir(follow_symlinks=False) and not _scratch(path, state_directory):
                pending.append(path)


def _scratch(path: Path, state_directory: Path) -> bool:
    return path.parent == state_directory / "work" or path.name.endswith(".building")
