"""What is about to go wrong with a plan though every registry would take it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from releasekit.aio import gather_all
from releasekit.errors import CommandFailed, PlanError
from releasekit.git.commits import Commits
from releasekit.git.versions import find_versions
from releasekit.host.files import repository_of
from releasekit.model import SENT, Action, PackageWarning, WarningName
from releasekit.plan.changes import (
    Revision,
    below,
    changes,
    compiled,
    tags_of,
    tracked_files,
    version_tags,
)
from releasekit.plan.decision import is_clean
from releasekit.problems import Problem
from releasekit.report.plans import place
from releasekit.report.remarks import warning_lines
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.levels import Levels
    from releasekit.ecosystems.interface import Target
    from releasekit.git.versions import VersionAt
    from releasekit.host.process import Processes
    from releasekit.model import Package, PackageId, Plan, PlannedPackage
    from releasekit.state.history import History

WAY_OUT: Final = (
    "Correct it. Where the registry would take it all the same, drop `strict`, or give it another "
    "level below [warnings] in releasekit.toml."
)


async def with_warnings(
    plan: Plan,
    root: Path,
    levels: Levels,
    targets: Mapping[str, Target],
    history: History,
    processes: Processes,
) -> Plan:
    """`plan` with the warnings of its packages, so far as they can be told before a build."""
    unbumped = await _unbumped(plan, root, targets, history, processes)
    # Not where files from elsewhere are added to a version that is there.
    new = {
        each.package.id: each.package.version
        for each in plan.packages
        if each.action is Action.UPLOAD
        or (each.action is Action.PUBLISH and not (each.published and each.published.complete))
    }
    is_said = WarningName.NEW_NAME in levels.given

    async def warned(planned: PlannedPackage) -> PlannedPackage:
        ecosystem = planned.package.id.ecosystem
        target = targets[ecosystem]
        warnings = [
            *_of_names(planned, target, plan, is_said=is_said),
            *_of_sandbox(planned, processes.sandbox.lacking),
            *await asyncio.to_thread(_of_siblings, planned, new, target),
            *_of_excluded(planned, plan.versions.get(ecosystem, {})),
            *unbumped.get(planned.package, ()),
        ]
        if planned.action is Action.UPLOAD:
            warnings += await target.find_warnings(planned.package, planned.artifacts)
        elif planned.action is Action.PUBLISH and planned.package.prebuilt:
            warnings += await target.find_warnings(planned.package, planned.package.prebuilt)
        return replace(planned, warnings=levels.apply(warnings))

    return replace(plan, packages=tuple(await gather_all(map(warned, plan.packages))))


def refuse_errors(plan: Plan) -> None:
    """Raises PlanError where a warning of it is to be taken for an error."""
    errors = [
        (planned.package, [warning for warning in planned.warnings if warning.error])
        for planned in plan.packages
    ]
    if lines := warning_lines(errors):
        raise PlanError("; ".join(lines), hint=WAY_OUT, problem=Problem.WARNING_OF_PLAN)


def _of_names(
    planned: PlannedPackage, target: Target, plan: Plan, *, is_said: bool
) -> Iterator[PackageWarning]:
    """Of one that is hardly meant, an error, unless releasekit.toml says what to make of new names:
    a name is taken for good.
    """
    if (
        planned.action in SENT
        and not planned.begun
        and target.is_new is not None
        and target.is_new(planned.package.id)
    ):
        doubt = planned.package.doubt or _doubt_of_root(planned.package, target.is_new, plan)
        yield PackageWarning(
            name=WarningName.NEW_NAME,
            message=f"{place(target.registry.url)} has no package of this name yet"
            + (
                f", and it {doubt}: leave it out with `exclude-packages` (or all of "
                f"{planned.package.id.ecosystem} with `ecosystem`), or write "
                '`new-name = "warn"` below [warnings] in releasekit.toml'
                if doubt
                else ": make sure that it is spelled correctly"
            ),
            error=bool(doubt) and not is_said,
        )


def _doubt_of_root(package: Package, is_new: Callable[[PackageId], bool], plan: Plan) -> str:
    """One that holds its siblings and needs none of them is mostly there for the tools."""
    needed = {need.on for need in package.asked_for}
    below = [
        each.package
        for each in plan.packages
        if each.package.id.ecosystem == package.id.ecosystem
        and package.directory in each.package.directory.parents
    ]
    if needed.isdisjoint(each.id for each in below):
        for each in below:
            if not is_new(each.id):
                return f"is the root of a workspace whose {each.id.name} is known there"
    return ""


def _of_sandbox(planned: PlannedPackage, lacking: str) -> Iterator[PackageWarning]:
    """With `build-sandbox: off`, the user knows."""
    if lacking and planned.action is Action.PUBLISH and not planned.package.prebuilt:
        yield PackageWarning(
            name=WarningName.UNSANDBOXED,
            message=f"{lacking}, so its build can read the tokens of this run: build it in a job "
            "without any, or write `build-sandbox: off` if you trust it",
        )


def _of_siblings(
    planned: PlannedPackage, new: Mapping[PackageId, str], target: Target
) -> Sequence[PackageWarning]:
    """A version is there for good, with what it asked for when it was built: of what this release
    has in a `new` version, that was another one. Its files tell, where an earlier run of ours has
    left them, and else its manifest does.
    """
    needs = [each for each in planned.package.dependencies if each.on in new]
    if planned.action is not Action.KEEP or not needs:
        return []
    older = None
    if planned.artifacts:
        versions = {need.on.name: new[need.on] for need in needs}
        older = target.pinned_apart(planned.artifacts, versions)
    if older is None:
        older = [need.on.name for need in needs if need.exact]
    if not older:
        return []
    message = (
        f"the published version is pinned to an older {few(older)}, so users cannot install it "
        "beside the new one: bump its version too"
    )
    return [PackageWarning(name=WarningName.OLDER_SIBLING, message=message)]


def _of_excluded(planned: PlannedPackage, versions: Mapping[str, str]) -> Iterator[PackageWarning]:
    """It is unknown here whether the registry has a version that fits."""
    ranged = [need for need in planned.package.elsewhere if need.requirement]
    if planned.action is Action.KEEP or not ranged:
        return
    needs = [
        f"{need.on.name} {need.requirement.removeprefix(need.on.name).strip()}"
        + (f" (here {versions[need.on.name]})" if need.on.name in versions else "")
        for need in ranged
    ]
    yield PackageWarning(
        name=WarningName.EXCLUDED_SIBLING,
        message=f"it requires {few(needs)}, so its users get another version from the "
        "registry, if there is one",
    )


async def _unbumped(
    plan: Plan, root: Path, targets: Mapping[str, Target], history: History, processes: Processes
) -> dict[Package, list[PackageWarning]]:
    """Of the packages that are kept, what has changed since they were published."""
    kept = [planned for planned in plan.packages if planned.action is Action.KEEP]
    if not kept or not plan.commit:
        return {}
    tags = await tags_of(root, processes)
    tagged = version_tags((each.package for each in plan.packages), root, tags)
    since = {}
    for planned in kept:
        entry = history.entry(planned.package)
        if entry is not None and planned.artifacts and is_clean(entry.commit):
            since[planned.package] = Revision.of_commit(entry.commit)
        elif planned.package in tagged:
            since[planned.package] = tagged[planned.package]
    everything = [each for target in targets.values() for each in target.workspace.packages]
    parts = {package: targets[package.id.ecosystem].compiled_in(package) for package in since}
    asked = [*since.items(), *((part, since[each]) for each in since for part in parts[each])]
    found = await changes(asked, everything, root, processes)
    tracked = await tracked_files(root, processes) if found else []
    inheriting = {package: targets[package.id.ecosystem].inherited_at for package in since}
    inherited = await _compared(inheriting, since, root, processes)
    taken = {package for package, is_same in inherited.items() if not is_same}

    def own(package: Package) -> Sequence[str]:
        return below(package.directory, root, tracked)

    def packed(package: Package, then: Revision) -> Sequence[str]:
        names = found.get((package, then), ())
        packs = targets[package.id.ecosystem].packs
        return list(filter(packs(package, own(package)), names)) if names else names

    changed = {package: packed(package, then) for package, then in since.items()}
    offering = {
        package: targets[package.id.ecosystem].offered_at
        for package, names in changed.items()
        if package.manifest.name in names
    }
    for package, is_same in (await _compared(offering, since, root, processes)).items():
        if is_same:
            changed[package] = [n for n in changed[package] if n != package.manifest.name]

    def taken_in(package: Package, then: Revision) -> Iterator[str]:
        """Of others, relative to the root: what its sources lead to."""
        for part, takers in parts[package].items():
            if sources := compiled(packed(part, then), part):
                leading = [each for each in takers if _leads(package, each, parts[package], reads)]
                counting = [counts for each in leading if (counts := reads(each, part))]
                place = part.directory.relative_to(root).as_posix()
                for name in sources:
                    if any(counts(name) for counts in counting):
                        yield f"{place}/{name}"

    @cache
    def reads(package: Package, part: Package) -> Callable[[str], bool] | None:
        return targets[package.id.ecosystem].takes_in(package, part, own)

    names = {
        package: [
            *changed[package],
            *await asyncio.to_thread(lambda: list(taken_in(package, then))),  # noqa: B023
            *(["what its manifest takes from the workspace"] if package in taken else []),
        ]
        for package, then in since.items()
    }
    return {
        package: [
            PackageWarning(
                name=WarningName.CHANGED_WITHOUT_BUMP,
                message=f"{few(listed, 3)} changed since {package.version} was published "
                f"({since[package].shown}), but its version did not: bump it",
            )
        ]
        for package, listed in names.items()
        if listed
    }


def _leads(
    package: Package,
    taker: Package,
    takers: Mapping[Package, Collection[Package]],
    reads: Callable[[Package, Package], object],
) -> bool:
    """Whether it is the package, or its sources take it in, or take in what does."""
    seen, pending = {taker}, [taker]
    while pending:
        each = pending.pop()
        if each == package:
            return True
        new = [one for one in takers.get(each, ()) if one not in seen and reads(one, each)]
        seen.update(new)
        pending += new
    return False


async def _compared(
    asked: Mapping[Package, VersionAt],
    since: Mapping[Package, Revision],
    root: Path,
    processes: Processes,
) -> dict[Package, bool]:
    """Whether the manifests of each say the same today as then; without those that did not tell."""
    top = repository_of(root)
    if not asked or top is None:
        return {}
    commits = Commits(top, processes)
    try:
        today = await find_versions({each: (at, "HEAD") for each, at in asked.items()}, commits)
        then = await find_versions(
            {each: (at, since[each].id) for each, at in asked.items() if today[each.id]}, commits
        )
    except CommandFailed:
        return {}
    return {each: then[each.id] == today[each.id] for each in asked if then.get(each.id)}
