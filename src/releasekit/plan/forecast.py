"""What a release of this size is going to run into, by the limits that its registries document: the
middle of a release is no time to find out.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from releasekit.fields import replace
from releasekit.model import SENT, PackageWarning, WarningName
from releasekit.report.plans import place
from releasekit.report.text import minutes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from releasekit.ecosystems.interface import Target
    from releasekit.model import PackageId, Plan, PlannedPackage


class JobEnd(NamedTuple):
    left_s: float
    by: str


# Of a runner of GitHub, and by default (`timeout-minutes`) of any other one.
# https://docs.github.com/en/actions/reference/limits (November 2026)
GITHUB: Final = JobEnd(6 * 3600.0, "GitHub")


def with_limits(
    plan: Plan, targets: Mapping[str, Target], *, deadline_s: float | None, job: JobEnd | None
) -> Plan:
    """`plan` with a warning for each package that its registry takes no more in this run, or not
    before the run or its token ends; once all packages were looked up.
    """
    found: dict[PackageId, list[PackageWarning]] = {each.package.id: [] for each in plan.packages}
    limited: dict[PackageId, float] = {}
    for name, target in targets.items():
        own = [each for each in plan.packages if each.package.id.ecosystem == name]
        limited |= target.preflight.find_earliest(own)
        for package, warning in target.preflight.find_excess(own).items():
            found[package].append(warning)
    earliest = _find_earliest(plan.packages, limited, targets)
    least = minutes(max(earliest.values(), default=0.0))
    for package, earliest_s in earliest.items():
        ends = _list_ends(targets[package.ecosystem], deadline_s, job)
        end_s, words = min(ends, default=(None, ""))
        if end_s is not None and earliest_s >= end_s:
            message = f"it cannot go out in time: this release takes at least {least}, and {words}"
            found[package].append(PackageWarning(name=WarningName.ENDS_EARLY, message=message))
    packages = (
        replace(each, warnings=(*each.warnings, *found[each.package.id])) for each in plan.packages
    )
    return replace(plan, packages=tuple(packages))


def _find_earliest(
    packages: Sequence[PlannedPackage],
    limited: Mapping[PackageId, float],
    targets: Mapping[str, Target],
) -> Mapping[PackageId, float]:
    """The least time after which each of these, dependencies first, is uploaded."""
    earliest: dict[PackageId, float] = {}
    for each in packages:
        if each.action in SENT:
            package = each.package
            shown = (
                earliest[need.on] + targets[need.on.ecosystem].preflight.shows_after_s
                for need in package.dependencies
                if need.on in earliest
            )
            earliest[package.id] = max([limited.get(package.id, 0.0), *shown])
    return earliest


def _list_ends(
    target: Target, deadline_s: float | None, job: JobEnd | None
) -> Iterator[tuple[float, str]]:
    """When, in seconds from now, something ends on which an upload depends, and what to do."""
    if deadline_s is not None:
        yield deadline_s, f"its `deadline` is {deadline_s:g} s: raise it, or run again for the rest"
    if job is not None:
        after = minutes(job.left_s).removesuffix(" 0 min")
        yield job.left_s, f"{job.by} ends its job after {after}: run it again for the rest"
    if target.preflight.token_ends is not None:
        left_s, what = target.preflight.token_ends - time.time(), place(target.registry.url)
        yield left_s, f"the token for {what} ends in {minutes(left_s)}: give one that lasts longer"
