"""The commits since the last releases, read by one `git log`: what each says and which files it
changes. What a merge brought along belongs to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from releasekit.git.commits import Commits

# So many fit into what is read of one process, unless their messages are books.
_AT_ONCE: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One commit. `files` are those that differ from its first parent, relative to the top of the
    repository, and `added` those of them that were not there.
    """

    commit: str
    parents: tuple[str, ...]
    time_s: int
    message: str
    files: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One commit of the first-parent line, `index` 0 for HEAD, and what it merged, the newest
    first.
    """

    index: int
    change: Change
    merged: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """The first-parent line of HEAD, the newest first, with all parents of each commit."""

    commits: Sequence[str]
    parents: Mapping[str, Sequence[str]]
    indexes: Mapping[str, int]


async def read_line(commits: Commits) -> Line:
    """Raises CommandFailed, also where nothing is committed."""
    told = await commits.run_git("rev-list", "--first-parent", "--parents", "HEAD")
    rows = [row.split() for row in told.splitlines()]
    ids = [row[0] for row in rows]
    return Line(
        ids, {row[0]: row[1:] for row in rows}, {each: index for index, each in enumerate(ids)}
    )


async def read_units(commits: Commits, line: Line, count: int) -> list[Unit]:
    """The newest `count` of the line, the newest first. Raises CommandFailed."""
    if not count:
        return []
    # What the next one has is no change of these.
    rest = [f"^{line.commits[count]}"] if count < len(line.commits) else []
    changes: dict[str, Change] = {}
    while True:
        told = await commits.run_git(
            *("-c", "log.showRoot=true", "log", "-z", "--topo-order", "--no-show-signature"),
            *("--no-mailmap", "--no-color", "--no-ext-diff", "--no-textconv", "--encoding=UTF-8"),
            *("--diff-merges=first-parent", "--name-status", "--no-renames"),
            *(f"--skip={len(changes)}", f"--max-count={_AT_ONCE}"),
            *("--format=commit %H %P%x00%ct%x00%B", "HEAD", *rest, "--"),
        )
        before = len(changes)
        changes |= {each.commit: each for each in _parse_log(told)}
        if len(changes) < before + _AT_ONCE:
            break
    order = {commit: number for number, commit in enumerate(changes)}
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


async def read_changed_files(commits: Commits, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What each of these commits changed since its first parent, by one process."""
    if not ids:
        return {}
    told = await commits.run_git(
        *("-c", "log.showRoot=true", "log", "-z", "--no-walk=unsorted", "--no-show-signature"),
        *("--no-ext-diff", "--no-textconv", "--diff-merges=first-parent", "--name-status"),
        *("--no-renames", "--format=commit %H %P%x00%ct%x00", "--stdin"),
        stdin="".join(f"{each}\n" for each in ids),
    )
    return {each.commit: each.files for each in _parse_log(told)}


def _parse_log(log: str) -> Iterator[Change]:
    """https://git-scm.com/docs/git-log#Documentation/git-log.txt--z"""
    fields = log.split("\0")
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
        yield Change(
            commit=commit,
            parents=tuple(parents),
            time_s=int(time) if time.isascii() and time.isdigit() else 0,
            message=message,
            files=tuple(path for _, path in files),
            added=tuple(path for status, path in files if status == "A"),
        )
