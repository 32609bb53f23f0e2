"""What a repository has committed, asked of git and never changed."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.errors import CommandFailed, ConfigError
from releasekit.git.objects import Signature
from releasekit.host.streams import MAX_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from releasekit.host.process import Printed, Processes

TIMEOUT_S: Final = 300.0
MOST_COMMITS: Final = 1_000
_AT_ONCE: Final = 500
_ID: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ENVIRONMENT: Final = {
    # Otherwise reading writes what it learns about the working tree to the index.
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
# As everybody sees them, independent of the user's settings.
_LOG: Final = (
    *("-c", "log.showRoot=true", "log", "-z", "--no-show-signature", "--no-mailmap"),
    *("--no-color", "--no-ext-diff", "--no-textconv", "--encoding=UTF-8"),
)


class Commit(Struct, frozen=True):
    """`subject` is the first line of its message, `author` the name."""

    id: str
    subject: str
    author: str


class File(Struct, frozen=True):
    """What a commit has under a path: its mode, as `100755`, and the id of its blob."""

    mode: str
    blob: str


class Commits:
    """Of the repository at `top`, and of a directory of `objects` besides, where that is given.
    `head` is the commit whose history it is about. Raises CommandFailed where git does not answer.
    """

    def __init__(
        self, top: Path, processes: Processes, objects: Path | None = None, *, head: str = "HEAD"
    ) -> None:
        self.top, self.head = top, head
        self._processes = processes
        self._environment = _ENVIRONMENT | (
            {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects)} if objects else {}
        )
        self._committers: dict[str, Signature] = {}

    async def find_existing(self, ids: Iterable[str]) -> frozenset[str]:
        """Those of them that are commits and here: a shallow clone has few of them."""
        asked = [each for each in dict.fromkeys(ids) if _ID.fullmatch(each)]
        if not asked:
            return frozenset()
        told = await self.run_git(
            *("cat-file", "--batch-check=%(objectname) %(objecttype)"),
            stdin="".join(f"{each}\n" for each in asked),
        )
        # It says of each what it is, or that it is missing.
        kinds = dict(told.parse_rows(_parse_pair))
        return told.parse(lambda _: frozenset(each for each in asked if kinds[each] == "commit"))

    async def read_committers(self, ids: Iterable[str]) -> dict[str, Signature]:
        """Of commits that are here, by one process."""
        wanted = list(dict.fromkeys(ids))
        asked = [each for each in wanted if each not in self._committers]
        if asked:
            # Names may hold any character but NUL, and dates may be none.
            form = "--format=%H%x00%ct%x00%cn%x00%ce"
            told = await self.run_git(
                *_LOG, "--no-walk", form, "--stdin", stdin="".join(f"{each}\n" for each in asked)
            )
            self._committers |= told.parse(_parse_committers)
            told.parse(lambda _: [self._committers[each] for each in asked])
        return {each: self._committers[each] for each in wanted}

    async def read_head(self) -> str:
        """The commit that it is about; empty where nothing is committed."""
        try:
            asked = ("rev-parse", "--verify", "--quiet", f"{self.head}^{{commit}}")
            return (await self.run_git(*asked)).parse(parse_id)
        except CommandFailed:
            return ""

    async def require_head(self) -> str:
        """As `read_head`; raises ConfigError where nothing is committed."""
        if commit := await self.read_head():
            return commit
        raise ConfigError(f"{self.top} has no commit yet", hint="Commit something first.")

    async def list_tags(self) -> dict[str, str]:
        """All that are here, and the commit that each leads to."""
        form = "%(refname:strip=2)%01%(*objecttype)%01%(objectname)%01%(*objectname)"
        listed = await self.run_git("for-each-ref", f"--format={form}", "refs/tags")
        rows = listed.parse_rows(_parse_tag)
        found = {name: oid for name, _, oid in rows}
        # Of a tag of a tag, git 2.39 says only the next one.
        if nested := [name for name, leads_to, _ in rows if leads_to == "tag"]:
            asked = "".join(f"{found[name]}^{{commit}}\n" for name in nested)
            told = await self.run_git("cat-file", "--batch-check=%(objectname)", stdin=asked)
            found |= told.parse(lambda text: dict(zip(nested, text.splitlines(), strict=True)))
        return found

    async def is_shallow(self) -> bool:
        told = await self.run_git("rev-parse", "--is-shallow-repository")
        return told.parse(lambda text: {"true": True, "false": False}[text.strip()])

    async def find_cut_off(self, ids: Iterable[str]) -> frozenset[str]:
        """Those of these commits that have parents of which none is here, as a shallow clone ends.

        There git shows them as if they had none, but for the object itself.
        """
        if not await self.is_shallow():
            return frozenset()
        shown = await self.read_blobs(ids)
        parents = {
            each: [
                line[7:]
                for line in data.decode().partition("\n\n")[0].split("\n")
                if line.startswith("parent ")
            ]
            for each, data in shown.items()
            if data is not None
        }
        here = await self.find_existing(oid for each in parents.values() for oid in each[:1])
        return frozenset(each for each, above in parents.items() if above and above[0] not in here)

    def name_object(self, commit: str, path: Path) -> str:
        """What git calls the file of a commit, `path` absolute or relative to `top`; no process."""
        return f"{commit}:{self._below_top(path)}"

    def _below_top(self, path: Path) -> str:
        return (path.relative_to(self.top) if path.is_absolute() else path).as_posix()

    async def read_blobs(self, names: Iterable[str]) -> dict[str, bytes | None]:
        """What these objects hold, by name, few processes for all; None for what is not here, and
        for a directory. Bytes that are not UTF-8 come as U+FFFD.
        """
        found: dict[str, bytes | None] = dict.fromkeys(names)
        # Git takes one name a line; a caller asks again for what it gets no answer to.
        asked = [each for each in found if "\n" not in each]
        for start in range(0, len(asked), _AT_ONCE):
            found |= await self._blobs(asked[start : start + _AT_ONCE])
        return found

    async def _blobs(self, names: Sequence[str]) -> dict[str, bytes | None]:
        # No file holds what is made up now. Git says of it that it is missing, behind each file.
        mark = f"no-{secrets.token_hex(16)}"
        try:
            told = await self.run_git(
                *("cat-file", f"--batch={mark} %(objecttype)"),
                stdin="".join(f"{each}\n{mark}\n" for each in names),
            )
        except CommandFailed:
            if len(names) == 1:
                return {names[0]: None}  # larger than any manifest
            sizes = await self.run_git(
                *("cat-file", "--batch-check=%(objectsize)"),
                stdin="".join(f"{each}\n" for each in names),
            )
            # Of what is not here, git says so in the place of a size.
            small = [
                name
                for name, size in zip(names, sizes.split("\n"), strict=False)
                if not (size.isdecimal() and int(size) > MAX_OUTPUT)
            ]
            if len(small) < len(names):
                return dict.fromkeys(names) | (await self._blobs(small) if small else {})
            half = len(names) // 2
            return await self._blobs(names[:half]) | await self._blobs(names[half:])

        def parse(told: str) -> dict[str, bytes | None]:
            found: dict[str, bytes | None] = {}
            for name, part in zip(names, told.split(f"{mark} missing\n")[:-1], strict=True):
                head, _, content = part.partition("\n")
                is_read = head in {f"{mark} blob", f"{mark} commit"}
                found[name] = content.removesuffix("\n").encode() if is_read else None
            return found

        return told.parse(parse)

    async def list_commits(
        self, paths: Iterable[Path], *, since: str, until: str, without: Iterable[Path]
    ) -> tuple[Commit, ...]:
        """What changed these files and directories and not only those `without`; merges are left
        out, and all that `since` has, where that is not empty. The newest first.
        """
        if until.startswith("-"):
            return ()
        told = await self.run_git(
            *(*_LOG, "--no-merges", f"--max-count={MOST_COMMITS}", "--format=%H%x01%s%x01%an"),
            *(until, *([f"^{since}"] if since else []), "--"),
            *(self._pathspec(path, "top,literal") for path in paths),
            *(self._pathspec(path, "top,exclude,literal") for path in without),
        )
        return tuple(told.parse_rows(_parse_commit, end="\0"))

    def _pathspec(self, path: Path, magic: str) -> str:
        """https://git-scm.com/docs/gitglossary#Documentation/gitglossary.txt-aiddefpathspecapathspec"""
        place = self._below_top(path)
        return f":({magic}){'' if place == '.' else place}"

    async def log_first_parents(self, start: str, names: Iterable[str], most: int) -> Printed:
        """The commits from `start` along the first parents that change files of these names, at
        most so many, as `versions` reads them.
        """
        quoted = (re.sub(r"([\\*?\[])", r"\\\1", name) for name in names)
        specs = [f":(top,glob)**/{name}" for name in quoted]
        return await self.run_git(
            *(*_LOG, "--first-parent", "-m", "--raw", "--no-abbrev", "-M"),
            *(f"--max-count={most}", "--format=commit %H %P", start, "--", *specs),
        )

    async def log_files(self, ids: Iterable[str]) -> Printed:
        """What these commits say, and the files that each changes since its first parent, as
        `versions/history.py` reads them.
        """
        return await self.run_git(
            *(*_LOG, "--no-walk=unsorted", "--diff-merges=first-parent", "--name-status"),
            *("--no-renames", "--format=commit %H %P%x00%ct%x00%B", "--stdin"),
            stdin="".join(f"{each}\n" for each in ids),
        )

    async def list_files(self, commit: str, paths: Iterable[str]) -> dict[str, File]:
        """Those of these paths, relative to `top`, that the commit has."""
        asked = list(paths)
        found: dict[str, File] = {}
        for start in range(0, len(asked), _AT_ONCE):
            some = asked[start : start + _AT_ONCE]
            told = await self.run_git("ls-tree", "-z", "--full-tree", commit, "--", *some)
            found.update(told.parse_rows(_parse_file, end="\0"))
        return found

    async def list_changed(self, before: str, after: str) -> dict[str, str]:
        """The files that differ, each with the id of its blob; empty for one that is gone."""
        told = await self.run_git(
            *("diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", before, after)
        )
        return told.parse(_parse_changed)

    async def is_in_history(self, commit: str, *, of: str) -> bool:
        """Whether `commit` is an ancestor of the commit `of`, or the same one."""
        told = await self.run_git("rev-list", "--max-count=1", commit, f"^{of}")
        return not told.parse_rows(parse_id)

    async def list_parents(self, *wanted: str) -> dict[str, list[str]]:
        """Of the commits that `git rev-list` lists for these arguments, in its order."""
        told = await self.run_git("rev-list", "--parents", *wanted)
        rows = told.parse_rows(lambda row: [parse_id(each) for each in row.split(" ")])
        return {row[0]: row[1:] for row in rows}

    async def run_git(self, *arguments: str, stdin: str | None = None) -> Printed:
        done = await self._processes.run(
            ["git", "--no-replace-objects", *arguments],
            cwd=self.top,
            env=self._environment,
            timeout_s=TIMEOUT_S,
            stdin=stdin,
        )
        return done.stdout


