"""What is built by one call each, and what that call has to wait for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from releasekit.model import Action, DependencyKind
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from releasekit.ecosystems.interface import Target
    from releasekit.model import Package, PackageId, Plan
    from releasekit.release.life import PackageRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """`needs` are packages whose builds come first; `absent` are those that the registry has to
    show first, whoever publishes them.
    """

    packages: tuple[PackageId, ...]
    needs: frozenset[PackageId]
    absent: frozenset[PackageId]


def batches_of(plan: Plan, targets: Mapping[str, Target]) -> Iterator[Batch]:
    """Of all that is built in a run of `plan`, and that no registry has."""
    kept = {each.package.id for each in plan.packages if each.action is Action.KEEP}
    coming = {planned.package.id for planned in plan.packages} - kept
    coming |= {package.id for package in plan.foreign}
    for name, target in targets.items():
        packages = [
            planned.package
            for planned in plan.packages
            if planned.action is Action.PUBLISH and planned.package.id.ecosystem == name
        ]
        foreign = _foreign(packages, plan, target)
        alone = len(packages) == sum(each.action is Action.PUBLISH for each in plan.packages)
        split = target.singly if target.singly and alone else target.workspace.batches
        # What waits for other jobs keeps nothing back that does not.
        for awaited in dict.fromkeys(foreign.values()):
            group = [package for package in packages if foreign[package.id] == awaited]
            for batch in split(group):
                dependencies = [need for package in batch for need in package.dependencies]
                first = {need.on for need in dependencies if need.visible_first}
                yield Batch(
                    packages=tuple(package.id for package in batch),
                    needs=frozenset(
                        need.on
                        for need in dependencies
                        if need.kind is DependencyKind.BUILD or target.builds_on_published
                    ),
                    absent=awaited | (first & coming),
                )


def _foreign(
    packages: list[Package], plan: Plan, target: Target
) -> dict[PackageId, frozenset[PackageId]]:
    """What other jobs have to publish before each of `packages` can be built."""
    if not target.builds_on_published:
        return dict.fromkeys((package.id for package in packages), frozenset())
    others = {package.id for package in plan.foreign}
    found: dict[PackageId, frozenset[PackageId]] = {}
    for package in packages:
        needs = {need.on for need in package.dependencies}
        found[package.id] = frozenset(needs & others).union(
            *(found[on] for on in needs & found.keys())
        )
    return found


def expect_nothing(runs: Sequence[PackageRun], absent: Collection[PackageId]) -> None:
    """A dry run builds what it can; whatever the registry has may be good enough."""
    names = few([on.name for on in sorted(absent)])
    for run in runs if absent else ():
        run.postponed = f"not built in a dry run, as it can be only once the registry has {names}"
