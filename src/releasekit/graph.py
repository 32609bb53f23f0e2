"""Who depends on whom: checked once, then immutable. Nothing here recurses; depth costs nothing."""

from __future__ import annotations

import gc
import heapq
from collections.abc import Hashable
from contextlib import contextmanager
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from msgspec import Struct

from releasekit.errors import Cycle, UnknownDependency

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet


FEW = 64


class Key(Hashable, Protocol):
    """What graphs, tasks and queues are made of: names, or any values that have an order."""

    def __lt__(self, other: Self, /) -> bool: ...


K = TypeVar("K", bound=Key)


class PriorityQueue(Generic[K]):
    """Smallest first. Most of a long queue is a list, sorted once for all that came together, and
    popped from its end, where a heap would compare on every level. The rest is in a heap.
    """

    __slots__ = ("_heap", "_sorted")

    def __init__(self, items: Iterable[K] = ()) -> None:
        self._sorted: list[K] = sorted(items, reverse=True)
        self._heap: list[K] = []

    def __iter__(self) -> Iterator[K]:
        """In no order."""
        yield from self._sorted
        yield from self._heap

    def __len__(self) -> int:
        return len(self._sorted) + len(self._heap)

    def push(self, item: K) -> None:
        heapq.heappush(self._heap, item)

    def pop(self) -> K | None:
        """None when it is empty."""
        many, few = self._sorted, self._heap
        if len(few) > len(many) + FEW:
            # Nothing is sorted again before the queue has doubled.
            many += few
            many.sort(reverse=True)
            few.clear()
        if few and not (many and many[-1] < few[0]):
            return heapq.heappop(few)
        return many.pop() if many else None


