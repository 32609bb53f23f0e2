"""Every state the real Frontier can get into, compared with the specification: every graph, limit,
order of events, outcome, and kill in between."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from releasekit.graph import PriorityQueue
from releasekit.model import Outcome
from releasekit.scheduler.frontier import Task
from simulation.specification import Pair, World

if TYPE_CHECKING:
    from releasekit.scheduler.frontier import Frontier

NAMES = "abcde"
WEIGHTS = dict(zip(NAMES, (2.0, 1.0, 2.0, 3.0, 1.0), strict=True))
Graph = dict[str, frozenset[str]]
Snapshot = tuple[object, ...]
Move = tuple[str, str]
Moves = Callable[[Pair], Iterator[Move]]


def graphs(size: int) -> Iterator[Graph]:
    """Every graph with `size` nodes, each shape once.

    Nodes are named in one topological order; relabelled twins are left out.
    """
    pairs = list(itertools.combinations(range(size), 2))
    seen: set[tuple[int, ...]] = set()
    for bits in range(1 << len(pairs)):
        edges = [pair for at, pair in enumerate(pairs) if bits >> at & 1]
        shape = _canonical(size, edges)
        if shape not in seen:
            seen.add(shape)
            yield {
                NAMES[high]: frozenset(NAMES[low] for low, top in edges if top == high)
                for high in range(size)
            }


def _canonical(size: int, edges: list[tuple[int, int]]) -> tuple[int, ...]:
    return min(
        tuple(sorted(places[low] * size + places[high] for low, high in edges))
        for places in itertools.permutations(range(size))
    )


def width(graph: Graph) -> int:
    """The most nodes that can ever run at once: no higher limit binds."""
    above: dict[str, frozenset[str]] = {}
    for name, dependencies in graph.items():
        above[name] = dependencies.union(*(above[d] for d in dependencies))
    return max(
        len(group)
        for size in range(len(graph) + 1)
        for group in itertools.combinations(graph, size)
        if not any(a in above[b] for a in group for b in group)
    )


def capture(real: Frontier[str]) -> Snapshot:
    """All that later decisions can depend on, whatever way it came about."""
    nodes = tuple((n.name, n.unmet, n.remaining, n.state, n.leaving, n.bars) for n in real._by_rank)
    lanes = tuple(
        (tuple(sorted(lane.ready)), frozenset(lane.running)) for lane in real._lanes.values()
    )
    outcomes = tuple(sorted(real._outcomes.items()))
    return nodes, lanes, outcomes, real.paused, real._stopping, real._completing


def restore(real: Frontier[str], snapshot: Snapshot) -> None:
    nodes, lanes, outcomes, real.paused, real._stopping, real._completing = snapshot  # type: ignore[assignment]
    for node, saved in zip(real._by_rank, nodes, strict=True):  # type: ignore[call-overload]
        _, node.unmet, node.remaining, node.state, node.leaving, node.bars = saved
    for lane, (ready, running) in zip(real._lanes.values(), lanes, strict=True):  # type: ignore[call-overload]
        lane.ready = PriorityQueue(ready)
        lane.running = set(running)
        if real._sequential:
            first = next(iter(real._lanes.values()))
            lane.ready, lane.running = first.ready, first.running
    real._outcomes = dict(outcomes)  # type: ignore[call-overload]


def ends(pair: Pair) -> Iterator[Move]:
    """Any running task ends well or badly; the run is cancelled."""
    for name in sorted(pair.world.running):
        yield "published", name
        yield "failed", name
    if not pair.world.stopping:
        yield "cancel", ""


def marks(pair: Pair) -> Iterator[Move]:
    """And somebody else does anything; whatever ends twice; the run is cancelled strictly."""
    yield from retries(pair)
    for name in pair.world.tasks:
        yield "done", name
        if isinstance(pair.world.states[name], Outcome):
            yield "failed", name
    for name in sorted(pair.world.running):
        if not pair.real.may_run(name):
            yield "give_back", name
    yield "strict", ""


def retries(pair: Pair) -> Iterator[Move]:
    """And nobody knows how it ended, or it is to be tried again."""
    yield from ends(pair)
    for name in sorted(pair.world.running):
        yield "unknown", name
        yield "defer", name
    for name in sorted(pair.world.waiting):
        yield "wake", name


def removals(pair: Pair) -> Iterator[Move]:
    """And anything is taken out of the run, with its dependents or without."""
    yield from ends(pair)
    for name in sorted(pair.world.running):
        yield "cancelled", name
        if not pair.real.may_run(name):
            yield "give_back", name
    for name in pair.world.tasks:
        yield "remove", name
        yield "bar", name


def everything(pair: Pair) -> Iterator[Move]:
    """And the run pauses, and somebody else does anything."""
    yield from removals(pair)
    for name in pair.world.tasks:
        yield "done", name
    yield from (move for move in retries(pair) if move[0] not in {"published", "failed", "cancel"})
    yield ("resume" if pair.world.paused else "pause"), ""


def perform(pair: Pair, move: Move) -> None:
    kind, name = move
    match kind:
        case "cancel" | "strict":
            pair.cancel(frozenset() if kind == "strict" else None)
        case "done":
            pair.mark_done(name)
        case "defer":
            pair.defer(name)
        case "give_back":
            pair.give_back(name)
        case "wake":
            pair.wake(name)
        case "remove" | "bar":
            pair.remove(name, block=kind == "bar")
        case "pause" | "resume":
            pair.pause(paused=kind == "pause")
        case _:
            pair.settle(name, Outcome(kind))
    pair.take()


def explore(
    graph: Graph,
    limit: int,
    moves: Moves,
    *,
    confirms: Collection[str] = (),
    sequential: bool = False,
) -> int:
    """The number of states, each of them checked. A kill may come in any of them: what is published
    then is all that the next run knows. `confirms` are in a lane that completes what was done.
    """
    tasks = {
        name: Task(name, "confirm" if name in confirms else "publish", after, WEIGHTS[name])
        for name, after in graph.items()
    }
    lanes: dict[str, int | None] = {"publish": limit, "confirm": None}
    completing = frozenset({"confirm"})
    seen: set[Snapshot] = set()
    done_sets = {frozenset[str]()}
    roots = [frozenset[str]()]
    while roots:
        pair = Pair(tasks, lanes, roots.pop(), completing=completing, sequential=sequential)
        pair.take()
        start = capture(pair.real)
        seen.add(start)
        todo: list[tuple[Snapshot, World]] = [(start, pair.world)]
        while todo:
            snapshot, world = todo.pop()
            restore(pair.real, snapshot)
            pair.world = world
            _assert_alive(pair)
            done = frozenset(n for n, o in pair.real.outcomes.items() if o.done)
            if done not in done_sets:
                done_sets.add(done)
                roots.append(done)
            for move in list(moves(pair)):
                restore(pair.real, snapshot)
                pair.world = world.copy()
                perform(pair, move)
                after = capture(pair.real)
                if after not in seen:
                    seen.add(after)
                    todo.append((after, pair.world))
    return len(seen)


def _assert_alive(pair: Pair) -> None:
    """Unless it is over, something runs or waits for its time, and so the run goes on."""
    if not pair.real.finished and not pair.world.paused:
        assert pair.world.running or pair.world.waiting, "stuck"
