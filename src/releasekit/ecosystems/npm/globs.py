"""Which directories the globs of a workspace name; never one outside the workspace.

As npm's map-workspaces does it: https://github.com/npm/map-workspaces. Links are not followed, and
node_modules is not looked into.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MAX_VISITED: Final = 100_000
MAX_DEPTH: Final = 32
MANIFEST: Final = "package.json"
_SKIPPED: Final = frozenset({"node_modules", "bower_components", ".git", ".releasekit"})
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Glob:
    """`segments` holds None for `**`."""

    segments: tuple[re.Pattern[str] | None, ...]
    negated: bool = False

    def matches(self, parts: Sequence[str]) -> bool:
        return len(self.segments) in self._positions(parts)

    def leads_to(self, parts: Sequence[str]) -> bool:
        """Whether something below the directory `parts` could match."""
        return any(position < len(self.segments) for position in self._positions(parts))

    def _positions(self, parts: Sequence[str]) -> set[int]:
        """How many segments can have been used up by all of `parts`."""
        reached = self._past_stars({0})
        for part in parts:
            following = set()
            for position in reached:
                if position == len(self.segments):
                    continue
                segment = self.segments[position]
                if segment is None:
                    following.add(position)
                elif segment.fullmatch(part):
                    following.add(position + 1)
            reached = self._past_stars(following)
        return reached

    def _past_stars(self, positions: Iterable[int]) -> set[int]:
        found = set()
        for start in positions:
            position = start
            found.add(position)
            while position < len(self.segments) and self.segments[position] is None:
                position += 1
                found.add(position)
        return found


def parse(pattern: str, *, where: str) -> list[Glob]:
    """One glob for each alternative of its braces; raises ConfigError for one that leads out."""
    negated = pattern.startswith("!")
    globs = []
    for text in _without_braces(pattern.removeprefix("!")):
        path = PurePosixPath(text)
        if path.is_absolute() or ".." in path.parts or len(path.parts) > MAX_DEPTH:
            raise ConfigError(
                f"{where}: {pattern!r} leaves the workspace",
                hint="Write a path relative to the workspace's root, without '..'.",
            )
        segments = tuple(
            None if part == "**" else re.compile(translate(part)) for part in path.parts
        )
        globs.append(Glob(segments, negated))
    return globs


def directories(root: Path, globs: Sequence[Glob], *, where: str) -> list[Path]:
    """Directories with a package.json that the globs name, the last one that fits deciding."""
    return [
        root.joinpath(*parts)
        for parts in _walk(root, [glob for glob in globs if not glob.negated], where)
        if _chosen(globs, parts)
    ]


def _chosen(globs: Sequence[Glob], parts: Sequence[str]) -> bool:
    chosen = False
    for glob in globs:
        if glob.matches(parts):
            chosen = not glob.negated
    return chosen


def _walk(root: Path, globs: Sequence[Glob], where: str) -> Iterator[tuple[str, ...]]:
    pending: list[tuple[str, ...]] = [()]
    visited = 0
    while pending:
        parts = pending.pop()
        visited += 1
        if visited > MAX_VISITED:
            raise ConfigError(f"{where} searches more than {MAX_VISITED} directories")
        with os.scandir(root.joinpath(*parts)) as entries:
            names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        if MANIFEST in names:
            yield parts
        pending += [
            (*parts, name)
            for name, is_directory in sorted(names.items(), reverse=True)
            if is_directory
            and name not in _SKIPPED
            and len(parts) < MAX_DEPTH
            and any(glob.leads_to((*parts, name)) or glob.matches((*parts, name)) for glob in globs)
        ]


def _without_braces(pattern: str) -> list[str]:
    found = _BRACES.search(pattern)
    if found is None:
        return [pattern]
    before, after = pattern[: found.start()], pattern[found.end() :]
    return [
        text
        for alternative in found[1].split(",")
        for text in _without_braces(f"{before}{alternative}{after}")
    ]
