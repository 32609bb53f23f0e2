"""Which directories a glob of workspace members names; never one outside the workspace."""

from __future__ import annotations

import re
from fnmatch import translate
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from releasekit.errors import ConfigError
from releasekit.host.files import inside

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_VISITED: Final = 100_000
MAX_MEMBERS: Final = 10_000
MAX_DEPTH: Final = 32
_WILDCARD: Final = re.compile(r"[*?\[]")


def members(
    root: Path, globs: tuple[str, ...], exclude: tuple[str, ...], *, where: str
) -> list[Path]:
    """The directories with a pyproject.toml that `globs` name, resolved, sorted.

    `where` is the file and key the globs stand in, for messages. Raises ConfigError for a glob or
    a symbolic link that leaves `root`, and for one without wildcards that names no package.
    """
    found: set[Path] = set()
    excluded = [_excluding(pattern) for pattern in exclude]
    for pattern in globs:
        parts = _parts(pattern, where)
        for candidate in _matches(root, parts, _Walk(where)):
            if any(pattern.fullmatch(_relative(candidate, root)) for pattern in excluded):
                continue
            if (candidate / "pyproject.toml").is_file():
                found.add(inside(root, candidate, where=f"{where}: {pattern!r}"))
            elif not _WILDCARD.search(pattern):
                raise ConfigError(
                    f"{where}: {pattern!r} has no pyproject.toml",
                    hint="Remove the entry, or correct the path.",
                )
            if len(found) > MAX_MEMBERS:
                raise ConfigError(f"{where}: {pattern!r} names more than {MAX_MEMBERS} packages")
        if not _WILDCARD.search(pattern) and not root.joinpath(*parts).is_dir():
            raise ConfigError(
                f"{where}: {pattern!r} is not a directory",
                hint="Remove the entry, or correct the path.",
            )
    return sorted(found)


class _Walk:
    """How many directories one glob has looked into."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._visited = 0

    def children(self, directory: Path) -> list[Path]:
        self._visited += 1
        if self._visited > MAX_VISITED:
            raise ConfigError(
                f"{self._where}: a glob searches more than {MAX_VISITED} directories",
                hint="Name the directories more closely; '**' also searches node_modules.",
            )
        return sorted(child for child in directory.iterdir() if child.is_dir())


def _parts(pattern: str, where: str) -> list[str]:
    path = PurePosixPath(pattern)
    if path.is_absolute() or ".." in path.parts:
        raise ConfigError(
            f"{where}: {pattern!r} leaves the workspace",
            hint="Write a path relative to the workspace's root, without '..'.",
        )
    if len(path.parts) > MAX_DEPTH:
        raise ConfigError(f"{where}: {pattern!r} is deeper than {MAX_DEPTH} directories")
    return list(path.parts)


def _matches(directory: Path, parts: list[str], walk: _Walk) -> Iterator[Path]:
    if not parts:
        yield directory
        return
    first, *rest = parts
    if first == "**":
        yield from _matches(directory, rest, walk)
        for child in walk.children(directory):
            # As uv does, and also what keeps a loop of links finite.
            if not child.is_symlink() and len(child.parts) < len(directory.parts) + MAX_DEPTH:
                yield from _matches(child, parts, walk)
    elif _WILDCARD.search(first):
        matching = re.compile(translate(first))
        for child in walk.children(directory):
            if matching.fullmatch(child.name):
                yield from _matches(child, rest, walk)
    elif (directory / first).is_dir():
        yield from _matches(directory / first, rest, walk)


def _excluding(pattern: str) -> re.Pattern[str]:
    # uv matches `exclude` against the whole path, where a `*` also matches a slash.
    # https://docs.rs/glob/latest/glob/struct.MatchOptions.html (require_literal_separator)
    return re.compile(translate(str(PurePosixPath(pattern))))


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()
