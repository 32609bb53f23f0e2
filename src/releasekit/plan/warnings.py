"""What is about to go wrong with a plan though every registry would take it."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from releasekit.aio import gather_all
from releasekit.errors import PlanError
from releasekit.fields import replace
from releasekit.git.commits import Commits
from releasekit.host.files import repository_of
from releasekit.model import SENT, Action, DependencyKind, PackageWarning, WarningName
from releasekit.plan.absent import check_absent
from releasekit.plan.holdings import NO_TREE, Holdings, list_uncommitted_above
from releasekit.plan.unbumped import find_changes
from releasekit.problems import Problem
from releasekit.report.plans import place
from releasekit.report.remarks import warning_lines
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.levels import Levels
    from releasekit.ecosystems.interface import Target
    from releasekit.host.process import Processes
    from releasekit.model import Package, PackageId, Plan, PlannedPackage
    from releasekit.plan.holdings import Tree
    from releasekit.plan.unbumped import Changes
    from releasekit.state.history import History


async def with_warnings(
    plan: Plan,
    root: Path,
    levels: Levels,
    targets: Mapping[str, Target],
    history: History,
    processes: Processes,
    *,
    tree: Tree,
    uncommitted: Sequence[str],
    tags: Mapping[PackageId, str],
) -> Plan:
    """`plan` with the warnings of its packages, and at the levels that apply, so far as they can be
    told before a build; `uncommitted` and `tags` are those of `find_changes`. Raises PlanError for
    packages that would go out without files which are not checked out.
    """
    known = tree if plan.commit else NO_TREE
    holdings = Holdings(targets, root, known, [each.package for each in plan.packages])
    absent = await check_absent(
        [each.package for each in plan.packages if each.is_built],
        targets,
        holdings,
        root,
        processes,
    )
    above = await list_uncommitted_above(holdings, root, processes) if plan.commit else ()
    edits = [*uncommitted, *above]
    found = await find_changes(
        plan, root, targets, holdings, history, processes, uncommitted=edits, tags=tags
    )
    # Not where files from elsewhere are added to a version that is there.
    new = {
        each.package.id: each.package.version
        for each in plan.packages
        if each.action is Action.UPLOAD
        or (each.action is Action.PUBLISH and not (each.published and each.published.complete))
    }
    unchanged = {each.package for each in plan.packages if plan.commit}
    unchanged -= {*found.unbumped, *found.unknown}
    is_said = WarningName.NEW_NAME in levels.given
    below: defaultdict[Path, list[PackageId]] = defaultdict(list)
    for each in plan.packages:
        for directory in each.package.directory.parents:
            below[directory].append(each.package.id)

    async def warned(planned: PlannedPackage) -> PlannedPackage:
        ecosystem = planned.package.id.ecosystem
        target = targets[ecosystem]
        is_unchanged = planned.package in unchanged
        older: Sequence[PackageWarning] = ()
        if planned.action is Action.KEEP:
            asked = await _read_asked(planned, new, target, is_unchanged=is_unchanged)
            older = await asyncio.to_thread(
                _of_siblings, planned, new, target, asked, is_unchanged=is_unchanged
            )
        warnings = [
            *planned.warnings,
            *_of_names(planned, target, below[planned.package.directory], is_said=is_said),
            *_of_sandbox(planned, processes.sandbox.lacking),
            *older,
            *_of_excluded(planned, plan.versions.get(ecosystem, {}), new, target, levels),
            *_of_changes(planned, found, plan.commit, from_commit=target.builds_from_commit),
        ]
        if planned.action is Action.UPLOAD:
            warnings += await target.find_warnings(planned.package, planned.artifacts)
        elif planned.action is Action.PUBLISH:
            warnings += await target.find_warnings(planned.package, planned.package.prebuilt)
        return replace(planned, warnings=levels.apply(warnings))

    notes = (
        absent,
        await _describe_tagged(plan, targets, root, processes),
        await _describe_unknown(found, root, processes),
    )
    return replace(
        plan,
        packages=tuple(await gather_all(map(warned, plan.packages))),
        notes=(*plan.notes, *filter(None, notes)),
    )


def refuse_errors(plan: Plan, levels: Levels) -> None:
    """Raises PlanError where a warning of it is to be taken for an error."""
    refuse_warned(((planned.package, planned.warnings) for planned in plan.packages), levels)


def refuse_warned(
    warned: Iterable[tuple[Package, Iterable[PackageWarning]]], levels: Levels
) -> None:
    """Raises PlanError where one of these warnings is to be taken for an error."""
    errors = [
        (package, [warning for warning in warnings if warning.error])
        for package, warnings in warned
    ]
    if lines := warning_lines(errors):
        names = {warning.name for _, warnings in errors for warning in warnings}
        hint = levels.find_way_out(names)
        raise PlanError("; ".join(lines), hint=hint, problem=Problem.WARNING_OF_PLAN)


def _of_names(
    planned: PlannedPackage, target: Target, below: Iterable[PackageId], *, is_said: bool
) -> Iterator[PackageWarning]:
    """Of one that is hardly meant, an error, unless releasekit.toml says what to make of new names:
    a name is taken for good. Those `below` lie in its directory.
    """
    package, is_new = planned.package, target.preflight.is_new
    if planned.action in SENT and not planned.begun and is_new and is_new(package.id):
        doubt = package.doubt or _doubt_of_root(package, is_new, below)
        yield PackageWarning(
            name=WarningName.NEW_NAME,
            message=f"{place(target.registry.url)} has no package of this name yet"
            + (
                f", and it {doubt}: leave it out with `exclude-packages` (or all of "
                f"{package.id.ecosystem} with `ecosystem`), or write "
                '`new-name = "warn"` below [warnings] in releasekit.toml'
                if doubt
                else ": make sure that it is spelled correctly"
            ),
            error=bool(doubt) and not is_said,
        )


def _doubt_of_root(
    package: Package, is_new: Callable[[PackageId], bool], below: Iterable[PackageId]
) -> str:
    """One that holds its siblings and needs none of them is mostly there for the tools."""
    siblings = [each for each in below if each.ecosystem == package.id.ecosystem]
    if {need.on for need in package.asked_for}.isdisjoint(siblings):
        for each in siblings:
            if not is_new(each):
                return f"is the root of a workspace whose {each.name} is known there"
    return ""


def _of_sandbox(planned: PlannedPackage, lacking: str) -> Iterator[PackageWarning]:
    """With `build-sandbox: off`, the user knows."""
    if lacking and planned.is_built:
        yield PackageWarning(
            name=WarningName.UNSANDBOXED,
            message=f"{lacking}, so its build can read the tokens of this run: build it in a job "
            "without any, or write `build-sandbox: off` if you trust it",
        )


async def _read_asked(
    planned: PlannedPackage, new: Mapping[PackageId, str], target: Target, *, is_unchanged: bool
) -> Mapping[str, str]:
    """What the published version requires, as the registry tells it; asked for where nothing else
    does.
    """
    published = planned.published
    if published is None:
        return {}
    needs = [each for each in planned.package.dependencies if each.exact and each.on in new]
    known = published.asks or is_unchanged or planned.artifacts
    read = target.clients.read_asked
    if known or not needs or read is None:
        return published.asks
    return await read(planned.package)


def _of_siblings(
    planned: PlannedPackage,
    new: Mapping[PackageId, str],
    target: Target,
    asked: Mapping[str, str],
    *,
    is_unchanged: bool,
) -> Sequence[PackageWarning]:
    """A version is there for good, with what it asked for when it was built: of what this release
    has in a `new` version, that was another one, unless a release was begun from its other end. Its
    files tell, where an earlier run of ours has left them, or its registry. Else its manifest does,
    if that `is_unchanged` since.
    """
    needs = [each for each in planned.package.dependencies if each.on in new]
    if not needs:
        return []
    older: Sequence[str] | None = None
    unclear: list[str] = []
    if planned.artifacts:
        versions = {need.on.name: new[need.on] for need in needs}
        older = target.clients.find_pinned_apart(planned.artifacts, versions)
    if older is None:
        exact = [need for need in needs if need.exact]
        unclear = [] if is_unchanged else [it.on.name for it in exact if it.on.name not in asked]
        older = [
            need.on.name
            for need in exact
            if need.on.name not in unclear
            and not _names(asked.get(need.on.name, need.requirement), new[need.on])
        ]
    messages = []
    if older:
        messages.append(
            f"the published version is pinned to an older {few(older)}, so users cannot install it "
            "beside the new one: bump its version too"
        )
    if unclear:
        messages.append(
            f"ReleaseKit cannot tell which version of {few(unclear)} the published version is "
            "pinned to; users cannot install it beside any other: bump its version too; or, if it "
            'is pinned to the new one, write `older-sibling = "ignore"` below [warnings] in '
            "releasekit.toml"
        )
    return [PackageWarning(name=WarningName.OLDER_SIBLING, message=each) for each in messages]


def _names(requirement: str, version: str) -> bool:
    """Whether an exact requirement is on this very version."""
    return re.search(rf"(?:^|[=\s]){re.escape(version)}(?![\w.+-])", requirement) is not None


def _of_excluded(
    planned: PlannedPackage,
    versions: Mapping[str, str],
    new: Mapping[PackageId, str],
    target: Target,
    levels: Levels,
) -> Iterator[PackageWarning]:
    """An error, unless releasekit.toml says otherwise, where the registry gets its first version of
    the sibling from this release: no version fits. Of other siblings, it is unknown whether one
    does.
    """
    ranged = [need for need in planned.package.elsewhere if need.requirement]
    if planned.action is Action.KEEP or not ranged:
        return
    needs = [
        f"{need.on.name} {need.requirement.removeprefix(need.on.name).strip()}"
        + (f" (here {versions[need.on.name]})" if need.on.name in versions else "")
        for need in ranged
    ]
    first = [
        need.on.name
        for need in ranged
        if need.kind not in {DependencyKind.OPTIONAL, DependencyKind.DEV}
        and need.on in new
        and target.preflight.is_new is not None
        and target.preflight.is_new(need.on)
    ]
    yield PackageWarning(
        name=WarningName.EXCLUDED_SIBLING,
        message=f"it requires {few(needs)}"
        + (
            f", and {place(target.registry.url)} has no version of {few(first)} yet, so nobody "
            "could install it: widen the range"
            if first
            else ": its users get a version from the registry that fits, and cannot install it "
            "where there is none"
        ),
        error=bool(first) and WarningName.EXCLUDED_SIBLING not in levels.given,
    )


def _of_changes(
    planned: PlannedPackage, found: Changes, commit: str, *, from_commit: bool
) -> Iterator[PackageWarning]:
    package = planned.package
    if package in found.unbumped:
        then, names = found.unbumped[package]
        yield PackageWarning(
            name=WarningName.CHANGED_WITHOUT_BUMP,
            message=f"{few(names, 3)} changed since {package.version} was published "
            f"({then.shown}), but its version did not: bump it",
        )
    if package in found.uncommitted:
        names = found.uncommitted[package]
        yield PackageWarning(
            name=WarningName.UNCOMMITTED,
            message=f"it is built from commit {commit[:12]}, so changes to {few(names, 3)} do not "
            "go out with it: commit them, or drop them"
            if from_commit
            else f"it goes out with changes to {few(names, 3)} that commit {commit[:12]} does not "
            "have: commit them, unless an earlier step wrote them",
        )


async def _describe_tagged(
    plan: Plan, targets: Mapping[str, Target], root: Path, processes: Processes
) -> str:
    """The note about versions that users get from tags as well, which lead to other commits."""
    tags = {
        tag
        for each in plan.packages
        if each.action is Action.PUBLISH
        and (tag := targets[each.package.id.ecosystem].versioning.find_source_tag(each.package))
    }
    top = repository_of(root)
    if not tags or top is None or not plan.commit:
        return ""
    commits = Commits(top, processes)
    there = {tag: at for tag, at in (await commits.list_tags()).items() if tag in tags}
    if not there:
        return ""
    # A tag may lie on a commit that completes a package, on top of what it is built from.
    parents = await commits.list_parents("--no-walk", *there.values())
    head = plan.commit.partition("+")[0]
    others = [tag for tag, at in there.items() if head not in (at, *parents.get(at, ())[:1])]
    if not others:
        return ""
    return (
        f"built from commit {head[:12]}, but the tags of these versions are on other commits: "
        f"{few(sorted(others), 3)}; users who download from the repository get other files: bump "
        "the versions, or check out the tags"
    )


async def _describe_unknown(found: Changes, root: Path, processes: Processes) -> str:
    """The note about packages of which it is not known whether they have changed."""
    if not found.unknown:
        return ""
    names = few([str(each.id) for each in found.unknown], 3)
    top = repository_of(root)
    cure = "tag what is released, as `tag: true` does"
    if top and await Commits(top, processes).is_shallow():
        cure = "check out with `fetch-depth: 0`, or `GIT_DEPTH: 0` at GitLab"
    return f"no tag tells from which commit {names} went out, nor what has changed since: {cure}"
