"""What the commits and change files since the last releases ask for, package by package."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from releasekit.decided import Source, VersionIntent
from releasekit.fields import replace
from releasekit.versions.change_files import is_change_file, read_change_files, resolve_names
from releasekit.versions.history import Unit, find_adding, is_decided, read_line, read_units
from releasekit.versions.messages import find_pull_request, find_reverted, read_message
from releasekit.versions.released import find_releases
from releasekit.versions.statements import (
    StatementIndex,
    cancel_reverts,
    group_unreleased,
    read_statements,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.version_options import VersionOptions
    from releasekit.decided import Standing
    from releasekit.git.commits import Commits
    from releasekit.model import Package, PackageId
    from releasekit.versions.candidates import Candidate
    from releasekit.versions.change_files import ChangeFile
    from releasekit.versions.history import MainLine
    from releasekit.versions.owners import Owners
    from releasekit.versions.released import FindPublished
    from releasekit.versions.statements import Statement


class Collected(Struct, frozen=True):
    """`files` are the change files, and `units` the commits since the oldest of the last releases,
    the newest first.
    """

    candidates: Mapping[PackageId, Candidate]
    files: Sequence[ChangeFile]
    units: Sequence[Unit]

    @property
    def standings(self) -> list[Standing]:
        return [each.standing for each in self.candidates.values()]

    @property
    def intents(self) -> list[VersionIntent]:
        return [intent for each in self.candidates.values() for intent in each.intents]

    @property
    def ages(self) -> dict[str, int]:
        """How many of the first-parent line are younger than what brought each commit in."""
        return {it.commit: unit.index for unit in self.units for it in (unit.change, *unit.merged)}


async def collect_intents(
    candidates: Sequence[Candidate],
    packages: Sequence[Package],
    commits: Commits,
    owners: Owners,
    options: VersionOptions,
    root: Path,
    *,
    find_published: FindPublished,
    title: str = "",
    is_part: bool = False,
) -> Collected:
    """`packages` are all that lie here, and `title` is what HEAD is going to be called once it is
    squashed. Where they are a part of what the repository has (`is_part`), change files may name
    others, and are kept for them. Change files are those that are checked out, unless `commits` are
    of another head.

    Raises PlanError for change files that cannot be used and for a history that does not reach
    back, and CommandFailed.
    """
    line = await read_line(commits)
    candidates = await find_releases(candidates, packages, line, root, find_published)
    oldest = max((each.release.base for each in candidates), default=0)
    units = _name_newest(await read_units(line, oldest), title, line)
    place = f"{(root.relative_to(commits.top) / options.directory).as_posix()}/"
    added = {unit.index: _list_added(unit, place) for unit in units}
    # A commit that adds a change file is explained by that.
    silent = {index for index, paths in added.items() if paths and options.changes == "both"}
    speaking = [] if options.changes == "files" else [it for it in units if it.index not in silent]
    statements = await read_statements(speaking, owners, options, candidates, line)
    known = StatementIndex(statements)
    files: Sequence[ChangeFile] = ()
    if options.changes != "commits":
        files = await read_change_files(root / options.directory, root, commits)
    files = resolve_names(
        files, [it.id for it in candidates], [it.id for it in packages], is_part=is_part
    )
    adding = {path: unit for unit in units[::-1] for path in added[unit.index]}  # the newest
    by_file, replaced = await _read_files(files, candidates, known, adding, line, root)
    rest = [each for each in statements if each not in replaced]
    by_commit = group_unreleased(rest, units, candidates)
    return Collected(
        {
            each.id: _ask(each, by_file.get(each.id, ()), by_commit.get(each.id, ()), known)
            for each in candidates
        },
        files,
        units,
    )


def _name_newest(units: Sequence[Unit], title: str, line: MainLine) -> Sequence[Unit]:
    """With the title as what the newest one says, if it says something of versions."""
    if not units or is_decided(units[0], line) or not (read_message(title) or find_reverted(title)):
        return units
    change = units[0].change
    newest = replace(change, message=title, parents=change.parents[:1])
    return [Unit(index=0, change=newest), *units[1:]]


def _list_added(unit: Unit, place: str) -> list[str]:
    """The change files that it adds below `place`."""
    return [
        path
        for path in unit.change.added
        if path.startswith(place) and is_change_file(path.removeprefix(place))
    ]


async def _read_files(
    files: Iterable[ChangeFile],
    candidates: Iterable[Candidate],
    known: StatementIndex,
    adding: Mapping[str, Unit],
    line: MainLine,
    root: Path,
) -> tuple[Mapping[PackageId, Sequence[VersionIntent]], Collection[Statement]]:
    """What change files ask for, and the statements of commits that they replace. `adding` are the
    commits that have added files since the last releases.
    """
    by_id = {each.id: each for each in candidates}
    own = [
        (file, entry, by_id[entry.package])
        for file in files
        for entry in file.entries
        if entry.package in by_id
    ]
    # Deciding takes a file, or the lines of what it decided, away: what is there is asked for,
    # whichever commits have it. Prereleases leave it.
    told = await _find_told(
        {
            (each.id, file.path): each.release.fresh
            for file, _, each in own
            if not each.release.version or each.release.fresh != each.release.base
        },
        line,
        root,
    )
    below = root.relative_to(line.git.top)
    paths = {file.path: (below / file.path).as_posix() for file, _, _ in own}
    older = {*paths.values()} - adding.keys()
    for unit in await find_adding(line, sorted(older)):
        adding = {**dict.fromkeys(older.intersection(unit.change.added), unit), **adding}
    found: defaultdict[PackageId, list[VersionIntent]] = defaultdict(list)
    replaced: set[Statement] = set()
    for file, entry, each in own:
        spoken = known.find(file.replaces_commit, file.replaces_pull_request)
        replaced.update(spoken)
        found[each.id].append(
            VersionIntent(
                package=each.id,
                level=entry.level,
                source=_describe_file(file, adding.get(paths[file.path]), spoken),
                exact=entry.exact,
                fresh=(each.id, file.path) not in told,
            )
        )
    return found, replaced


async def _find_told(
    asked: Mapping[tuple[PackageId, str], int], line: MainLine, root: Path
) -> set[tuple[PackageId, str]]:
    """Of packages with change files, those whose file the commit at this index of the line has, on
    which a prerelease was decided; at -1, where no commit has that, all of them.
    """
    names = {
        (package, path): line.git.name_object(line.commits[index], root / path)
        for (package, path), index in asked.items()
        if 0 <= index < len(line.commits)
    }
    there = await line.git.read_blobs(names.values())
    told = {pair for pair, name in names.items() if there.get(name) is not None}
    return told | {pair for pair, index in asked.items() if index < 0}


def _describe_file(file: ChangeFile, added_by: Unit | None, spoken: Sequence[Statement]) -> Source:
    """With the commit that it speaks in place of, or that added it."""
    change = added_by.change if added_by else None
    replaced = spoken[0].unit.change.commit if spoken else file.replaces_commit
    return Source(
        title=file.title,
        text=file.text,
        path=file.path,
        commit=replaced or (change.commit if change else ""),
        pull_request=file.replaces_pull_request
        or (find_pull_request(change.message) if change else 0),
        time_s=change.time_s if change else 0,
    )


def _ask(
    candidate: Candidate,
    by_file: Sequence[VersionIntent],
    statements: Sequence[Statement],
    known: StatementIndex,
) -> Candidate:
    """The candidate with what is asked of it, by change files and by commits."""
    intents, unclear = [*by_file], []
    release = candidate.release
    for each in cancel_reverts(statements, known, release.tagged):
        late = each.unit.index >= release.tagged
        if each.level is not None:
            intents.append(
                VersionIntent(
                    package=candidate.id,
                    level=each.level,
                    source=each.source,
                    late=late,
                    fresh=each.unit.index < release.fresh,
                )
            )
        elif not late:
            unclear.append(each.source)
    return replace(candidate, intents=tuple(intents), unclear=tuple(unclear))
