"""From versions that are decided to the files that say them: edited, read back, and kept or not."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.config.locations import FILENAME
from releasekit.config.package_filter import find_package
from releasekit.errors import PlanError, map_all
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.host.edits import Edits, refuse_edit
from releasekit.host.files import inside, read_parsed
from releasekit.model import MAX_MANIFEST_BYTES, PackageId
from releasekit.plan.make import collect_packages
from releasekit.plan.source import read_checkout
from releasekit.problems import Problem
from releasekit.report.text import few
from releasekit.state.pins import VERSIONS, EphemeralPin
from releasekit.text.bounds import parse_toml
from releasekit.text.changelog import find_section, list_heading_names
from releasekit.text.numbering import numbering_of
from releasekit.text.splice import splice
from releasekit.versions.change_files import drop_entries
from releasekit.versions.changelog_edit import add_section
from releasekit.versions.changelog_entries import write_date, write_section_body

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.config.version_options import FurtherFile
    from releasekit.decided import Bump, Ranges, VersionIntent
    from releasekit.ecosystems.interface import Target, WrittenVersions
    from releasekit.model import Package
    from releasekit.state.seals import Seal
    from releasekit.versions.decision import Decided

    # What files are going to hold; None for one that goes.
    Changes = Mapping[Path, bytes | None]
    Discover = Callable[[Config], Awaitable[Mapping[str, Target]]]


# One in reStructuredText is refused: a second one beside it would be worse.
_CHANGELOGS: Final = tuple(
    f"{stem}{end}"
    for stem in ("CHANGELOG", "Changelog", "changelog", "CHANGES", "HISTORY")
    for end in (".md", ".rst", ".markdown")
)


class Edited(Struct, frozen=True):
    """`by_tag` are the packages whose version no file says, as their tag does, and `moved` those
    that get one though none was decided.
    """

    changes: Changes
    by_tag: frozenset[PackageId]
    moved: Mapping[PackageId, str]

    def names(self, root: Path) -> dict[str, bool]:
        """The files relative to `root`, and whether they stay."""
        return {
            path.relative_to(root).as_posix(): data is not None
            for path, data in self.changes.items()
        }


def edit(decided: Decided, targets: Mapping[str, Target]) -> Edited:
    """Nothing is written yet. Raises PlanError with all that cannot be written."""
    config, bumps = decided.scope.config, decided.view.decision.bumps
    edits = Edits(config.root)
    ranges: Ranges = "exact" if config.snapshot else config.versioning.ranges

    def edit_target(name: str) -> WrittenVersions:
        versions = {bump.package.name: bump.new for bump in bumps if bump.package.ecosystem == name}
        return targets[name].versioning.edit(versions, edits, ranges)

    written = map_all(edit_target, targets)
    by_tag = frozenset().union(*(each.by_tag for each in written))
    moved = {
        package: version
        for each in written
        for package, version in each.moved.items()
        if package in decided.scope.packages and package not in decided.view.versions
    }
    _edit_further_files(decided, targets, edits)
    if not config.snapshot:
        if config.versioning.changelog != "none":
            _edit_changelogs(decided, edits)
        _drop_change_files(decided, edits)
    elif by_tag:
        raise refuse_edit(
            f"{min(by_tag)}: its tag says its version, and a snapshot has none",
            "Name it in `exclude-packages`, here and where you publish.",
        )
    return Edited(edits.list_changes(), by_tag, moved)


def _drop_change_files(decided: Decided, edits: Edits) -> None:
    """Of what was decided, also the lines alone. A prerelease uses none up."""
    bumps = decided.view.decision.bumps
    used = {
        bump.package
        for bump in bumps
        if not numbering_of(bump.package.ecosystem).read(bump.new).is_prerelease
    }
    waiting = {each.id for each in decided.scope.public} - used | {None}
    for file in decided.collected.files if bumps else ():
        place = decided.scope.config.root / file.path
        asking = [each for each in file.entries if each.package is None or file.asks(each)]
        done = {each.name for each in asking if each.package in used}
        if waiting.isdisjoint(each.package for each in asking):
            edits.remove(place)
        elif done and (text := edits.read(place)):
            edits.write(place, drop_entries(text, done))


def _find_changelog(package: Package, root: Path, kind: str) -> Path:
    """Without links: packages may share the file that theirs lead to."""
    directory = root if kind == "root" else package.directory
    there = {*durable.names(directory)}
    path = directory / next(filter(there.__contains__, _CHANGELOGS), _CHANGELOGS[0])
    return inside(root, path, where=str(path))


def _edit_changelogs(decided: Decided, edits: Edits) -> None:
    view, scope = decided.view, decided.scope
    bumps, versions, writing = view.decision.bumps, view.versions, view.to_write
    newest_s = max(
        (it.source.time_s for bump in bumps for it in bump.reasons if it.source), default=0
    )
    kind, ages = scope.config.versioning.changelog, decided.collected.ages
    paths = {it: _find_changelog(scope.packages[it], scope.config.root, kind) for it in versions}
    # Headings of a file with several versions name their packages.
    told = Counter(path for path, _ in {(paths[it], versions[it]) for it in versions})
    is_shared = kind == "root" and len(view.packages) > 1

    def edit_changelog(bump: Bump) -> None:
        package, path = bump.package, paths[bump.package]
        text, version = edits.read(path), versions[package]
        names = list_heading_names(package.name)
        if package not in writing and find_section(text or "", version, names):
            # What was stated before it changed is in it, or was taken out by somebody.
            last = _find_last_change(path, decided)
            new = (it for it in bump.reasons if it.source and ages.get(it.source.commit, -1) < last)
            bump = replace(bump, reasons=tuple(new))
            if not bump.reasons:
                return
        edits.write(
            path,
            add_section(
                text,
                path=path.relative_to(edits.root).as_posix(),
                version=version,
                date=write_date(bump, newest_s),
                body=write_section_body(bump, versions, _list_late(package, decided)),
                names=names,
                name=package.name if is_shared or told[path] > 1 else "",
                replaces=_find_replaced(bump, decided),
            ),
        )

    map_all(edit_changelog, bumps[::-1])  # each goes on top of the file


def _find_last_change(path: Path, decided: Decided) -> int:
    """The index of the newest commit that changes this file, of those since the last releases."""
    units, place = decided.collected.units, path.relative_to(decided.scope.commits.top).as_posix()
    return next((unit.index for unit in units if place in unit.change.files), len(units))


def _find_replaced(bump: Bump, decided: Decided) -> str:
    """The version that was written and is not the new one: its section becomes that of the new one.
    Empty for what users may have, the last version and a prerelease.
    """
    written = decided.scope.packages[bump.package].version
    numbering = numbering_of(bump.package.ecosystem)
    had = (decided.view.spell(bump.package, each) for each in (bump.new, bump.old))
    return "" if written in had or numbering.read(written).is_prerelease else written


def _list_late(package: PackageId, decided: Decided) -> list[VersionIntent]:
    return [each for each in decided.collected.candidates[package].intents if each.late]


def write_notes(decided: Decided) -> dict[PackageId, str]:
    """What the section of each new version says, as Markdown, in publish order."""
    versions = decided.view.versions
    return {
        bump.package: write_section_body(bump, versions, _list_late(bump.package, decided))
        for bump in decided.view.decision.bumps
    }


def _edit_further_files(decided: Decided, targets: Mapping[str, Target], edits: Edits) -> None:
    """Those of `[version] files`."""
    packages = [each for target in targets.values() for each in target.workspace.packages]
    new = decided.view.versions

    def edit_file(package: Package, file: FurtherFile) -> None:
        path = package.directory / file.path
        written = re.compile(rf"(?<![\w.])v?({re.escape(package.version)})(?!\w|\.\w)")
        text = edits.read(path) or ""
        found = [*(file.match or written).finditer(text)]
        if len(found) != 1:
            what = repr(file.match.pattern) if file.match else package.version
            where = f"in {len(found)} places" if found else "nowhere"
            raise refuse_edit(
                f"{package.id}: {file.path} has {what} {where}, and one place is needed to write "
                "the version to",
                "Below [version.files] in releasekit.toml, give each place an entry with a `match` "
                "of its own, or leave the file out.",
            )
        version = new[package.id]
        edited = splice(text, [(found[0].span(1), version)])
        if not file.match and edited.count(version) > 1 and version != package.version:
            raise refuse_edit(
                f"{package.id}: {file.path} has {version} already, and where the version of the "
                "package stands would not be known",
                "Give it a `match` below [version] in releasekit.toml.",
            )
        edits.write(path, edited)

    files = decided.scope.config.versioning.files
    named = [(find_package(name, packages), places) for name, places in files.items()]
    map_all(
        lambda each: edit_file(*each),
        [(package, file) for package, places in named if package.id in new for file in places],
    )


async def write(
    decided: Decided, edited: Edited, seal: Seal, discover: Discover, *, keeps: bool = True
) -> None:
    """All of it or nothing: what is killed half way is given back by the next run. Unless it
    `keeps` what was written, that is given back once it has been read again. `discover` reads the
    workspace anew.

    Raises PlanError, with everything as it was, where a file has changes that no commit has, and
    where what was written does not read as it was decided.
    """
    scope, view = decided.scope, decided.view
    config = scope.config
    checkout = await read_checkout(config.root, scope.services.processes)
    files = [each.path for each in decided.collected.files]
    _refuse_uncommitted(edited.changes, checkout.uncommitted, config.root, files)
    pin = EphemeralPin(
        config.state_directory, edited.changes, ecosystem=VERSIONS, root=config.root, seal=seal
    )
    async with pin:
        config = await asyncio.to_thread(_read_again, config, edited.changes)
        targets = await discover(config)
        found = collect_packages(targets, config.root, config.package_filter)
        wanted = {each: it for each, it in view.to_write.items() if each not in edited.by_tag}
        expected = {each.id: wanted.get(each.id, each.version) for each in scope.public}
        # Of a private Python project that takes it from a file, nobody has read the version.
        expected |= {it: edited.moved[it] for it in edited.moved if scope.packages[it].version}
        read = {package.id: package.version for package in found}
        for name, version in sorted(expected.items()):
            if read.get(name) != version:
                now = read.get(name, "gone")
                raise _tell_defect(f"{name} should have {version}, and reads as {now}")
        if (again := await asyncio.to_thread(edit, decided, targets)).changes:
            place = min(again.changes).relative_to(config.root).as_posix()
            raise _tell_defect(f"{place} would be edited once more")
        if keeps:
            pin.keep()


def _read_again(config: Config, changes: Changes) -> Config:
    """With the versions that stand in the configuration itself."""
    path = config.config_file or config.root / FILENAME
    if not changes.get(path):
        return config
    document = read_parsed(
        path, parse_toml, complaint="is not valid TOML", max_bytes=MAX_MANIFEST_BYTES
    )
    written = {"version", "versions", "properties"}
    tables = {
        name: {**table, **{key: document[name][key] for key in written & table.keys()}}
        for name, table in config.ecosystem_tables.items()
    }
    return replace(config, ecosystem_tables=tables)


def _refuse_uncommitted(
    changes: Changes, uncommitted: Iterable[str], root: Path, change_files: Iterable[str]
) -> None:
    """A change file goes, or its lines, whether or not it was committed."""
    edited = {path.relative_to(root).as_posix() for path, data in changes.items() if data}
    edited.difference_update(change_files)
    if touched := sorted(edited.intersection(uncommitted)):
        raise PlanError(
            f"{few(touched)}: changed since the last commit, and versions are to be written there",
            hint="Commit these changes, or take them back, and run it again.",
            problem=Problem.EDITED_MANIFEST,
        )


def _tell_defect(what: str) -> PlanError:
    return refuse_edit(
        f"{what} after versions were written, so nothing was changed",
        "This is a defect of ReleaseKit: please report it, with the manifest.",
    )
