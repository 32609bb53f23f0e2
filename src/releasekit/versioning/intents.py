"""What the commits and change files since the last releases ask for, package by package."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from releasekit.decided import Intent, Level, Reason, Source, Standing
from releasekit.errors import PlanError, describe_os_error, join_errors
from releasekit.git.versions import find_versions
from releasekit.host import durable
from releasekit.problems import Problem
from releasekit.versioning.change_files import (
    MAX_CHARS,
    is_change_file,
    is_like_change_file,
    read_change_file,
    resolve,
)
from releasekit.versioning.history import Unit, find_adding, read_line, read_units
from releasekit.versioning.messages import (
    Reverted,
    describe_unread,
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
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.version_options import VersionOptions
    from releasekit.errors import ReleasekitError
    from releasekit.git.commits import Commits
    from releasekit.git.versions import VersionAt
    from releasekit.model import Package, PackageId
    from releasekit.versioning.change_files import ChangeFile
    from releasekit.versioning.history import Change, Line
    from releasekit.versioning.owners import Packs, Places
    from releasekit.versioning.released import FindPublished, Release

# Those that say something without asking for a version; of others it is unknown what they mean.
# https://github.com/conventional-changelog/commitlint/tree/master/@commitlint/config-conventional
_QUIET: Final = frozenset(
    {"build", "chore", "ci", "deps", "docs", "refactor", "release", "style", "test", "tests"}
)
# The shortest beginning of a hash that names a commit.
_FEW_DIGITS: Final = 7
# Of subdirectories with change files that nothing reads.
_MOST_DEEP: Final = 4


@dataclass(frozen=True, slots=True)
class Collected:
    """`unread` are the commits that change a package and do not say what they ask for, the newest
    first. `files` are the change files, by their paths from the root, each with the names in it
    that ask for something and their packages, None for one of another part of the repository.
    `units` are the commits since the oldest of the last releases, the newest first. `unread_tags`
    may be of packages that seem new.
    """

    standings: tuple[Standing, ...]
    intents: tuple[Intent, ...]
    left_alone: tuple[Reason, ...]
    unread: Mapping[PackageId, Sequence[Source]]
    files: Mapping[str, Mapping[str, PackageId | None]]
    units: Sequence[Unit]
    unread_tags: Mapping[PackageId, Sequence[str]] = field(default_factory=dict)

    @property
    def ages(self) -> dict[str, int]:
        """How many of the first-parent line are younger than what brought each commit in."""
        return {it.commit: unit.index for unit in self.units for it in (unit.change, *unit.merged)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Statement:
    """What the message of a commit says, and whom it is about; of some, the commit changes the
    manifest alone. `level` is None where that is unknown. It came in with this unit, and its pull
    request.
    """

    unit: Unit
    change: Change
    pull_request: int
    level: Level | None
    source: Source
    packages: frozenset[PackageId]
    by_manifest: frozenset[PackageId]
    reverts: Reverted | None


class _Known:
    """Statements by their commits and pull requests, and by those that brought them in."""

    def __init__(self, statements: Iterable[_Statement]) -> None:
        self._found: defaultdict[str | int, list[_Statement]] = defaultdict(list)
        for each in statements:
            commits = {it[:_FEW_DIGITS] for it in (each.source.commit, each.unit.change.commit)}
            for key in commits | {each.source.pull_request, each.pull_request} - {0}:
                self._found[key].append(each)

    def find(self, commit: str, pull_request: int) -> list[_Statement]:
        """`commit` is the beginning of a hash, or empty."""
        return [
            each
            for each in self._found.get(commit[:_FEW_DIGITS] or pull_request, ())
            if each.source.commit.startswith(commit) or each.unit.change.commit.startswith(commit)
        ]


async def collect_intents(
    versions: Mapping[Package, VersionAt],
    everything: Sequence[Package],
    commits: Commits,
    root: Path,
    options: VersionOptions,
    *,
    packs: Packs,
    places: Places | None = None,
    templates: Mapping[PackageId, str],
    find_published: FindPublished,
    labels: Mapping[PackageId, str],
    together: Iterable[Collection[PackageId]] = (),
    title: str = "",
    is_part: bool = False,
) -> Collected:
    """`versions` are the packages that are decided for, each with how its manifests are read at
    another commit, `everything` those and all others here, `packs` and `places` as `Owners`
    has them, and `templates` the names of their tags, with NUL in the place of the version.
    `labels` are those of packages whose next version is a prerelease, and `together` the packages
    whose version stands in one place. `title` is what HEAD is going to be called once it is
    squashed. Where `everything` `is_part` of what the repository has, change files may name others,
    and are kept for them. Change files are those that are checked out, unless `commits` are of
    another head.

    Raises ConfigError for an option, PlanError for change files that cannot be used and for a
    history that does not reach back, and CommandFailed.
    """
    owners = Owners(
        everything,
        commits.top,
        root,
        packs=packs,
        places=places,
        ignore=options.ignore,
        paths=options.paths,
        is_part=is_part,
    )
    line = await read_line(commits)
    releases = await find_releases(
        versions, everything, commits, root, line, templates, find_published, labels, together
    )
    units = await read_units(commits, line, max((it.base for it in releases.values()), default=0))
    is_titled = read_message(title) or find_reverted(title)
    if units and is_titled and not _is_ours(units[0], line):
        change = units[0].change
        units[0] = Unit(index=0, change=replace(change, message=title, parents=change.parents[:1]))
    place = f"{(root.relative_to(commits.top) / options.directory).as_posix()}/"
    manifests = {
        each.manifest.relative_to(commits.top).as_posix(): each.id
        for each in everything
        if each.manifest.is_relative_to(commits.top)
    }
    statements: list[_Statement] = []
    adding: dict[str, Unit] = {}
    for unit in units:
        inside = [it.removeprefix(place) for it in unit.change.added if it.startswith(place)]
        added = [name for name in inside if is_change_file(name)]
        for name in added:
            adding.setdefault(name, unit)
        speaks = options.changes == "commits" or (options.changes == "both" and not added)
        if speaks and not _is_ours(unit, line):
            statements += _read_unit(unit, owners, manifests, options)
    statements = await _drop_written(statements, versions, commits)
    known = _Known(statements)
    intents: list[Intent] = []
    replaced: set[_Statement] = set()
    waiting: dict[str, dict[str, PackageId | None]] = {}
    if options.changes != "commits":
        directory = root / options.directory
        if commits.head == "HEAD":
            files = _parse_change_files(_read_change_files(directory), root, directory)
        else:
            committed = await _read_committed_change_files(directory, commits)
            files = _parse_change_files(committed.items(), root, directory)
        ids = [each.id for each in everything]
        named = resolve(files, [each.id for each in versions], ids, is_part=is_part)
        # Deciding takes a file, or the lines of what it decided, away: what is there is asked for,
        # whichever commits have it. Prereleases leave it.
        told = await _find_told(
            {
                (package, file.path): release.fresh
                for file, _, package in named
                if (release := releases.get(package))
                and not (release.version and release.fresh == release.base)
            },
            commits,
            line,
            root,
        )
        older = {f"{place}{_name_below(it, options)}" for it in files}
        older -= {f"{place}{name}" for name in adding}
        for unit in await find_adding(commits, line, sorted(older)):
            for path in older.intersection(unit.change.added):
                adding.setdefault(path.removeprefix(place), unit)
        found_here = {(file.path, entry.name) for file, entry, _ in named}
        waiting = {
            file.path: {
                it.name: None for it in file.entries if (file.path, it.name) not in found_here
            }
            for file in files
        }
        for file, entry, package in named:
            asks = entry.level or entry.exact or file.replaces_commit or file.replaces_pull_request
            if asks:
                waiting[file.path][entry.name] = package
            if package not in releases:
                continue
            spoken = known.find(file.replaces_commit, file.replaces_pull_request)
            replaced.update(spoken)
            added_by = adding.get(_name_below(file, options))
            intents.append(
                Intent(
                    package=package,
                    level=entry.level,
                    source=_describe_file(file, added_by, spoken),
                    exact=entry.exact,
                    fresh=(package, file.path) not in told,
                )
            )
    statements = [each for each in statements if each not in replaced]
    unread: defaultdict[PackageId, list[Source]] = defaultdict(list)
    for package, found in sorted(_sort_by_package(statements, units, releases).items()):
        tagged = releases[package].tagged
        for each in _cancel_reverts(found, known, tagged):
            late = each.unit.index >= tagged
            if each.level is not None:
                intents.append(
                    Intent(
                        package=package,
                        level=each.level,
                        source=each.source,
                        late=late,
                        fresh=each.unit.index < releases[package].fresh,
                    )
                )
            elif not late:
                unread[package].append(each.source)
    guessed = [
        Reason(
            package=package,
            rule=f"no tag names {last}, so it counts as released by the commit that wrote it",
        )
        for package, release in sorted(releases.items())
        if release.guessed and (last := release.version or release.prerelease)
    ]
    standings = [
        Standing(
            package=each.id,
            written=each.version.removeprefix("v" if each.id.ecosystem == "go" else ""),
            released=releases[each.id].version,
            prerelease=releases[each.id].prerelease,
            taken=releases[each.id].taken,
            label=labels.get(each.id, ""),
        )
        for each in versions
    ]
    return Collected(
        tuple(standings),
        tuple(intents),
        tuple(guessed),
        unread,
        files=waiting,
        units=units,
        unread_tags={package: it.unread for package, it in releases.items() if it.unread},
    )


def _name_below(file: ChangeFile, options: VersionOptions) -> str:
    return file.path.removeprefix(f"{options.directory}/")


async def _find_told(
    asked: Mapping[tuple[PackageId, str], int], commits: Commits, line: Line, root: Path
) -> set[tuple[PackageId, str]]:
    """Of packages with change files, those whose file the commit at this index of the line has, on
    which a prerelease was decided; at -1, where no commit has that, all of them.
    """
    names = {
        (package, path): commits.name_object(line.commits[index], root / path)
        for (package, path), index in asked.items()
        if 0 <= index < len(line.commits)
    }
    there = await commits.read_blobs(names.values())
    told = {pair for pair, name in names.items() if there.get(name) is not None}
    return told | {pair for pair, index in asked.items() if index < 0}


def _is_ours(unit: Unit, line: Line) -> bool:
    """Whether it was written by a decision on a commit before it: itself, or what it merges."""
    messages = [unit.change.message]
    second = unit.change.parents[1:2]
    messages += [each.message for each in unit.merged if each.commit in second]
    return any(line.indexes.get(find_base(each), 0) > unit.index for each in messages)


def _sort_by_package(
    statements: Iterable[_Statement], units: Iterable[Unit], releases: Mapping[PackageId, Release]
) -> Mapping[PackageId, Sequence[_Statement]]:
    """Those that each package was not released with, in their order."""
    # Of commits that were merged, the packages whose last release was made on their branch, after
    # them.
    had: dict[str, frozenset[PackageId]] = {}
    for package, release in releases.items():
        if release.beside:
            had[release.beside] = had.get(release.beside, frozenset()) | {package}
    for unit in units if had else ():
        for change in unit.merged:  # the newest first
            if later := had.get(change.commit):
                for parent in change.parents:
                    had[parent] = had[parent] | later if parent in had else later
    found: defaultdict[PackageId, list[_Statement]] = defaultdict(list)
    for each in statements:
        done = had.get(each.source.commit, frozenset())
        for package in (each.packages & releases.keys()) - done:
            if each.unit.index < releases[package].base:
                found[package].append(each)
    return found


async def _drop_written(
    statements: Sequence[_Statement], versions: Mapping[Package, VersionAt], commits: Commits
) -> list[_Statement]:
    """Without the packages of which a commit changes the manifest alone, and there the version, as
    a squash merge of prereleases does: that states itself.
    """
    packages = {each.id: (each, at) for each, at in versions.items()}
    asked = [
        (*packages[package], commit)
        for each in statements
        if each.level is not Level.NONE
        for package in each.by_manifest & packages.keys()
        for commit in (each.change.commit, *each.change.parents[:1])
    ]
    had = await find_versions(asked, commits)

    def is_written(package: PackageId, change: Change) -> bool:
        parent = next(iter(change.parents), "")
        before, now = (had.get((package, each), "") for each in (parent, change.commit))
        return now != before and "" not in {now, before}

    return [
        replace(each, packages=each.packages - written)
        if (written := {it for it in each.by_manifest if is_written(it, each.change)})
        else each
        for each in statements
    ]


def _read_unit(
    unit: Unit, owners: Owners, manifests: Mapping[str, PackageId], options: VersionOptions
) -> Iterator[_Statement]:
    change = unit.change
    is_merge = len(change.parents) > 1
    message = read_message(change.message) or (read_merged(change.message) if is_merge else None)
    said = [(change, [message] if message else read_squashed(change.message))]
    # What these merge is among them.
    single = [each for each in unit.merged if len(each.parents) < 2]
    if message is None and single:
        own = {each: read_message(each.message) for each in single if not find_base(each.message)}
        said = [(each, [found] if found else []) for each, found in own.items()]
    pull_request = find_pull_request(change.message)
    for each, messages in said:
        touched: defaultdict[PackageId, set[str]] = defaultdict(set)
        for path in each.files:
            for name in owners.find_touched(path):
                touched[name].add(path)
        packages = frozenset(touched)
        by_manifest = {
            name
            for name, paths in touched.items()
            if len(paths) == 1 and manifests.get(*paths) == name
        }
        reverts = find_reverted(each.message)
        unread = describe_unread(each.message, "revert" if reverts else "")
        for found in messages or [unread] if packages else ():
            quiet = Level.NONE if found.type in _QUIET else None
            level = options.types.get(found.type, quiet)
            level = options.types.get(f"{found.type}({found.scope})", level)
            source = Source(
                title=found.title,
                text=found.text,
                type=found.type,
                breaking=found.breaking,
                commit=each.commit,
                pull_request=found.pull_request,
                time_s=each.time_s,
            )
            yield _Statement(
                unit=unit,
                change=each,
                pull_request=pull_request,
                level=Level.MAJOR if found.breaking else level,
                source=source,
                packages=packages,
                by_manifest=frozenset(by_manifest),
                reverts=reverts,
            )


def _cancel_reverts(
    statements: Iterable[_Statement], known: _Known, tagged: int
) -> Iterator[_Statement]:
    """Those of one package, without what was taken back before it was released, and what did that.
    The newest come first, so that what takes a revert back comes before it.
    """
    # By whether the released version had them, although it was decided without them.
    late = {each: each.unit.index >= tagged for each in statements}
    cancelled: set[_Statement] = set()
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


def _read_change_files(
    directory: Path, below: str = "", depth: int = 0
) -> Iterator[tuple[Path, bytes | OSError]]:
    """Of all Markdown files, as they are checked out, committed or not."""
    try:
        names = durable.names(directory / below)
    except OSError:
        return
    for name in sorted(names):
        path = directory / below / name
        if name.endswith(".md"):
            try:
                yield path, durable.read_file(path, max_bytes=4 * MAX_CHARS)
            except OSError as error:
                yield path, error
        elif depth < _MOST_DEEP and not name.startswith("."):
            yield from _read_change_files(directory, f"{below}{name}/", depth + 1)


async def _read_committed_change_files(directory: Path, commits: Commits) -> dict[Path, bytes]:
    """Those that the commit has."""
    place = directory.relative_to(commits.top).as_posix()
    told = await commits.run_git(
        *("ls-tree", "-r", "-z", "--full-tree", "--name-only", commits.head, "--", f"{place}/")
    )
    paths = (commits.top / name for name in told.split("\0") if name)
    wanted = {
        each: commits.name_object(commits.head, each) for each in paths if each.suffix == ".md"
    }
    there = await commits.read_blobs(wanted.values())
    return {each: data for each, name in wanted.items() if (data := there.get(name)) is not None}


def _parse_change_files(
    found: Iterable[tuple[Path, bytes | OSError]], root: Path, directory: Path
) -> list[ChangeFile]:
    """Raises PlanError with all that cannot be used, among them those where nothing reads them, as
    changesets ends there: https://github.com/changesets/changesets/blob/%40changesets/cli%402.31.1/packages/read/src/legacy.ts
    """
    files: list[ChangeFile] = []
    refused: list[ReleasekitError] = []
    for path, data in found:
        shown, below = (path.relative_to(it).as_posix() for it in (root, directory))
        if not is_change_file(below):
            if "/" in below and isinstance(data, bytes) and is_like_change_file(data):
                message = f"{shown} lies in a subdirectory, where ReleaseKit reads no change files"
                hint = f"Move it to {directory.relative_to(root).as_posix()}/, or delete it."
                refused.append(PlanError(message, hint=hint, problem=Problem.CHANGE_FILE))
            continue
        try:
            if isinstance(data, OSError):
                message = f"{shown} cannot be read: {describe_os_error(data)}"
                refused.append(PlanError(message, problem=Problem.CHANGE_FILE))
            else:
                files.append(read_change_file(shown, data.decode(errors="replace")))
        except PlanError as error:
            refused += [error, *error.others]
    if refused:
        raise join_errors(refused)
    return files


def _describe_file(file: ChangeFile, added_by: Unit | None, spoken: Sequence[_Statement]) -> Source:
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
