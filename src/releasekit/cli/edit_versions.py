"""From versions that are decided to the files that say them: edited, read back, and kept or not."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from releasekit.cli.notes import find_package
from releasekit.errors import PlanError, map_all
from releasekit.model import PackageId
from releasekit.plan.make import collect_packages, discover
from releasekit.plan.source import read_checkout
from releasekit.problems import Problem
from releasekit.report.text import few
from releasekit.state.pins import VERSIONS, EphemeralPin
from releasekit.text.splice import splice
from releasekit.versioning.edits import Edits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from releasekit.cli.decision import Decided
    from releasekit.config.version_options import FurtherFile
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Package
    from releasekit.state.seals import Seal

    # What files are going to hold; None for one that goes.
    Changes = Mapping[Path, bytes | None]


@dataclass(frozen=True, slots=True)
class Edited:
    """`by_tag` are the packages whose version no file says, as their tag does."""

    changes: Changes
    by_tag: frozenset[PackageId] = frozenset()

    def names(self, root: Path) -> dict[str, bool]:
        """The files relative to `root`, and whether they stay."""
        return {
            path.relative_to(root).as_posix(): data is not None
            for path, data in self.changes.items()
        }


def edit(decided: Decided, targets: Mapping[str, Target]) -> Edited:
    """Nothing is written yet. Raises PlanError with all that cannot be written."""
    config, bumps = decided.workspace.config, decided.view.decision.bumps
    edits = Edits(config.root)

    def edit_target(name: str) -> set[PackageId]:
        versions = {bump.package.name: bump.new for bump in bumps if bump.package.ecosystem == name}
        raises = config.versioning.ranges == "raise"
        tagged = targets[name].edit_versions(versions, edits, raise_ranges=raises)
        return {PackageId(name, each) for each in tagged}

    by_tag = frozenset().union(*map_all(edit_target, targets))
    _edit_further_files(decided, targets, edits)
    waiting = {each.id for each in decided.workspace.public} - {bump.package for bump in bumps}
    for path, packages in decided.collected.files.items() if bumps else ():
        if waiting.isdisjoint(packages):
            edits.remove(config.root / path)
    return Edited(edits.list_changes(), by_tag)


def _edit_further_files(decided: Decided, targets: Mapping[str, Target], edits: Edits) -> None:
    """Those of `[version] files`."""
    packages = [each for target in targets.values() for each in target.workspace.packages]
    new = {bump.package: bump.new for bump in decided.view.decision.bumps}

    def edit_file(package: Package, file: FurtherFile) -> None:
        path = package.directory / file.path
        written = re.compile(rf"(?<![\w.])({re.escape(package.version)})(?!\w|\.\w)")
        text = edits.read(path) or ""
        found = [*(file.match or written).finditer(text)]
        if len(found) != 1:
            what = repr(file.match.pattern) if file.match else package.version
            raise PlanError(
                f"{package.id}: {file.path} has {len(found)} times {what}, and once is needed to "
                "write the version there",
                hint="Correct the file, or `files` below [version] in releasekit.toml.",
                problem=Problem.CANNOT_WRITE,
            )
        version = decided.view.spell(package.id, new[package.id])
        edits.write(path, splice(text, [(found[0].span(1), version)]))

    files = decided.workspace.config.versioning.files
    named = [(find_package(name, packages), places) for name, places in files.items()]
    map_all(
        lambda each: edit_file(*each),
        [(package, file) for package, places in named if package.id in new for file in places],
    )


async def write(decided: Decided, edited: Edited, seal: Seal) -> None:
    """All of it or nothing: what is killed half way is given back by the next run.

    Raises PlanError, with everything as it was, where a file has changes that no commit has, and
    where what was written does not read as it was decided.
    """
    workspace, view = decided.workspace, decided.view
    config = workspace.config
    checkout = await read_checkout(config.root, workspace.processes)
    _refuse_uncommitted(edited.changes, checkout.uncommitted, config.root)
    pin = EphemeralPin(
        config.state_directory, edited.changes, ecosystem=VERSIONS, root=config.root, seal=seal
    )
    async with pin:
        targets = await discover(config.root, workspace.discoveries)
        found = collect_packages(targets, config.root, config.package_filter)
        wanted = {
            bump.package: view.spell(bump.package, bump.new)
            for bump in view.to_write
            if bump.package not in edited.by_tag
        }
        # A private package may share a version.
        expected = {
            package.id: wanted.get(package.id, package.version) for package in workspace.public
        }
        _refuse_others(expected, {package.id: package.version for package in found})
        again = await asyncio.to_thread(edit, decided, targets)
        if again.changes:
            place = min(again.changes).relative_to(config.root).as_posix()
            raise _tell_defect(f"{place} would be edited once more")
        pin.keep()


def _refuse_uncommitted(changes: Changes, uncommitted: Iterable[str], root: Path) -> None:
    """A change file goes whether or not it was committed."""
    edited = {path.relative_to(root).as_posix() for path, data in changes.items() if data}
    if touched := sorted(edited.intersection(uncommitted)):
        raise PlanError(
            f"{few(touched)}: changed since the last commit, and versions are to be written there",
            hint="Commit these changes, or take them back, and run it again.",
            problem=Problem.EDITED_MANIFEST,
        )


def _refuse_others(expected: Mapping[PackageId, str], read: Mapping[PackageId, str]) -> None:
    for name, version in sorted(expected.items()):
        if read.get(name) != version:
            found = read.get(name, "gone")
            raise _tell_defect(f"{name} should have {version}, and reads as {found}")


def _tell_defect(what: str) -> PlanError:
    return PlanError(
        f"{what} after versions were written, so nothing was changed",
        hint="This is a defect of ReleaseKit: please report it, with the manifest.",
        problem=Problem.CANNOT_WRITE,
    )
