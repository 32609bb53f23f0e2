"""With which commit a package got its version, read off the manifests of earlier commits.

One `git log` lists which manifests changed when, and a few `git cat-file --batch` tell what they
said: packages share one process.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from releasekit.errors import CommandFailed
from releasekit.git.commits import parse_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from releasekit.git.commits import Commits
    from releasekit.model import Package, PackageId

# From a path of today to its bytes at another time, or None where there was no such file.
Read = Callable[[Path], "bytes | None"]
# What reads a manifest of another time, as `Versioning.read_version` and others do.
Reader = Callable[["Package", Read], str]

# How many commits are listed first, and at once at most: most versions are young.
_FIRST: Final = 64
_MOST: Final = 4_096
# Of one file, how many earlier states are read at once at most.
_AHEAD: Final = 64


class _Unread(Exception):
    """These contents are not known yet."""

    def __init__(self, *names: str) -> None:
        self.names = names


async def find_first_commits(
    wanted: Mapping[Package, Reader], commits: Commits
) -> dict[PackageId, str]:
    """The oldest commit on the first-parent line of HEAD from which on each package has had its
    version without a break.

    Empty where that cannot be known: its manifests do not say the version, or not as committed, or
    what is here of the history does not reach so far back. Renamed manifests are followed, as far
    as git knows them again. Raises CommandFailed.
    """
    walks = [_Walk(package, reader) for package, reader in wanted.items()]
    head = await commits.read_head() if walks else ""
    if head:
        line = _Line(commits, head)
        await line.visit(walks, _Walk.begin)
        listed: set[str] = set()
        while names := {name for walk in walks if walk.goes_on for name in walk.names} - listed:
            listed |= names
            await _follow([walk for walk in walks if walk.goes_on], line, listed)
    found = {walk.package.id: walk.first for walk in walks}
    cut = await commits.find_cut_off(filter(None, set(found.values()))) if head else frozenset()
    return {package: "" if first in cut else first for package, first in found.items()}


async def find_versions(
    wanted: Iterable[tuple[Package, Reader, str]], commits: Commits
) -> dict[tuple[PackageId, str], str]:
    """The version that each package had at each commit, empty where its manifests did not say."""
    waiting = {(package.id, commit): (package, at) for package, at, commit in wanted}
    lines = {commit: _Line(commits, commit) for _, commit in waiting}
    contents: dict[str, bytes | None] = {}
    found: dict[tuple[PackageId, str], str] = {}
    while waiting:
        unread: list[str] = []
        for (package_id, commit), (package, reader) in waiting.items():
            walk = _Walk(package, reader)
            lines[commit].contents = contents
            try:
                found[package_id, commit] = walk.read_version(lines[commit])
            except _Unread as more:
                unread += more.names
        waiting = {pair: each for pair, each in waiting.items() if pair not in found}
        contents |= await commits.read_blobs(unread)
    return found


class _Walk(Struct, eq=False):
    """One package on its way back: `at` is the index of the last change that it has passed, and
    `first`, in the end, the commit that its version begins with.
    """

    package: Package
    reader: Reader
    at: int = -1
    reads: set[Path] = field(default_factory=set)
    first: str = ""
    goes_on: bool = False
    ahead: int = 1

    @property
    def names(self) -> set[str]:
        return {path.name for path in self.reads}

    def begin(self, line: _Line) -> None:
        """At the start of the line: it goes on if the package has its version there."""
        version = self.read_version(line)
        self.goes_on = bool(version) and version == self.package.version

    def walk(self, line: _Line) -> None:
        """As far as the line is listed. Raises _Unread."""
        while self.goes_on and self.step(line):
            pass

    def read_version(self, line: _Line) -> str:
        """Before the change that it is at. Raises _Unread."""
        reads: set[Path] = set()

        def read(path: Path) -> bytes | None:
            reads.add(path)
            return line.read(path, self.at, self.ahead)

        try:
            version = self.reader(self.package, read)
        except _Unread:
            self.ahead = min(2 * self.ahead, _AHEAD)
            raise
        self.reads = reads
        return version

    def step(self, line: _Line) -> bool:
        """To the next change of what it reads; whether there was one."""
        changes = (line.find_change(path, self.at) for path in self.reads)
        following = [index for index in changes if index >= 0]
        if not following:
            return False
        passed, self.at = self.at, min(following)
        try:
            version = self.read_version(line)
        except _Unread:
            self.at = passed
            raise
        if version != self.package.version:
            self.first, self.goes_on = line.commits[self.at], False
        return True


class _Line(Struct, eq=False):
    """The first-parent line from `start` on, as far as it is listed: its commits, the newest first,
    and of each path of today the changes, as the index of the commit and the object it had before.
    """

    history: Commits
    start: str
    commits: list[str] = field(default_factory=list)
    following: str = ""
    changes: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    # What a path of that time is called today: directories are renamed.
    today: dict[str, set[str]] = field(default_factory=dict)
    contents: dict[str, bytes | None] = field(default_factory=dict)

    def read(self, path: Path, at: int, ahead: int) -> bytes | None:
        """A path of today before the change `at`. Raises _Unread, which names what is likely to be
        asked for next as well.
        """
        place = self._locate(path)
        if not place:
            return None
        changes = self.changes.get(place, [])
        position = bisect.bisect_right(changes, at, key=lambda change: change[0]) - 1
        name = changes[position][1] if position >= 0 else f"{self.start}:{place}"
        if name and name not in self.contents:
            later = [old for _, old in changes[position + 1 : position + ahead] if old]
            raise _Unread(name, *(old for old in later if old not in self.contents))
        return self.contents[name] if name else None

    def find_change(self, path: Path, at: int) -> int:
        """The index of the next change of a path of today; -1 where there is none."""
        changes = self.changes.get(self._locate(path), [])
        position = bisect.bisect_right(changes, at, key=lambda change: change[0])
        return changes[position][0] if position < len(changes) else -1

    def _locate(self, path: Path) -> str:
        inside = path.is_relative_to(self.history.top)
        return path.relative_to(self.history.top).as_posix() if inside else ""

    async def visit(self, walks: Iterable[_Walk], step: Callable[[_Walk, _Line], None]) -> None:
        """Take this `step` of each walk, again for as long as it reads what is not known yet."""
        waiting = list(walks)
        while waiting:
            unread: list[str] = []
            still: list[_Walk] = []
            for walk in waiting:
                try:
                    step(walk, self)
                except _Unread as more:
                    unread += more.names
                    still.append(walk)
            self.contents |= await self.history.read_blobs(unread)
            waiting = still

    async def list_more(self, names: Iterable[str], most: int) -> int:
        """How many commits were asked for, fewer than `most` where each changes many files."""
        try:
            log = await self.history.log_first_parents(self.following, names, most)
        except CommandFailed:
            if most == 1:
                raise
            return await self.list_more(names, max(1, most // 8))
        parent = ""
        changes = log.parse(lambda text: list(_parse_log(text)))
        for commit, parent, entries in changes:  # noqa: B007
            self._add(commit, entries)
        self.following = parent if len(changes) == most else ""
        return most

    def _add(self, commit: str, entries: list[tuple[str, str, str]]) -> None:
        index = len(self.commits)
        self.commits.append(commit)
        renamed: list[tuple[str, str, set[str]]] = []
        for old, path, source in entries:
            names = self.today.get(path, {path})
            for name in names:
                self.changes.setdefault(name, []).append((index, old))
            if source:
                renamed.append((path, source, names))
        for path, _, _ in renamed:
            self.today[path] = set()
        for _, source, names in renamed:
            self.today[source] = self.today.get(source, {source}) | names


async def _follow(walks: list[_Walk], line: _Line, names: set[str]) -> None:
    """Along the line, from its start, with the changes of all files of these names."""
    line.commits, line.changes, line.today, line.following = [], {}, {}, line.start
    for walk in walks:
        walk.at = -1
    await line.visit(walks, _Walk.begin)  # what it reads there, which is known by now
    most = _FIRST
    while line.following and any(walk.goes_on for walk in walks):
        most = min(8 * await line.list_more(names, most), _MOST)
        await line.visit([walk for walk in walks if walk.goes_on], _Walk.walk)
        if any(walk.goes_on and not walk.names <= names for walk in walks):
            return  # those read what is not listed


def _parse_log(log: str) -> Iterator[tuple[str, str, list[tuple[str, str, str]]]]:
    """Commit, first parent, and what it changed: the object before, the path, and what that was
    called where it is renamed. https://git-scm.com/docs/git-diff#_raw_output_format
    """
    fields = iter(log.split("\0"))
    commit, parent = "", ""
    entries: list[tuple[str, str, str]] = []
    for text in fields:
        token = text.lstrip("\n")
        if token.startswith("commit "):
            if commit:
                yield commit, parent, entries
            commit, *parents = map(parse_id, token.split()[1:])
            parent, entries = (parents or [""])[0], []
        elif token.startswith(":"):
            _, _, old, _, status = token.split(" ")
            path = next(fields, "")
            source = ""
            if status.startswith("R"):
                source, path = path, next(fields, "")
            entries.append(("" if not old.strip("0") else old, path, source))
        elif token:
            raise ValueError("neither a commit nor a change")
    if commit:
        yield commit, parent, entries
