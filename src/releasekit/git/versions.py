"""Since which commit each package has had its version, as manifests of the past say it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from releasekit.errors import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from releasekit.git.commits import Commits
    from releasekit.model import Package, PackageId

    VersionAt = Callable[[Package, Callable[[Path], bytes | None]], str]

# Paths on one command line.
_MOST_PATHS: Final = 500
_HEAD: Final = re.compile(r"commit ([0-9a-f]+) ?(.*)")
# https://git-scm.com/docs/diff-format#_raw_output_format
_CHANGE: Final = re.compile(r":\d+ \d+ ([0-9a-f]+) ([0-9a-f]+) \S+\t(.+)")


@dataclass(frozen=True, slots=True)
class _Change:
    """What a commit made of some files: the blob of each, before and after it."""

    commit: str
    is_first: bool
    blobs: Mapping[str, tuple[str, str]]


@dataclass(slots=True)
class _Search:
    """One package on its way back, `at` a change of `changes`; `state` is what follows that one."""

    package: Package
    version_at: VersionAt
    changes: Sequence[_Change]
    state: dict[str, str]
    at: int = 0
    version: str = ""
    found: str = ""
    ended: bool = field(default=False)


async def first_commits(
    wanted: Mapping[Package, VersionAt], commits: Commits
) -> dict[PackageId, str]:
    """The oldest commit on the first-parent line of HEAD from which on each package has had its
    version without a break. Empty where that cannot be known: the manifests do not say the version,
    HEAD has another one, or the clone does not reach so far.
    """
    try:
        shallow = await commits.is_shallow()
        history = await _history(wanted, commits)
        searches = [
            _search(package, version_at, history, commits) for package, version_at in wanted.items()
        ]
        reach = 1
        while pending := [each for each in searches if not each.ended]:
            blobs = await commits.blobs(_needed(pending, reach))
            for search in pending:
                _go_back(search, blobs, reach, commits, shallow=shallow)
            reach *= 4
    except (CommandFailed, ValueError):
        return {package.id: "" for package in wanted}
    return {each.package.id: each.found for each in searches}


def _files(package: Package, commits: Commits) -> list[str]:
    """Its manifests, and those above it that it may take its version from."""
    above = [
        directory / package.manifest.name
        for directory in package.manifest.parent.parents
        if directory.is_relative_to(commits.top)
    ]
    paths = dict.fromkeys((*package.manifests, *above))
    return [commits.inside(path) for path in paths if path.is_relative_to(commits.top)]


async def _history(wanted: Mapping[Package, VersionAt], commits: Commits) -> list[_Change]:
    """Newest first: every commit of the first-parent line that changed one of the files."""
    paths = sorted({path for package in wanted for path in _files(package, commits)})
    found: dict[str, _Change] = {}
    for start in range(0, len(paths), _MOST_PATHS):
        listed = await commits.git(
            *("-c", "core.quotePath=false", "log", "--first-parent", "--diff-merges=first-parent"),
            *("--raw", "--no-renames", "--no-abbrev", "--root", "--no-show-signature"),
            *("--format=commit %H %P", "HEAD", "--"),
            *(f":(top,literal){path}" for path in paths[start : start + _MOST_PATHS]),
        )
        for change in _changes(listed):
            known = found.get(change.commit)
            blobs = {**known.blobs, **change.blobs} if known else change.blobs
            found[change.commit] = _Change(change.commit, change.is_first, blobs)
    if len(paths) <= _MOST_PATHS:
        return list(found.values())
    order = (await commits.git("rev-list", "--first-parent", "HEAD")).split()
    return [found[commit] for commit in order if commit in found]


def _changes(listed: str) -> list[_Change]:
    found: list[_Change] = []
    for line in listed.splitlines():
        if head := _HEAD.fullmatch(line):
            found.append(_Change(head[1], not head[2], {}))
        elif (change := _CHANGE.fullmatch(line)) and found:
            last = found[-1]
            found[-1] = _Change(
                last.commit, last.is_first, {**last.blobs, change[3]: (change[1], change[2])}
            )
    return found


def _search(
    package: Package, version_at: VersionAt, history: Sequence[_Change], commits: Commits
) -> _Search:
    files = set(_files(package, commits))
    changes = [change for change in history if not files.isdisjoint(change.blobs)]
    state: dict[str, str] = {}
    for change in changes:
        for path in files & change.blobs.keys():
            state.setdefault(path, change.blobs[path][1])
    ended = not changes
    return _Search(package, version_at, changes, state, ended=ended)


def _needed(searches: Sequence[_Search], reach: int) -> set[str]:
    """The blobs that are read in the next steps."""
    ids: set[str] = set()
    for search in searches:
        ids.update(search.state.values())
        for change in search.changes[search.at : search.at + reach]:
            ids.update(old for old, _ in change.blobs.values())
    return {each for each in ids if each.strip("0")}


def _go_back(
    search: _Search,
    blobs: Mapping[str, bytes],
    reach: int,
    commits: Commits,
    *,
    shallow: bool,
) -> None:
    def version(state: Mapping[str, str]) -> str:
        def read(path: Path) -> bytes | None:
            inside = commits.inside(path) if path.is_relative_to(commits.top) else ""
            return blobs.get(state.get(inside, ""))

        return search.version_at(search.package, read)

    if not search.version:
        search.version = version(search.state)
        if search.version != search.package.version:
            search.ended = True
            return
    for change in search.changes[search.at : search.at + reach]:
        before = {
            path: change.blobs[path][0] if path in change.blobs else blob
            for path, blob in search.state.items()
        }
        if version(before) != search.version:
            # Where a clone ends, everything seems to begin.
            search.found = "" if shallow and change.is_first else change.commit
            search.ended = True
            return
        search.state = before
        search.at += 1
    search.ended = search.at >= len(search.changes)
