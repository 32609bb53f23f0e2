"""Who depends on whom: checked once, then immutable. Nothing here recurses; depth costs nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from releasekit.errors import Cycle, PlanError, UnknownDependency
from releasekit.garbage import gc_paused
from releasekit.priority import PriorityQueue

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from releasekit.model import Package


@dataclass(frozen=True, slots=True)
class DependencyGraph:
    """`edges` maps every name to what it depends on; `order` has dependencies first, ties by name.

    Use `from_edges` or `from_packages`, which check; the plain constructor does not.
    """

    edges: Mapping[str, frozenset[str]]
    order: tuple[str, ...]

    @classmethod
    @gc_paused()
    def from_edges(cls, edges: Mapping[str, Iterable[str]]) -> Self:
        """Raises UnknownDependency for a name without an entry, and Cycle with the whole cycle."""
        frozen = {name: frozenset(dependencies) for name, dependencies in edges.items()}
        for name, dependencies in frozen.items():
            if not dependencies <= frozen.keys():
                unknown = ", ".join(sorted(dependencies - frozen.keys()))
                raise UnknownDependency(
                    f"{name} depends on {unknown}, which is not part of the plan",
                    hint="Correct the name, or add the missing package to the plan.",
                )
        order = _ordered(frozen)
        if len(order) < len(frozen):
            raise _cycle_in(frozen, frozen.keys() - set(order))
        return cls(MappingProxyType(frozen), tuple(order))

    @classmethod
    def from_packages(cls, packages: Iterable[Package]) -> Self:
        """Names are `str(package.id)`. A dependency on oneself (`acme[all]` needing `acme[cli]`)
        says nothing about order and is left out.
        """
        listed = list(packages)
        counts = Counter(str(package.id) for package in listed)
        if twice := sorted(name for name, count in counts.items() if count > 1):
            raise PlanError(
                f"{twice[0]} is there more than once", hint="Give every package its own name."
            )
        return cls.from_edges(
            {
                str(package.id): {str(d.on) for d in package.dependencies if d.on != package.id}
                for package in listed
            }
        )

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[str]:
        return iter(self.order)

    def __contains__(self, name: object) -> bool:
        return name in self.edges

    def dependents(self) -> dict[str, list[str]]:
        """Every name with those that depend on it directly, in `order`."""
        return _dependents(self.edges, self.order)

    def transitive_dependents(self, names: Iterable[str]) -> frozenset[str]:
        """All that waits, directly or not, for any of `names`; without `names` themselves unless
        one waits for another.
        """
        dependents = self.dependents()
        found: set[str] = set()
        todo = list(names)
        while todo:
            fresh = [name for name in dependents[todo.pop()] if name not in found]
            found.update(fresh)
            todo.extend(fresh)
        return frozenset(found)

    def restricted_to(self, names: Collection[str]) -> Self:
        """The graph of `names` alone. What two of them have between them is contracted: when `app`
        needs `glue` and `glue` needs `core`, then without `glue`, `app` needs `core`.
        """
        if unknown := sorted(set(names) - self.edges.keys()):
            raise UnknownDependency(f"{', '.join(unknown)} is not part of the graph")
        kept = set(names)
        if len(kept) == len(self.edges):
            return self
        seen_through: dict[str, frozenset[str]] = {}
        edges: dict[str, frozenset[str]] = {}
        for name in self.order:
            below = frozenset[str]().union(*(seen_through[d] for d in self.edges[name]))
            seen_through[name] = frozenset({name}) if name in kept else below
            if name in kept:
                edges[name] = below
        return type(self)(MappingProxyType(edges), tuple(_ordered(edges)))

    def critical_path(self, durations: Mapping[str, float] | None = None) -> tuple[str, ...]:
        """The chain that no concurrency can shorten, first package first; ties by name.

        `durations` are seconds; names it lacks, and all of them without it, count as one.
        """
        longest: dict[str, float] = {}
        follower: dict[str, str | None] = {}
        dependents = self.dependents()
        for name in reversed(self.order):
            after = min(dependents[name], key=lambda d: (-longest[d], d), default=None)
            follower[name] = after
            own = durations.get(name, 1.0) if durations else 1.0
            longest[name] = own + (longest[after] if after is not None else 0.0)
        path: list[str] = []
        step = min(self.order, key=lambda name: (-longest[name], name), default=None)
        while step is not None:
            path.append(step)
            step = follower[step]
        return tuple(path)


def _dependents(edges: Mapping[str, frozenset[str]], names: Iterable[str]) -> dict[str, list[str]]:
    dependents: dict[str, list[str]] = {name: [] for name in edges}
    for name in names:
        for dependency in edges[name]:
            dependents[dependency].append(name)
    return dependents


def _ordered(edges: Mapping[str, frozenset[str]]) -> list[str]:
    """Kahn's algorithm; what sits on a cycle, or behind one, is missing at the end."""
    dependents = _dependents(edges, edges)
    unmet = {name: len(dependencies) for name, dependencies in edges.items()}
    ready = PriorityQueue(name for name, count in unmet.items() if not count)
    order: list[str] = []
    while (name := ready.pop()) is not None:
        order.append(name)
        for dependent in dependents[name]:
            unmet[dependent] -= 1
            if not unmet[dependent]:
                ready.push(dependent)
    return order


def _cycle_in(edges: Mapping[str, frozenset[str]], stuck: Collection[str]) -> Cycle:
    """Every stuck name depends on another stuck one, so a walk from one to the next repeats."""
    path: list[str] = []
    position: dict[str, int] = {}
    name = min(stuck)
    while name not in position:
        position[name] = len(path)
        path.append(name)
        name = min(d for d in edges[name] if d in stuck)
    cycle = path[position[name] :]
    first = cycle.index(min(cycle))
    names = (*cycle[first:], *cycle[:first])
    return Cycle(
        f"{' -> '.join((*names, names[0]))}: each depends on the next, so none can go first",
        names=names,
        hint="Remove one of these dependencies, or move what both need into a package of its own.",
    )
