"""What the commits and change files since the last releases ask for, package by package."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from releasekit.decided import Intent, Level, Reason, Source, Standing
from releasekit.errors import PlanError, describe_os_error, join_errors
from releasekit.host import durable
from releasekit.problems import Problem
from releasekit.versioning.change_files import (
    MAX_CHARS,
    is_change_file,
    read_change_file,
    resolve,
)
from releasekit.versioning.history import Unit, read_line, read_units
from releasekit.versioning.messages import (
    Reverted,
    find_base,
    find_pull_request,
    find_reverted,
    read_merged,
    read_message,
    read_squashed,
)
from releasekit.versioning.owners import Owners
from releasekit.versioning.released import find_releases

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.version_options import VersionOptions
    from releasekit.errors import ReleasekitError
    from releasekit.git.commits import Commits
    from releasekit.git.versions import VersionAt
    from releasekit.model import Package, PackageId
    from releasekit.versioning.change_files import ChangeFile, Entry
    from releasekit.versioning.history import Change, Line
    from releasekit.versioning.messages import Message
    from releasekit.versioning.owners import Packs
    from releasekit.versioning.released import FindPublished, Release

# Those that say something without asking for a version; of others it is unknown what they mean.
# https://github.com/conventional-changelog/commitlint/tree/master/@commitlint/config-conventional
_QUIET: Final = frozenset(
    {"build", "chore", "ci", "deps", "docs", "refactor", "release", "style", "test", "tests"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A commit that changes packages and does not say what it asks for."""

    commit: str
    title: str
    packages: tuple[PackageId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """`unread` has the newest first. `files` are the change files, by their paths from the root,
    each with the packages that have not been released with it.
    """

    standings: tuple[Standing, ...]
    intents: tuple[Intent, ...]
    left_alone: tuple[Reason, ...]
    unread: tuple[Unread, ...]
    files: Mapping[str, frozenset[PackageId]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """What HEAD has and the commit `base` has not."""

    base: str
    commits: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    """What one message says, and whom it is about. `level` is None where that is unknown. It came
    in with the commit `unit` of the line, `index` behind HEAD, and its pull request.
    """

    index: int
    unit: str
    pull_request: int
    level: Level | None
    source: Source
    packages: frozenset[PackageId]
    reverts: Reverted | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    """Statements by the hashes of their commits and of those that brought them in, and by the
    numbers of their pull requests.
    """

    commits: Sequence[str]
    by_commit: Mapping[str, Sequence[_Statement]]
    by_pull_request: Mapping[int, Sequence[_Statement]]

    @classmethod
    def of(cls, statements: Iterable[_Statement]) -> _Known:
        by_commit: defaultdict[str, list[_Statement]] = defaultdict(list)
        by_pull_request: defaultdict[int, list[_Statement]] = defaultdict(list)
        for each in statements:
            for commit in {each.source.commit, each.unit}:
                by_commit[commit].append(each)
            for number in {each.source.pull_request, each.pull_request} - {0}:
                by_pull_request[number].append(each)
        return cls(sorted(by_commit), by_commit, by_pull_request)

    def find(self, commit: str, pull_request: int) -> Sequence[_Statement]:
        """`commit` is the beginning of a hash, or empty."""
        if not commit:
            return self.by_pull_request.get(pull_request, ())
        at = bisect_left(self.commits, commit)
        near = self.commits[at] if at < len(self.commits) else ""
        return self.by_commit[near] if near.startswith(commit) else ()


async def collect_intents(
    versions: Mapping[Package, VersionAt],
    everything: Sequence[Package],
    commits: Commits,
    root: Path,
    options: VersionOptions,
    *,
    packs: Packs,
    templates: Mapping[PackageId, str],
    find_published: FindPublished,
    title: str = "",
    without: Addition | None = None,
) -> Collected:
    """`versions` are the packages that get versions, each with how its manifests are read at
    another commit, `everything` those and the private ones, `packs` as `Owners` has it, and
    `templates` the names of their tags, with NUL in the place of the version. `title` is what HEAD
    is going to be called once it is squashed. What HEAD adds is left out if it is given as
    `without`.

    Raises ConfigError for an option, PlanError for change files that cannot be used and for a
    history that does not reach back, and CommandFailed.
    """
    owners = Owners.of(
        everything,
        commits.top,
        root,
        packs=packs,
        ignore=options.ignore,
        paths=options.paths,
    )
    line = await read_line(commits)
    releases = await find_releases(versions, commits, root, line, owners, templates, find_published)
    units = await read_units(commits, line, max((it.base for it in releases.values()), default=0))
    if units and (read_message(title) or find_reverted(title)):
        change = units[0].change
        units[0] = Unit(index=0, change=replace(change, message=title, parents=change.parents[:1]))
    place = root.relative_to(commits.top) / options.directory
    statements: list[_Statement] = []
    adding: dict[str, Unit] = {}
    for unit in units:
        added = _list_change_files(unit.change.added, place.as_posix())
        for path in added:
            adding.setdefault(path, unit)
        speaks = options.changes == "commits" or (options.changes == "both" and not added)
        if speaks and not _is_ours(unit, line):
            statements += _read_unit(unit, owners, options)
    if without:
        statements = [each for each in statements if each.source.commit not in without.commits]
    known = _Known.of(statements)
    intents: list[Intent] = []
    waiting: dict[str, set[PackageId]] = {}
    if options.changes != "commits":
        files = _read_change_files(root / options.directory, root)
        if without:
            files = await _find_there(files, without.base, commits, root)
        stated = resolve(files, [each.id for each in everything])
        used = await _find_used(stated, releases, commits, root)
        replaced: set[int] = set()
        for file, entry, package in stated:
            own = waiting.setdefault(file.path, set())
            if (package, file.path) in used:
                continue
            replaces = file.replaces_commit or file.replaces_pull_request
            if entry.level or entry.exact or replaces:
                own.add(package)
            release = releases.get(package)
            if release is None:
                continue
            spoken = known.find(file.replaces_commit, file.replaces_pull_request)
            replaced.update(map(id, spoken))
            added_by = adding.get((root.relative_to(commits.top) / file.path).as_posix())
            intents.append(
                Intent(
                    package=package,
                    level=entry.level,
                    source=_describe_file(file, added_by, spoken[0].unit if spoken else ""),
                    exact=entry.exact,
                    late=added_by is not None and added_by.index >= release.tagged,
                )
            )
        statements = [each for each in statements if id(each) not in replaced]
    unread: dict[int, tuple[_Statement, list[PackageId]]] = {}
    for package, found in sorted(_sort_by_package(statements, units, releases).items()):
        tagged = releases[package].tagged
        for each in _cancel_reverts(found, known, tagged):
            late = each.index >= tagged
            if each.level is not None:
                intents.append(
                    Intent(package=package, level=each.level, source=each.source, late=late)
                )
            elif not late:
                unread.setdefault(id(each), (each, []))[1].append(package)
    silent = sorted(unread.values(), key=lambda each: each[0].index)
    return Collected(
        standings=tuple(_make_standing(each, releases[each.id]) for each in versions),
        intents=tuple(intents),
        left_alone=tuple(_list_guesses(releases)),
        unread=tuple(
            Unread(commit=it.source.commit, title=it.source.title, packages=tuple(packages))
            for it, packages in silent
        ),
        files={path: frozenset(packages) for path, packages in waiting.items()},
    )


def _sort_by_package(
    statements: Iterable[_Statement], units: Iterable[Unit], releases: Mapping[PackageId, Release]
) -> dict[PackageId, list[_Statement]]:
    """Those that each package was not released with, in their order."""
    had = _find_had(units, releases)
    found: dict[PackageId, list[_Statement]] = defaultdict(list)
    for statement in statements:
        done = had.get(statement.source.commit, frozenset())
        for package in (statement.packages & releases.keys()) - done:
            if statement.index < releases[package].base:
                found[package].append(statement)
    return found


def _make_standing(package: Package, release: Release) -> Standing:
    is_go = package.id.ecosystem == "go"
    return Standing(
        package=package.id,
        written=package.version.removeprefix("v") if is_go else package.version,
        released=release.version,
        taken=release.taken,
    )


def _list_guesses(releases: Mapping[PackageId, Release]) -> Iterator[Reason]:
    for package, release in sorted(releases.items()):
        if release.guessed and release.version:
            rule = (
                f"no tag names a version of it, so {release.version} counts as released by the "
                "commit that wrote it"
            )
            yield Reason(package=package, rule=rule)


def _is_ours(unit: Unit, line: Line) -> bool:
    """Whether it was written by a decision on a commit before it: itself, or what it merges."""
    messages = [unit.change.message]
    second = unit.change.parents[1:2]
    messages += [each.message for each in unit.merged if each.commit in second]
    return any(line.indexes.get(find_base(each), 0) > unit.index for each in messages)


def _find_had(
    units: Iterable[Unit], releases: Mapping[PackageId, Release]
) -> Mapping[str, frozenset[PackageId]]:
    """Of commits that were merged, the packages whose last release was made on their branch, after
    them.
    """
    had: dict[str, frozenset[PackageId]] = {}
    for package, release in releases.items():
        if release.beside:
            had[release.beside] = had.get(release.beside, frozenset()) | {package}
    for unit in units if had else ():
        for change in unit.merged:  # the newest first
            if later := had.get(change.commit):
                for parent in change.parents:
                    had[parent] = had[parent] | later if parent in had else later
    return had


def _read_unit(unit: Unit, owners: Owners, options: VersionOptions) -> Iterator[_Statement]:
    change = unit.change
    is_merge = len(change.parents) > 1
    message = read_message(change.message) or (read_merged(change.message) if is_merge else None)
    said: list[tuple[Change, list[Message | None]]]
    # What these merge is among them.
    single = [each for each in unit.merged if len(each.parents) < 2]
    if message is None and single:
        said = [
            (each, [read_message(each.message)]) for each in single if not find_base(each.message)
        ]
    else:
        listed: list[Message | None] = [message] if message else [*read_squashed(change.message)]
        said = [(change, listed or [None])]
    for each, messages in said:
        packages = frozenset(name for path in each.files for name in owners.find_touched(path))
        for found in messages if packages else ():
            yield _make_statement(unit, each, found, packages, options)


def _make_statement(
    unit: Unit,
    change: Change,
    message: Message | None,
    packages: frozenset[PackageId],
    options: VersionOptions,
) -> _Statement:
    reverts = find_reverted(change.message)
    title = change.message.lstrip().partition("\n")[0].rstrip()
    kind = message.type if message else "revert" if reverts else ""
    level: Level | None = None
    if message and message.breaking:
        level = Level.MAJOR
    elif kind:
        scoped = f"{kind}({message.scope})" if message else kind
        quiet = Level.NONE if kind in _QUIET else None
        level = options.types.get(scoped, options.types.get(kind, quiet))
    return _Statement(
        index=unit.index,
        unit=unit.change.commit,
        pull_request=find_pull_request(unit.change.message),
        level=level,
        source=Source(
            title=message.title if message else title,
            text=message.text if message else title,
            type=kind,
            breaking=message.breaking if message else False,
            commit=change.commit,
            pull_request=message.pull_request if message else find_pull_request(title),
            time_s=change.time_s,
        ),
        packages=packages,
        reverts=reverts,
    )


def _cancel_reverts(
    statements: Sequence[_Statement], known: _Known, tagged: int
) -> Iterator[_Statement]:
    """Those of one package, without what was taken back before it was released, and what did that.
    The newest come first, so that what takes a revert back comes before it.
    """
    # By whether the released version had them, although it was decided without them.
    late = {id(each): each.index >= tagged for each in statements}
    cancelled: set[int] = set()
    for statement in statements:
        if id(statement) in cancelled:
            continue
        reverts = statement.reverts
        targets = known.find(reverts.commit, reverts.pull_request) if reverts else ()
        taken_back = {
            id(each)
            for each in targets
            if each is not statement and late.get(id(each)) == late[id(statement)]
        }
        if taken_back:
            cancelled |= taken_back
        else:
            yield statement


def _list_change_files(paths: Iterable[str], place: str) -> list[str]:
    inside = f"{place}/"
    return [
        path
        for path in paths
        if path.startswith(inside) and is_change_file(path.removeprefix(inside))
    ]


def _read_change_files(directory: Path, root: Path) -> list[ChangeFile]:
    """Raises PlanError with all that cannot be used."""
    found: list[ChangeFile] = []
    refused: list[ReleasekitError] = []
    for below in (directory, directory / "pre"):
        try:
            names = durable.names(below)
        except OSError:
            continue
        for name in sorted(names):
            path = below / name
            shown = path.relative_to(root).as_posix()
            if not is_change_file(path.relative_to(directory).as_posix()):
                continue
            try:
                data = durable.read_file(path, max_bytes=4 * MAX_CHARS)
                found.append(read_change_file(shown, data.decode(errors="replace")))
            except OSError as error:
                message = f"{shown} cannot be read: {describe_os_error(error)}"
                refused.append(PlanError(message, problem=Problem.CHANGE_FILE))
            except PlanError as error:
                refused += [error, *error.others]
    if refused:
        raise join_errors(refused)
    return found


async def _find_there(
    files: Sequence[ChangeFile], commit: str, commits: Commits, root: Path
) -> list[ChangeFile]:
    names = {each.path: commits.name_object(commit, root / each.path) for each in files}
    there = await commits.read_blobs(names.values())
    return [each for each in files if there.get(names[each.path]) is not None]


async def _find_used(
    stated: Iterable[tuple[ChangeFile, Entry, PackageId]],
    releases: Mapping[PackageId, Release],
    commits: Commits,
    root: Path,
) -> set[tuple[PackageId, str]]:
    """The packages with the files that were there already when their last version was decided."""
    names = {
        (package, file.path): commits.name_object(releases[package].commit, root / file.path)
        for file, _, package in stated
        if package in releases and releases[package].commit
    }
    there = await commits.read_blobs(names.values())
    return {pair for pair, name in names.items() if there.get(name) is not None}


def _describe_file(file: ChangeFile, added_by: Unit | None, replaced: str) -> Source:
    """With the commit that added it, or that it speaks in place of."""
    return Source(
        title=file.title,
        text=file.text,
        path=file.path,
        commit=replaced or file.replaces_commit or (added_by.change.commit if added_by else ""),
        pull_request=file.replaces_pull_request
        or (find_pull_request(added_by.change.message) if added_by else 0),
        time_s=added_by.change.time_s if added_by else 0,
    )
