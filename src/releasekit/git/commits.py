"""What a repository tells of its commits; nothing in it is changed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.errors import CommandFailed
from releasekit.git.objects import Signature

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from releasekit.host.process import Processes

_TIMEOUT_S: Final = 120.0
_MOST_COMMITS: Final = 1_000
_MAX_SUBJECT_CHARS: Final = 300
_SEPARATOR: Final = "\x1f"
_OBJECT_ID: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Commit:
    """`subject` and `author` are text from outside."""

    id: str
    subject: str
    author: str


class Commits:
    """Those of the repository at `top`."""

    def __init__(self, top: Path, processes: Processes) -> None:
        self.top = top
        self._processes = processes

    async def exists(self, commit: str) -> bool:
        """Whether it is here: a clone may be shallow."""
        try:
            await self.git("cat-file", "-e", f"{commit}^{{commit}}")
        except CommandFailed:
            return False
        return True

    async def committer(self, commit: str) -> Signature:
        """Who committed it, and when. Raises CommandFailed for a commit that is not here."""
        form = _SEPARATOR.join(("%cn", "%ce", "%ct"))
        said = await self.git(
            "show", "--no-patch", "--no-show-signature", f"--format={form}", commit
        )
        name, email, moment = said.rstrip("\n").split(_SEPARATOR)
        return Signature(_plain(name), _plain(email), int(moment))

    async def file_at(self, commit: str, path: Path) -> bytes | None:
        """Its bytes as they were then; None where that commit has no such file, or is not here."""
        try:
            return await self.raw("cat-file", "blob", f"{commit}:{self.inside(path)}")
        except CommandFailed:
            return None

    async def names_at(self, commit: str, directory: Path) -> tuple[str, ...]:
        """What a directory had in it then; nothing where there was none."""
        inside = self.inside(directory)
        place = commit if inside == "." else f"{commit}:{inside}"
        try:
            listed = await self.git("ls-tree", "-z", "--name-only", place)
        except CommandFailed:
            return ()
        return tuple(filter(None, listed.split("\0")))

    async def local_tag(self, name: str) -> str:
        """The commit that a tag names here; empty where there is no such tag."""
        try:
            said = await self.git(
                "rev-parse",
                "--quiet",
                "--verify",
                "--end-of-options",
                f"refs/tags/{name}^{{commit}}",
            )
        except CommandFailed:
            return ""
        return said.strip()

    async def local_tags(self) -> dict[str, str]:
        """Every tag that is here, and the commit that it names."""
        form = "%(refname:strip=2)%1f%(objectname)%1f%(*objectname)"
        try:
            listed = await self.git("for-each-ref", f"--format={form}", "refs/tags")
        except CommandFailed:
            return {}
        rows = (line.split(_SEPARATOR) for line in listed.splitlines())
        return {row[0]: row[2] or row[1] for row in rows if len(row) == 3}

    async def head(self) -> str:
        """Empty where nothing is committed."""
        try:
            return (await self.git("rev-parse", "--quiet", "--verify", "HEAD^{commit}")).strip()
        except CommandFailed:
            return ""

    async def is_shallow(self) -> bool:
        """Whether the history ends before its beginning, as actions/checkout leaves it."""
        return (await self.git("rev-parse", "--is-shallow-repository")).strip() == "true"

    async def touching(
        self, directory: Path, *, since: str, until: str, without: Collection[Path] = ()
    ) -> tuple[Commit, ...]:
        """The last thousand that changed something in a directory, and not only in those below it
        that are `without`; newest first, no merges. An empty `since` is the beginning.

        None where the history is not here.
        """
        form = _SEPARATOR.join(("%H", "%s", "%an"))
        below = [path for path in without if path != directory and path.is_relative_to(directory)]
        try:
            said = await self.git(
                *("log", "--no-merges", f"--max-count={_MOST_COMMITS}", f"--format={form}"),
                *("--no-show-signature", "--end-of-options", until),
                *((f"^{since}",) if since else ()),
                *("--", f":(top,literal){self.inside(directory)}"),
                *(f":(top,literal,exclude){self.inside(path)}" for path in below),
            )
        except CommandFailed:
            return ()
        rows = (line.split(_SEPARATOR) for line in said.splitlines())
        return tuple(
            Commit(row[0], row[1][:_MAX_SUBJECT_CHARS], row[2])
            for row in rows
            if len(row) == 3 and _OBJECT_ID.fullmatch(row[0])
        )

    def inside(self, path: Path) -> str:
        """How git calls it; raises ValueError for one outside of the repository."""
        return path.relative_to(self.top).as_posix()

    async def git(self, *arguments: str, stdin: str | None = None) -> str:
        """What git prints. Raises CommandFailed."""
        done = await self._processes.run(
            ["git", *arguments], cwd=self.top, timeout_s=_TIMEOUT_S, stdin=stdin
        )
        return done.stdout

    async def raw(self, *arguments: str, stdin: str | None = None) -> bytes:
        """The bytes that git prints. Raises CommandFailed."""
        done = await self._processes.run(
            ["git", *arguments], cwd=self.top, timeout_s=_TIMEOUT_S, stdin=stdin
        )
        return done.raw

    async def blobs(self, ids: Iterable[str]) -> dict[str, bytes]:
        """The content of each; of one that is not here, nothing."""
        wanted: Sequence[str] = sorted(set(ids))
        if not wanted:
            return {}
        data = await self.raw("cat-file", "--batch", stdin="".join(f"{each}\n" for each in wanted))
        found: dict[str, bytes] = {}
        position = 0
        while position < len(data):
            end = data.index(b"\n", position)
            head = data[position:end].decode().split(" ")
            position = end + 1
            if len(head) == 3 and head[1] == "blob":
                size = int(head[2])
                found[head[0]] = data[position : position + size]
                position += size + 1
        return found


def _plain(text: str) -> str:
    """As git lets it stand in an object."""
    return "".join(each for each in text if each not in "<>\n\0")
