"""The directories that globs of a workspace, or options, name, all inside of the workspace."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Self

from releasekit.errors import MembersError
from releasekit.host.files import inside, is_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence


MAX_VISITED: Final = 100_000
MAX_MEMBERS: Final = 10_000
MAX_GLOBS: Final = 1_000
MAX_CHARS: Final = 1_000
MAX_DEPTH: Final = 32


@dataclass(frozen=True, slots=True)
class Glob:
    """`segments` holds None for `**`. A path reaches a set of positions in them."""

    segments: tuple[re.Pattern[str] | None, ...]
    negated: bool = False

    @classmethod
    def parse(cls, pattern: str, *, where: str, negated: bool = False) -> Self:
        """Raises ConfigError for one that leads out; `where` is the key that holds it."""
        path = PurePosixPath(pattern)
        if path.is_absolute() or ".." in path.parts:
            raise MembersError(
                f"{where}: {pattern!r} leaves the workspace",
                hint="Write a path relative to the workspace's root, without '..'.",
            )
        if len(pattern) > MAX_CHARS or len(path.parts) > MAX_DEPTH:
            raise MembersError(
                f"{where}: {pattern[:MAX_CHARS]!r} is deeper than {MAX_DEPTH} directories, or "
                f"longer than {MAX_CHARS} characters"
            )
        segments = (None if part == "**" else re.compile(translate(part)) for part in path.parts)
        return cls(tuple(segments), negated)

    @property
    def start(self) -> frozenset[int]:
        return self._past_stars({0})

    def step(self, reached: Iterable[int], name: str, *, link: bool = False) -> frozenset[int]:
        """The positions one directory further down; `**` follows no link."""
        following = set()
        for position in reached:
            if position < len(self.segments):
                segment = self.segments[position]
                if segment is None:
                    following |= set() if link else {position}
                elif segment.fullmatch(name):
                    following.add(position + 1)
        return self._past_stars(following)

    def matches(self, parts: Iterable[str]) -> bool:
        reached = self.start
        for part in parts:
            reached = self.step(reached, part)
        return len(self.segments) in reached

    def _past_stars(self, positions: Iterable[int]) -> frozenset[int]:
        found = set()
        for start in positions:
            position = start
            found.add(position)
            while position < len(self.segments) and self.segments[position] is None:
                position += 1
                found.add(position)
        return frozenset(found)


def refuse_too_many(patterns: Collection[str], *, where: str) -> None:
    if len(patterns) > MAX_GLOBS:
        raise MembersError(f"{where} holds more than {MAX_GLOBS} globs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Finds directories with a file `marker`. Does not enter the names in `skipped`, nor, without
    `links`, symbolic links.
    """

    marker: str
    skipped: frozenset[str] = frozenset()
    links: bool = False

    def directories(self, root: Path, globs: Sequence[Glob], *, where: str) -> list[Path]:
        """The directories that a glob names, sorted."""
        found = []
        for visited, (directory, is_named) in enumerate(self._walk(root, globs)):
            if visited > MAX_VISITED:
                raise MembersError(
                    f"{where} searches more than {MAX_VISITED} directories",
                    hint="Name them more closely; '**' also searches what was installed there.",
                )
            if is_named and os.path.lexists(directory / self.marker):
                found.append(directory)
            if len(found) > MAX_MEMBERS:
                raise MembersError(f"{where} names more than {MAX_MEMBERS} packages")
        return sorted(found)

    def _walk(self, root: Path, globs: Sequence[Glob]) -> Iterator[tuple[Path, bool]]:
        """Every directory that a glob names or leads through, and whether one names it."""
        pending = [(root, 0, [(glob, glob.start) for glob in globs])]
        while pending:
            directory, depth, reached = pending.pop()
            yield directory, any(len(glob.segments) in positions for glob, positions in reached)
            leading = [(glob, used) for glob, used in reached if min(used) < len(glob.segments)]
            if not leading or depth == MAX_DEPTH:
                continue
            with os.scandir(directory) as entries:
                below = [entry for entry in entries if entry.is_dir(follow_symlinks=self.links)]
            for entry in below:
                link = entry.is_symlink()
                steps = [(glob, glob.step(used, entry.name, link=link)) for glob, used in leading]
                following = [(glob, used) for glob, used in steps if used]
                if following and entry.name not in self.skipped:
                    pending.append((Path(entry.path), depth + 1, following))


def named_roots(
    root: Path, names: Iterable[str], manifests: Sequence[str], *, where: str
) -> list[Path]:
    """The roots of workspaces below `root` that the option at `where` names, resolved.

    Raises ConfigError for one that leads out of `root`, or has none of `manifests`.
    """
    found = []
    for name in names:
        directory = inside(root, root / name, where=f"{where}: {name!r}")
        if not any(is_file(directory / manifest) for manifest in manifests):
            raise MembersError(
                f"{where}: {name!r} has no {' or '.join(manifests)}",
                hint="Remove the entry, or correct the path.",
            )
        found.append(directory)
    return found
