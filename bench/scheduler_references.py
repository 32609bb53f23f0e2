"""Schedules to compare with, computed without an event loop."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping

from releasekit.graph import DependencyGraph

Edges = Mapping[str, frozenset[str]]
Seconds = Mapping[str, float]


def dependents_of(edges: Edges) -> dict[str, list[str]]:
    """Every name with those that depend on it directly."""
    dependents: dict[str, list[str]] = {name: [] for name in edges}
    for name, dependencies in edges.items():
        for dependency in dependencies:
            dependents[dependency].append(name)
    return dependents


def longest_paths(edges: Edges, durations: Seconds) -> dict[str, float]:
    """From the start of each package to the end of the last that waits for it."""
    dependents = dependents_of(edges)
    longest: dict[str, float] = {}
    for name in reversed(DependencyGraph.from_edges(edges).order):
        below = max((longest[d] for d in dependents[name]), default=0.0)
        longest[name] = durations[name] + below
    return longest


def lower_bound(edges: Edges, durations: Seconds, concurrency: int, tried: set[str]) -> float:
    """No schedule of `tried` is shorter."""
    kept = {name: edges[name] & tried for name in tried}
    path = max(longest_paths(kept, durations).values())
    return max(path, sum(durations[name] for name in tried) / concurrency)


def list_schedule(
    edges: Edges,
    durations: Seconds,
    concurrency: int,
    failing: frozenset[str],
    priority: Callable[[str], float],
) -> float:
    """A free slot goes to the ready package with the smallest priority; ties as they got ready."""
    dependents = dependents_of(edges)
    unmet = {name: len(dependencies) for name, dependencies in edges.items()}
    arrival = itertools.count()
    ready = [(priority(n), next(arrival), n) for n in sorted(edges) if not unmet[n]]
    heapq.heapify(ready)
    running: list[tuple[float, str]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < concurrency:
            _, _, name = heapq.heappop(ready)
            heapq.heappush(running, (now + durations[name], name))
        now = running[0][0]
        while running and running[0][0] <= now:
            _, name = heapq.heappop(running)
            for dependent in () if name in failing else dependents[name]:
                unmet[dependent] -= 1
                if not unmet[dependent]:
                    heapq.heappush(ready, (priority(dependent), next(arrival), dependent))
    return now


def level_by_level(
    edges: Edges, durations: Seconds, concurrency: int, failing: frozenset[str]
) -> float:
    """All of one level, then all of the next."""
    graph = DependencyGraph.from_edges(edges)
    level: dict[str, int] = {}
    lost: set[str] = set()
    for name in graph.order:
        level[name] = 1 + max((level[d] for d in edges[name]), default=0)
        if edges[name] & (lost | failing):
            lost.add(name)
    total = 0.0
    by_level = sorted((n for n in edges if n not in lost), key=lambda n: (level[n], n))
    for _, names in itertools.groupby(by_level, key=level.__getitem__):
        alone = {name: frozenset[str]() for name in names}
        total += list_schedule(alone, durations, concurrency, frozenset(), lambda _: 0.0)
    return total
