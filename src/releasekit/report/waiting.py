"""How many packages a failure keeps from going out: what there is to gain by fixing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.graph import reachable
from releasekit.model import Outcome
from releasekit.report.text import packages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.model import PackageId, Report


def waiting_for(report: Report) -> Mapping[PackageId, int]:
    """For each package that blocks others, how many are blocked by it, directly or through others
    that are blocked; those that block nobody are left out. Who is blocked by two counts for both.
    """
    done = {r.package.id for r in report.results if r.outcome.done}
    blocked = {r.package.id for r in report.results if r.outcome is Outcome.BLOCKED}
    dependents: dict[PackageId, list[PackageId]] = {}
    for package in blocked:
        for on in report.edges.get(package, ()):
            dependents.setdefault(on, []).append(package)
    counts = {
        package: len(reachable([package], lambda on: dependents.get(on, ()))) - 1
        for package in dependents.keys() - blocked - done
    }
    in_order = (result.package.id for result in report.results)
    return {package: counts[package] for package in in_order if package in counts}


def wait_for_it(count: int) -> str:
    """As a clause that begins with their number; empty where none does."""
    return f"{packages(count)} {'waits' if count == 1 else 'wait'} for it" if count else ""
