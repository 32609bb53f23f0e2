"""What the messages of commits ask for, and of which packages."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.decided import Level, Source
from releasekit.fields import replace
from releasekit.git.trailers import find_base
from releasekit.git.versions import find_versions
from releasekit.versions.history import is_decided
from releasekit.versions.messages import (
    find_pull_request,
    find_reverted,
    read_merged,
    read_message,
    read_squashed,
    read_subject,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from releasekit.config.version_options import VersionOptions
    from releasekit.git.commits import Commits
    from releasekit.model import PackageId
    from releasekit.versions.candidates import Candidate
    from releasekit.versions.history import CommitChange, MainLine, Unit
    from releasekit.versions.messages import Message, Reverted
    from releasekit.versions.owners import Owners

# Those that say something without asking for a version; of others it is unknown what they mean.
# https://github.com/conventional-changelog/commitlint/tree/master/@commitlint/config-conventional
_QUIET: Final = frozenset(
    {"build", "chore", "ci", "deps", "docs", "refactor", "release", "style", "test", "tests"}
)
# The shortest beginning of a hash that names a commit.
_FEW_DIGITS: Final = 7


class Statement(Struct, frozen=True, kw_only=True, eq=False):
    """What the message of a commit says, and whom it is about; of some, the commit changes the
    manifest alone. `level` is None where that is unknown. It came in with this unit, and its pull
    request.
    """

    unit: Unit
    change: CommitChange
    pull_request: int
    level: Level | None
    source: Source
    packages: frozenset[PackageId]
    by_manifest: frozenset[PackageId]
    reverts: Reverted | None


class StatementIndex:
    """Statements by their commits and pull requests, and by those that brought them in."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        self._found: defaultdict[str | int, list[Statement]] = defaultdict(list)
        for each in statements:
            commits = {it[:_FEW_DIGITS] for it in (each.source.commit, each.unit.change.commit)}
            for key in commits | {each.source.pull_request, each.pull_request} - {0}:
                self._found[key].append(each)

    def find(self, commit: str, pull_request: int) -> list[Statement]:
        """`commit` is the beginning of a hash, or empty."""
        return [
            each
            for each in self._found.get(commit[:_FEW_DIGITS] or pull_request, ())
            if each.source.commit.startswith(commit) or each.unit.change.commit.startswith(commit)
        ]


async def read_statements(
    units: Iterable[Unit],
    owners: Owners,
    options: VersionOptions,
    candidates: Iterable[Candidate],
    line: MainLine,
) -> list[Statement]:
    """Those of the units that nobody has decided on, in their order."""
    found = (
        each
        for unit in units
        if not is_decided(unit, line)
        for each in _read_unit(unit, owners, options)
    )
    return await _drop_written([*found], candidates, line.git)


def _read_unit(unit: Unit, owners: Owners, options: VersionOptions) -> Iterator[Statement]:
    """What it says itself, or else what those of the commits say that it has merged."""
    pull_request = find_pull_request(unit.change.message)
    for change, messages in _read_messages(unit):
        touched = owners.find_all_touched(change.files)
        if not touched.packages:
            continue
        reverts = find_reverted(change.message)
        for found in messages or [read_subject(change.message, "revert" if reverts else "")]:
            source = Source(
                title=found.title,
                text=found.text,
                type=found.type,
                breaking=found.breaking,
                commit=change.commit,
                pull_request=found.pull_request,
                time_s=change.time_s,
            )
            yield Statement(
                unit=unit,
                change=change,
                pull_request=pull_request,
                level=_find_level(found, options),
                source=source,
                packages=touched.packages,
                by_manifest=touched.by_manifest,
                reverts=reverts,
            )


def _read_messages(unit: Unit) -> list[tuple[CommitChange, list[Message]]]:
    """Each commit that is to be listened to; without a message, it says nothing that is known."""
    change = unit.change
    is_merge = len(change.parents) > 1
    if own := read_message(change.message) or (read_merged(change.message) if is_merge else None):
        return [(change, [own])]
    # What these merge is among them.
    if single := [each for each in unit.merged if len(each.parents) < 2]:
        return [
            (each, [found] if (found := read_message(each.message)) else [])
            for each in single
            if not find_base(each.message)
        ]
    return [(change, read_squashed(change.message))]


def _find_level(message: Message, options: VersionOptions) -> Level | None:
    if message.breaking:
        return Level.MAJOR
    quiet = Level.NONE if message.type in _QUIET else None
    level = options.types.get(message.type, quiet)
    return options.types.get(f"{message.type}({message.scope})", level)


async def _drop_written(
    statements: Sequence[Statement], candidates: Iterable[Candidate], commits: Commits
) -> list[Statement]:
    """Without the packages of which a commit changes the manifest alone, and there the version, as
    a squash merge of prereleases does: that states itself.
    """
    known = {each.id: each for each in candidates}
    asked = [
        (known[package].package, known[package].read_version, commit)
        for each in statements
        if each.level is not Level.NONE
        for package in each.by_manifest & known.keys()
        for commit in (each.change.commit, *each.change.parents[:1])
    ]
    had = await find_versions(asked, commits)

    def is_written(package: PackageId, change: CommitChange) -> bool:
        parent = next(iter(change.parents), "")
        before, now = (had.get((package, each), "") for each in (parent, change.commit))
        return now != before and "" not in {now, before}

    return [
        replace(each, packages=each.packages - written)
        if (written := {it for it in each.by_manifest if is_written(it, each.change)})
        else each
        for each in statements
    ]


def group_unreleased(
    statements: Iterable[Statement], units: Iterable[Unit], candidates: Iterable[Candidate]
) -> Mapping[PackageId, Sequence[Statement]]:
    """Those that each package was not released with, in their order."""
    known = {each.id: each.release for each in candidates}
    # Of commits that were merged, the packages whose last release was made on their branch, after
    # them.
    had: dict[str, frozenset[PackageId]] = {}
    for package, release in known.items():
        if release.beside:
            had[release.beside] = had.get(release.beside, frozenset()) | {package}
    for unit in units if had else ():
        for change in unit.merged:  # the newest first
            if later := had.get(change.commit):
                for parent in change.parents:
                    had[parent] = had[parent] | later if parent in had else later
    found: defaultdict[PackageId, list[Statement]] = defaultdict(list)
    for each in statements:
        done = had.get(each.source.commit, frozenset())
        for package in (each.packages & known.keys()) - done:
            if each.unit.index < known[package].base:
                found[package].append(each)
    return found


def cancel_reverts(
    statements: Iterable[Statement], known: StatementIndex, tagged: int
) -> Iterator[Statement]:
    """Those of one package, without what was taken back before it was released, and what did that.
    The newest come first, so that what takes a revert back comes before it.
    """
    # By whether the released version had them, although it was decided without them.
    late = {each: each.unit.index >= tagged for each in statements}
    cancelled: set[Statement] = set()
    for commit, found in groupby(late, key=lambda each: each.source.commit):
        rest = [each for each in found if each not in cancelled]
        reverts = rest[0].reverts if rest else None
        taken_back = {
            each
            for each in (known.find(reverts.commit, reverts.pull_request) if reverts else ())
            if each.source.commit != commit and late.get(each) == late[rest[0]]
        }
        cancelled |= taken_back
        if not taken_back:
            yield from rest
