"""Globs of paths below a root, as manifests and options have them: whether they name a path, and
the directories that they name.

Tools differ in what a `*` passes (a slash where uv excludes: `matches_path`), in the links and
directories that they enter (`Search`), and in bare names (`Patterns`). Braces are npm's alone.
"""

from __future__ import annotations

import os
import re
from fnmatch import translate
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from releasekit.errors import MembersError
from releasekit.fields import replace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

MAX_CHARS: Final = 1_000
MAX_DEPTH: Final = 32
MAX_VISITED: Final = 100_000
MAX_MEMBERS: Final = 10_000
MAX_GLOBS: Final = 1_000
# Every pattern is tried on every name: about a second of work.
_MAX_COMPARED: Final = 200_000
WILDCARD: Final = re.compile(r"[*?\[]")


class Glob(Struct, frozen=True):
    """`segments` holds None for `**`. A path reaches a set of positions in them."""

    segments: tuple[re.Pattern[str] | None, ...]
    negated: bool = False

    @classmethod
    def parse(cls, text: str, *, where: str, signed: bool = False) -> Self:
        """Where they are `signed`, a `!` at the start negates it. Raises ConfigError for one that
        leads out; `where` is the key that holds it.
        """
        pattern = text.removeprefix("!") if signed else text
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
        return cls(tuple(segments), negated=pattern != text)

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

    def covers(self, parts: Sequence[str], *, is_directory: bool = False) -> bool:
        """Whether it names these, or a directory above them; of an `is_directory`, that alone."""
        reached, end = self.start, len(self.segments)
        for depth, part in enumerate(parts, start=1):
            reached = self.step(reached, part)
            if end in reached and not (is_directory and depth == len(parts)):
                return True
        return False

    def _past_stars(self, positions: Iterable[int]) -> frozenset[int]:
        found = set()
        for start in positions:
            position = start
            found.add(position)
            while position < len(self.segments) and self.segments[position] is None:
                position += 1
                found.add(position)
        return frozenset(found)


def decide(globs: Iterable[Glob], parts: Sequence[str]) -> bool | None:
    """Whether the last one that names these is not negated; None where none of them does."""
    said = [not glob.negated for glob in globs if glob.matches(parts)]
    return said[-1] if said else None


def matches_path(path: str, patterns: Iterable[str]) -> bool:
    """Whether any of them fits all of a path, where a `*` passes a slash, too. Raises ConfigError
    for one that is too long.
    """
    return any(_compile_path(pattern).fullmatch(path) for pattern in patterns)


@lru_cache(maxsize=32_768)
def _compile_path(pattern: str) -> re.Pattern[str]:
    if len(pattern) > MAX_CHARS:
        raise MembersError(f"the glob {pattern[:100]!r}… is longer than {MAX_CHARS} characters")
    return re.compile(translate(str(PurePosixPath(pattern))))


def refuse_too_many(patterns: Collection[str], *, where: str) -> None:
    if len(patterns) > MAX_GLOBS:
        raise MembersError(f"{where} holds more than {MAX_GLOBS} globs")


class Search(Struct, frozen=True, kw_only=True):
    """Finds directories with a file of any of these `markers`. Does not enter the names in
    `skipped`, nor, without `links`, symbolic links.
    """

    markers: tuple[str, ...]
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
            if is_named and any(os.path.lexists(directory / each) for each in self.markers):
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


class Patterns(Struct, frozen=True):
    """Lines like those of a .gitignore: the last one that names a path, or a directory above it,
    decides. Alternatives, as in braces, match anything, and so too much rather than too little.
    """

    globs: tuple[tuple[Glob, bool], ...]

    @classmethod
    def parse(cls, lines: Iterable[object], *, rooted: bool = False) -> Self:
        """With `rooted`, a bare name is at the root only. Patterns that lead out name nothing."""
        found = []
        for line in lines:
            text = line.strip() if isinstance(line, str) else ""
            if not text or text.startswith("#"):
                continue
            negated, text = text.startswith("!"), text.removeprefix("!")
            is_directory = text.endswith(("/", "/**", "/**/*"))
            text = text.removeprefix("./")
            is_bare = "/" not in text.removesuffix("/")
            text = re.sub(r"(?:/\*\*(?:/\*)?|/)$", "", text)
            if is_bare and not rooted:
                text = f"**/{text}"
            text = re.sub(r"[@!?*+]?\([^()]*\)|\{[^{}]*\}", "*", text.removeprefix("/"))
            try:
                glob = replace(Glob.parse(text, where=""), negated=negated)
                found.append((glob, is_directory))
            except MembersError:
                continue
        return cls(tuple(found))

    def names(self, path: str) -> bool:
        parts = path.split("/")
        named = False
        for glob, is_directory in self.globs:
            if glob.negated == named and glob.covers(parts, is_directory=is_directory):
                named = not glob.negated
        return named

    def may_name_below(self, directory: str) -> bool:
        """Whether they name a path in a directory, whatever it has; it ends with a slash."""
        parts = directory.rstrip("/").split("/")
        return any(
            glob.covers(parts) or bool(glob.reach(parts))
            for glob, _ in self.globs
            if not glob.negated
        )

    def too_many_for(self, names: Collection[str]) -> bool:
        return len(self.globs) * len(names) > _MAX_COMPARED
