"""What goes first: dependencies, but for those that a release can do without where they close a
cycle, as the ecosystems' own tools publish it too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.errors import Cycle
from releasekit.fields import replace
from releasekit.graph import DependencyGraph, rings, without_cycles
from releasekit.model import Dependency, DependencyKind
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.model import Package, PackageId

# The later ones are set aside before the earlier ones.
_KEPT_FIRST: Final = (
    DependencyKind.RUNTIME,
    DependencyKind.INDIRECT,
    DependencyKind.PEER,
    DependencyKind.OPTIONAL,
    DependencyKind.DEV,
    DependencyKind.ORDER,
)


def without_soft_cycles(
    packages: Mapping[PackageId, Package],
) -> tuple[dict[PackageId, Package], tuple[str, ...]]:
    """The packages without the soft dependencies that close a cycle, and a note for the user of
    each ecosystem that has such; what they lead to may be outside of `packages`.
    """
    hard = {
        id_: {need.on for need in package.dependencies if not need.soft} & packages.keys()
        for id_, package in packages.items()
    }
    soft = [
        (package.id, need)
        for kind in _KEPT_FIRST
        for package in packages.values()
        for need in package.dependencies
        if need.soft and need.kind is kind and need.on in packages
    ]
    kept = set(without_cycles(hard, [(owner, need.on) for owner, need in soft]))
    set_aside = [(owner, need) for owner, need in soft if (owner, need.on) not in kept]
    dropped = set(set_aside)
    remaining = {
        id_: replace(
            package,
            dependencies=tuple(n for n in package.dependencies if (id_, n) not in dropped),
            set_aside=tuple(n for n in package.dependencies if (id_, n) in dropped),
        )
        for id_, package in packages.items()
    }
    return _with_needs_of_rings(remaining), _notes(set_aside)


def _with_needs_of_rings(packages: Mapping[PackageId, Package]) -> dict[PackageId, Package]:
    """What goes first of a cycle is of use only with all the others of it, so it waits for what
    they wait for.
    """
    edges = {
        id_: {need.on for need in package.needs} & packages.keys()
        for id_, package in packages.items()
    }
    changed = {}
    for ring in rings(edges) if any(package.needed_late for package in packages.values()) else ():
        outside = sorted(set().union(*(edges[id_] for id_ in ring)) - ring)
        for id_ in ring:
            if packages[id_].needed_late:
                more = [
                    Dependency(on=on, kind=DependencyKind.INDIRECT)
                    for on in outside
                    if on not in edges[id_]
                ]
                dependencies = (*packages[id_].dependencies, *more)
                changed[id_] = replace(packages[id_], dependencies=dependencies)
    return {**packages, **changed}


def _notes(set_aside: Sequence[tuple[PackageId, Dependency]]) -> tuple[str, ...]:
    by_ecosystem: dict[str, list[str]] = {}
    for owner, need in set_aside:
        if need.kind is DependencyKind.ORDER:
            continue
        edge = f"{owner.name} -> {need.on.name} ({need.kind})"
        by_ecosystem.setdefault(owner.ecosystem, []).append(edge)
    return tuple(
        f"{ecosystem}: dependencies that close a cycle do not order the release: {few(edges)}"
        for ecosystem, edges in by_ecosystem.items()
    )


def in_order(packages: Sequence[Package]) -> list[Package]:
    """Dependencies first, ties by name; raises Cycle with every dependency of one, and its kind."""
    by_name = {str(package.id): package for package in packages}
    try:
        graph = DependencyGraph.from_edges(
            {
                name: {str(need.on) for need in package.dependencies if str(need.on) in by_name}
                for name, package in by_name.items()
            }
        )
    except Cycle as cycle:
        needs = []
        for name, on in zip(cycle.names, (*cycle.names[1:], cycle.names[0]), strict=True):
            kinds = {need.kind for need in by_name[name].dependencies if str(need.on) == on}
            needs.append(f"{name} needs {on} ({', '.join(sorted(kinds))})")
        words = f"{cycle}: {'; '.join(needs)}"
        raise Cycle(words, names=cycle.names, hint=cycle.hint) from cycle
    return [by_name[name] for name in graph.order]