@contextmanager
def gc_paused() -> Iterator[None]:
    """Nothing that is built in here becomes garbage, and the collector would walk over it again and
    again as it grows. https://docs.python.org/3/library/gc.html#gc.disable
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class DependencyGraph(Struct, Generic[K], frozen=True):
    """`edges` maps every name to what it depends on; `order` has dependencies first, ties by name.

    Use `from_edges`, which checks; the plain constructor does not.
    """

    edges: Mapping[K, frozenset[K]]
    order: tuple[K, ...]

    @classmethod
    @gc_paused()
    def from_edges(cls, edges: Mapping[K, Iterable[K]]) -> Self:
        """Raises UnknownDependency for a name without an entry, and Cycle with the whole cycle."""
        frozen = {name: frozenset(dependencies) for name, dependencies in edges.items()}
        for name, dependencies in frozen.items():
            if not dependencies <= frozen.keys():
                unknown = ", ".join(map(str, sorted(dependencies - frozen.keys())))
                raise UnknownDependency(
                    f"{name} depends on {unknown}, which is not part of the plan",
                    hint="Correct the name, or add the missing package to the plan.",
                )
        order = _ordered(frozen)
        if len(order) < len(frozen):
            raise _cycle_in(frozen, frozen.keys() - set(order))
        return cls(MappingProxyType(frozen), tuple(order))

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[K]:
        return iter(self.order)

    def __contains__(self, name: object) -> bool:
        return name in self.edges

    def restricted_to(self, names: Collection[K]) -> Self:
        """The graph of `names` alone. What two of them have between them is contracted: when `app`
        needs `glue` and `glue` needs `core`, then without `glue`, `app` needs `core`.
        """
        if unknown := sorted(set(names) - self.edges.keys()):
            raise UnknownDependency(f"{', '.join(map(str, unknown))} is not part of the graph")
        kept = set(names)
        if len(kept) == len(self.edges):
            return self
        seen_through: dict[K, frozenset[K]] = {}
        edges: dict[K, frozenset[K]] = {}
        for name in self.order:
            below = frozenset[K]().union(*(seen_through[d] for d in self.edges[name]))
            seen_through[name] = frozenset({name}) if name in kept else below
            if name in kept:
                edges[name] = below
        return type(self)(MappingProxyType(edges), tuple(_ordered(edges)))


def reachable(starts: Iterable[K], following: Callable[[K], Iterable[K]]) -> set[K]:
    """`starts` and all that they lead to, directly or not; each is asked once what follows it."""
    found: set[K] = set()
    pending = [*starts]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += following(name)
    return found


def levels_above(edges: Mapping[K, Collection[K]]) -> dict[K, int]:
    """How many names follow one another at most above each, by `edges` from each name to what it
    depends on; those to names that are not among them, and those of cycles, do not count.
    """
    found = dict.fromkeys(edges, 0)
    kept = {name: [on for on in needs if on in edges] for name, needs in edges.items()}
    for name in reversed(_ordered(kept)):
        for dependency in kept[name]:
            found[dependency] = max(found[dependency], found[name] + 1)
    return found


def rings(edges: Mapping[K, Collection[K]]) -> list[set[K]]:
    """Names that depend on each other, all of one ring on all others of it; `edges` leads from
    each name to what it depends on.
    """
    frozen = {name: frozenset(dependencies) for name, dependencies in edges.items()}
    stuck = frozen.keys() - set(_ordered(frozen))
    dependents: dict[K, set[K]] = {name: set() for name in stuck}
    for name in stuck:
        for dependency in frozen[name] & stuck:
            dependents[dependency].add(name)
    found: list[set[K]] = []
    while stuck:
        start = next(iter(stuck))
        ahead = _reachable_within(start, frozen, stuck)
        ring = _reachable_within(start, dependents, ahead)
        if len(ring) > 1:
            found.append(ring)
        stuck -= ring
    return found


def _reachable_within(start: K, edges: Mapping[K, AbstractSet[K]], names: AbstractSet[K]) -> set[K]:
    return reachable([start], lambda name: edges[name] & names)


def without_cycles(hard: Mapping[K, Iterable[K]], soft: Iterable[tuple[K, K]]) -> list[tuple[K, K]]:
    """Those of the `soft` edges, each from a name to what it depends on, that close no cycle with
    the `hard` ones and the soft ones before them.
    """
    edges = {name: set(dependencies) for name, dependencies in hard.items()}
    offered = list(dict.fromkeys(soft))
    everything = {name: frozenset(dependencies) for name, dependencies in edges.items()}
    for name, dependency in offered:
        everything[name] |= {dependency}
    # Most edges are on no cycle, and need no walk.
    circling = stuck(everything)

    # Those of many packages often lead to the same one. A few answers: each may hold all names.
    @lru_cache(maxsize=16)
    def found_from(start: K) -> set[K]:
        return reachable([start], lambda name: edges[name] & circling)

    kept = []
    for name, dependency in offered:
        circular = {name, dependency} <= circling and name in found_from(dependency)
        if not circular:
            edges[name].add(dependency)
            kept.append((name, dependency))
            if dependency in circling:
                found_from.cache_clear()
    return kept


def stuck(edges: Mapping[K, Collection[K]]) -> set[K]:
    """What sits on a cycle, or depends on something that does."""
    return edges.keys() - set(_ordered(edges))


def _ordered(edges: Mapping[K, Collection[K]]) -> list[K]:
    """Kahn's algorithm; what sits on a cycle, or behind one, is missing at the end."""
    dependents: dict[K, list[K]] = {name: [] for name in edges}
    for dependent, dependencies in edges.items():
        for dependency in dependencies:
            dependents[dependency].append(dependent)
    unmet = {name: len(dependencies) for name, dependencies in edges.items()}
    ready = PriorityQueue(name for name, count in unmet.items() if not count)
    order: list[K] = []
    while (name := ready.pop()) is not None:
        order.append(name)
        for dependent in dependents[name]:
            unmet[dependent] -= 1
            if not unmet[dependent]:
                ready.push(dependent)
    return order


def _cycle_in(edges: Mapping[K, frozenset[K]], stuck: Collection[K]) -> Cycle:
    """Every stuck name depends on another stuck one, so a walk from one to the next repeats."""
    path: list[K] = []
    position: dict[K, int] = {}
    name = min(stuck)
    while name not in position:
        position[name] = len(path)
        path.append(name)
        name = min(d for d in edges[name] if d in stuck)
    cycle = path[position[name] :]
    first = cycle.index(min(cycle))
    names = tuple(map(str, (*cycle[first:], *cycle[:first])))
    return Cycle(
        f"{' -> '.join((*names, names[0]))}: each depends on the next, so none can go first",
        names=names,
        hint="Remove one of these dependencies, or move what both need into a third package.",
    )
