"""The commits since the last releases: what each says and which files it changes. What a merge
brought along belongs to it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.aio import gather_all
from releasekit.errors import CommandFailed, PlanError
from releasekit.git.commits import parse_id
from releasekit.git.trailers import find_base
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from releasekit.git.commits import Commits

# So many fit into what is read of one process, as long as most of them change a few files.
_AT_ONCE: Final = 5_000
_SIDE_BY_SIDE: Final = 4
# A person commits to the branch of a pull request, or merges its base into it, so often at most.
_MOST_UPDATES: Final = 10


class CommitChange(Struct, frozen=True, kw_only=True):
    """One commit. `files` are those that differ from its first parent, relative to the top of the
    repository, and `added` those of them that were not there.
    """

    commit: str
    parents: tuple[str, ...]
    time_s: int
    message: str
    files: tuple[str, ...]
    added: tuple[str, ...]


class Unit(Struct, frozen=True, kw_only=True):
    """One commit of the first-parent line, `index` 0 for HEAD, and what it merged, the newest
    first.
    """

    index: int
    change: CommitChange
    merged: tuple[CommitChange, ...] = ()


class MainLine(Struct, frozen=True):
    """The first-parent line of HEAD, as `git` has it, the newest first, with all parents of each
    commit. A shallow one ends where the clone does.
    """

    git: Commits
    commits: Sequence[str]
    parents: Mapping[str, Sequence[str]]
    indexes: Mapping[str, int]
    is_shallow: bool


async def read_line(commits: Commits) -> MainLine:
    """Raises CommandFailed, also where nothing is committed."""
    parents = await commits.list_parents("--first-parent", commits.head, "--")
    if not parents:
        raise CommandFailed(f"git lists no commit of {commits.head}")
    indexes = {each: index for index, each in enumerate(parents)}
    return MainLine(commits, tuple(parents), parents, indexes, await commits.is_shallow())


async def read_units(line: MainLine, count: int) -> list[Unit]:
    """The newest `count` of the line, the newest first. Raises CommandFailed, and PlanError where
    the clone lacks what they have merged.
    """
    if not count:
        return []
    # What the next one has is no change of these.
    rest = [f"^{line.commits[count]}"] if count < len(line.commits) else []
    parents = await line.git.list_parents("--topo-order", line.git.head, *rest, "--")
    # git shows where a clone was cut off as a commit that adds all files.
    if await line.git.find_cut_off(each for each, above in parents.items() if not above):
        raise make_shallow_error()
    changes = {each.commit: each for each in await read_changes(line.git, tuple(parents))}
    if missing := parents.keys() - changes.keys():
        raise CommandFailed(f"git shows nothing of the commit {min(missing)}")
    order = {commit: number for number, commit in enumerate(parents)}
    units = []
    taken: set[str] = set()
    # The oldest first: what an older one has merged, a younger one has not.
    for index in reversed(range(count)):
        commit = line.commits[index]
        taken.add(commit)
        merged = []
        pending = list(line.parents[commit][1:])
        while pending:
            each = pending.pop()
            if each not in taken and each in changes:
                taken.add(each)
                merged.append(changes[each])
                pending += changes[each].parents
        merged.sort(key=lambda change: order[change.commit])
        units.append(Unit(index=index, change=changes[commit], merged=tuple(merged)))
    return units[::-1]


async def find_adding(line: MainLine, paths: Iterable[str]) -> list[Unit]:
    """The commits of the line that change these files, the newest first, whatever their age. That
    with which a shallow clone ends seems to add all, and is left out.
    """
    asked = [each for each in paths if "\n" not in each]
    if not asked:
        return []
    told = await line.git.run_git(
        *("--literal-pathspecs", "rev-list", "--first-parent", "--stdin"),
        stdin="\n".join((line.git.head, "--", *asked, "")),
    )
    ids = told.parse_rows(parse_id)
    told.parse(lambda _: [line.indexes[each] for each in ids])
    ids = [each for each in ids if line.parents[each] or not line.is_shallow]
    changes = await read_changes(line.git, ids)
    return [Unit(index=line.indexes[it.commit], change=it) for it in changes]


async def read_bases(line: MainLine, merged: Iterable[str]) -> dict[str, str]:
    """The commit that the versions of each of these were decided on: its message says it, or one of
    the branch which it merges. Without those that nothing says it of. Raises CommandFailed.
    """
    found: dict[str, str] = {}
    waiting = {each: each for each in merged}
    for updates in range(_MOST_UPDATES):
        read = {it.commit: it for it in await read_changes(line.git, sorted({*waiting.values()}))}
        changes = {each: read[at] for each, at in waiting.items() if at in read}
        found |= {it: base for it, each in changes.items() if (base := find_base(each.message))}
        waiting = {
            it: below
            for it, each in changes.items()
            if it not in found
            and (below := _find_branch_below(each, updates))
            and below not in line.indexes
        }
    return found


def is_decided(unit: Unit, line: MainLine) -> bool:
    """Whether it wrote versions that were decided on a commit before it, as `read_bases` finds
    that.
    """
    merged = {each.commit: each for each in unit.merged}
    change: CommitChange | None = unit.change
    for updates in range(_MOST_UPDATES):
        if change is None:
            return False
        if base := find_base(change.message):
            return line.indexes.get(base, 0) > unit.index
        change = merged.get(_find_branch_below(change, updates))
    return False


def _find_branch_below(change: CommitChange, updates: int) -> str:
    """The branch that a commit merges; after that, what the branch was before somebody committed to
    it, or merged the base branch into it. Empty for a commit that merges nothing.
    """
    return next(iter(change.parents[0 if updates else 1 :]), "")


def make_shallow_error() -> PlanError:
    return PlanError(
        "the clone is shallow, and lacks commits since the last releases",
        hint="Fetch all of it: `fetch-depth: 0` below `with` of actions/checkout, `GIT_DEPTH: 0` "
        "in a job of GitLab, or `git fetch --unshallow --tags`.",
        problem=Problem.SHALLOW_HISTORY,
    )


async def read_changes(commits: Commits, ids: Sequence[str]) -> list[CommitChange]:
    """Of these commits, in their order. Raises CommandFailed."""
    slots = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def read_parts(ids: Sequence[str], most: int) -> list[CommitChange]:
        parts = [ids[start : start + most] for start in range(0, len(ids), most)]
        return [change for found in await gather_all(map(read, parts)) for change in found]

    async def read(part: Sequence[str]) -> list[CommitChange]:
        try:
            async with slots:
                told = await commits.log_files(part)
                return told.parse(_parse_log)
        except CommandFailed:
            if len(part) == 1:
                raise
        # Some have longer messages or more files.
        return await read_parts(part, max(1, len(part) // 8))

    return await read_parts(ids, _AT_ONCE)


def _parse_log(log: str) -> list[CommitChange]:
    """Of a tag of a tag, git shows the commit that it leads to, and of one that leads to none
    nothing. https://git-scm.com/docs/git-log#Documentation/git-log.txt--z
    """
    fields = log.split("\0")
    changes: list[CommitChange] = []
    at = 0
    while at + 2 < len(fields):
        _, commit, *parents = fields[at].split()
        time, message = fields[at + 1 : at + 3]
        at += 3
        files: list[tuple[str, str]] = []
        # Only a status has one letter; the next commit begins with its name.
        while at + 1 < len(fields) and len(status := fields[at].lstrip("\n")) == 1:
            files.append((status, fields[at + 1]))
            at += 2
        change = CommitChange(
            commit=parse_id(commit),
            parents=tuple(parents),
            time_s=int(time) if time.isascii() and time.isdigit() else 0,
            message=message,
            files=tuple(path for _, path in files),
            added=tuple(path for status, path in files if status == "A"),
        )
        changes.append(change)
    if "".join(fields[at:]).strip():
        raise ValueError("no commit")
    return changes
