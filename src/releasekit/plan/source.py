"""Which state of the sources a release is made from."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import deque
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.aio import gather_all
from releasekit.errors import CommandFailed
from releasekit.git.commits import Commits, parse_id
from releasekit.git.trailers import find_base
from releasekit.host.files import repository_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from releasekit.host.process import Child, Printed, Processes

# What in-tree builds leave behind is not source.
LEFTOVERS = (
    ":(exclude,glob)**/*.egg-info/**",
    ":(exclude,glob)**/build/**",
    ":(exclude,glob)**/dist/**",
)
_PATIENCE_S: Final = 60.0
# https://git-scm.com/docs/git-status#_porcelain_format_version_2
_STATUS: Final = (
    *("--no-optional-locks", "status", "--porcelain=v2", "--branch", "--no-ahead-behind", "-z"),
    *("--untracked-files=normal", "--", "."),
)
# What is released now was merged lately.
_MOST_COMMITS: Final = 200


class Checkout(Struct, frozen=True):
    """`commit` is what is checked out, empty outside git. `+dirty.` and a hash follow it where
    there are `uncommitted` files: tracked ones that differ from it, and untracked ones that git
    does not ignore, by sorted names relative to the root.
    """

    commit: str = ""
    uncommitted: tuple[str, ...] = ()


async def read_checkout(
    root: Path, processes: Processes, *, beside: Iterable[Path] = ()
) -> Checkout:
    """Files in the directories `beside` are not sources."""
    with contextlib.suppress(CommandFailed):
        # Mostly nothing differs, which one process tells.
        told = await _git(processes, root, *_STATUS)
        head, differs = told.parse(_parse_status)
        if not differs:
            return Checkout(head)
    others_than = [
        f":(exclude,literal){path.relative_to(root).as_posix()}"
        for path in beside
        if path != root and path.is_relative_to(root)
    ]
    commands = (
        ("rev-parse", "HEAD"),
        ("diff", "HEAD", "--no-ext-diff", "--no-textconv", "--binary", "--", "."),
        ("ls-files", "--others", "--exclude-standard", "-z", "--", ".", *LEFTOVERS, *others_than),
    )
    try:
        head, changed, others = await gather_all(
            _git(processes, root, *arguments) for arguments in commands
        )
        named = ("diff", "HEAD", "--name-only", "--no-renames", "--relative", "-z", "--", ".")
        differing = await _git(processes, root, *named) if changed else ""
    except CommandFailed:
        return Checkout()
    names = [name for name in others.split("\0") if name]
    commit = head.parse(parse_id)
    if not changed and not names:
        return Checkout(commit)
    state = hashlib.sha256(changed.encode())
    for name in names:
        # It may have been removed since, and a build can make a path that is too long to be read.
        with contextlib.suppress(OSError):
            facts = (root / name).lstat()
            state.update(f"{name}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode())
    uncommitted = {*names, *differing.split("\0")} - {""}
    return Checkout(f"{commit}+dirty.{state.hexdigest()[:12]}", tuple(sorted(uncommitted)))


def _parse_status(told: str) -> tuple[str, bool]:
    """The commit, empty where nothing is committed, and whether anything differs from it.

    https://git-scm.com/docs/git-status#_branch_headers
    """
    first, *rest = told.split("\0")
    begin, _, oid = first.rpartition(" ")
    if begin != "# branch.oid":
        raise ValueError("no commit is named")
    differs = any(line and not line.startswith("# ") for line in rest)
    return "" if oid == "(initial)" else parse_id(oid), differs


async def has_base(root: Path, processes: Processes) -> bool:
    """Whether one of the last commits says on which commit its versions were decided; True also
    where git does not tell.
    """
    top = repository_of(root)
    if top is None:
        return False
    try:
        log = Commits(top, processes).run_git("log", f"--max-count={_MOST_COMMITS}", "--format=%B")
        return bool(find_base(await log))
    except CommandFailed:
        return True


class Head:
    """The commit that is checked out at `root`, looked at any number of times by one process; a
    look begins when the one before it has ended.
    """

    def __init__(self, root: Path, processes: Processes) -> None:
        self._root = root
        self._processes = processes
        self._child: Child | None = None
        self._asked: deque[asyncio.Future[str]] = deque()

    async def look(self) -> str:
        """Whatever files differ from it; empty where git does not say."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                # A process that has ended meanwhile says nothing; the next one does.
                return await self._look() or await self._look()
        except (CommandFailed, TimeoutError):
            return ""

    async def _look(self) -> str:
        # It reads the references anew for each line, and no replacement stands in for a commit.
        # https://git-scm.com/docs/git-cat-file#_batch_output
        if self._child is None:
            self._child = await self._processes.start(
                ["git", "--no-replace-objects", "cat-file", "--batch-check=%(objectname)"],
                cwd=self._root,
                receive=self._receive,
                ended=self._ended,
            )
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self._child.send("HEAD")
        line = await answer
        return "" if " " in line else line

    def _receive(self, line: str) -> None:
        if self._asked and not (answer := self._asked.popleft()).done():
            answer.set_result(line)

    def _ended(self, _tail: tuple[str, ...]) -> None:
        self._child = None
        while self._asked:
            self._receive("")


async def is_tracked(path: Path, repository: Path, processes: Processes) -> bool:
    """Whether git has this file in its index; False where git does not say."""
    name = path.relative_to(repository).as_posix()
    try:
        return bool(await _git(processes, repository, "ls-files", "--", f":(literal){name}"))
    except CommandFailed:
        return False


async def _git(processes: Processes, root: Path, *arguments: str) -> Printed:
    completed = await processes.run(["git", *arguments], cwd=root, timeout_s=_PATIENCE_S)
    return completed.stdout