def parse_id(text: str) -> str:
    """That of an object, which ends with its line. Raises ValueError for any other text."""
    name = text.removesuffix("\n")
    if not _ID.fullmatch(name):
        raise ValueError("not the id of an object")
    return name


def parse_ref_name(text: str) -> str:
    """That of a reference, as above."""
    name = text.removesuffix("\n")
    if not name.startswith("refs/") or "\n" in name:
        raise ValueError("not the name of a reference")
    return name


def _parse_pair(line: str) -> tuple[str, str]:
    name, kind = line.split(" ")
    return parse_id(name), kind


def _parse_committers(told: str) -> dict[str, Signature]:
    found = {}
    fields = told.split("\0")
    for start in range(0, len(fields) - 3, 4):
        oid, time_s, name, email = fields[start : start + 4]
        known = time_s.isascii() and time_s.isdigit()
        found[parse_id(oid.strip("\n"))] = Signature(name, email, int(time_s) if known else 0)
    return found


def _parse_tag(line: str) -> tuple[str, str, str]:
    """With what a tag leads to, or the next one."""
    name, leads_to, oid, peeled = line.split("\x01")
    return name, leads_to, parse_id(peeled or oid)


def _parse_commit(row: str) -> Commit:
    oid, *subject, author = row.strip("\n").split("\x01")
    return Commit(parse_id(oid), "\x01".join(subject), author)


def _parse_file(row: str) -> tuple[str, File]:
    """https://git-scm.com/docs/git-ls-tree#_output_format"""
    about, _, path = row.partition("\t")
    mode, _, blob = about.split(" ")
    return path, File(mode, parse_id(blob))


def _parse_changed(told: str) -> dict[str, str]:
    """https://git-scm.com/docs/git-diff-tree#_raw_output_format"""
    fields = told.removesuffix("\0").split("\0") if told else []
    found = {}
    for about, path in zip(fields[::2], fields[1::2], strict=True):
        _, _, _, blob, status = about.split(" ")
        found[path] = "" if status == "D" else parse_id(blob)
    return found
