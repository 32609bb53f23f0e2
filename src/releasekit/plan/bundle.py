"""Registries that take all packages of an ecosystem at once, in a release of several ecosystems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.errors import Cycle, PlanError
from releasekit.graph import DependencyGraph
from releasekit.model import Action

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.ecosystems.interface import Target
    from releasekit.model import PackageId, Step


def refuse_divided(steps: Sequence[Step], targets: Mapping[str, Target]) -> None:
    """Raises PlanError where what goes out at once would have to wait for a package of another
    ecosystem that waits for it.
    """
    at_once = {name for name, target in targets.items() if target.at_once}

    def node(package: PackageId) -> str:
        return f"all of {package.ecosystem}" if package.ecosystem in at_once else str(package)

    sent = {step.package.id: step.package for step in steps if step.action is not Action.KEEP}
    edges: dict[str, set[str]] = {}
    for package in sent.values():
        needs = {
            node(dependency.on) for dependency in package.dependencies if dependency.on in sent
        }
        edges.setdefault(node(package.id), set()).update(needs - {node(package.id)})
    try:
        DependencyGraph.from_edges(edges)
    except Cycle as cycle:
        raise PlanError(
            str(cycle),
            hint="The registry takes all packages of that ecosystem at once. Publish in two runs "
            "with `packages`, first what the others wait for, or drop a dependency.",
        ) from cycle
