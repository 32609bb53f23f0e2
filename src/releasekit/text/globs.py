"""Globs of paths below a root, as manifests and options have them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Self

from releasekit.errors import MembersError

if TYPE_CHECKING:
    from collections.abc import Iterable

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

    def reach(self, parts: Iterable[str]) -> frozenset[int]:
        """Empty where no path below these is one that it names."""
        reached = self.start
        for part in parts:
            reached = self.step(reached, part)
        return reached

    def may_name_below(self, parts: Iterable[str], *, at_any_depth: bool = True) -> bool:
        """Whether it names these, or a path below them; without `at_any_depth`, not by a `**`."""
        return (at_any_depth or None not in self.segments) and bool(self.reach(parts))

    def matches(self, parts: Iterable[str]) -> bool:
        return len(self.segments) in self.reach(parts)

    def _past_stars(self, positions: Iterable[int]) -> frozenset[int]:
        found = set()
        for start in positions:
            position = start
            found.add(position)
            while position < len(self.segments) and self.segments[position] is None:
                position += 1
                found.add(position)
        return frozenset(found)
