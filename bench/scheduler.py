"""What scheduling costs, and how close it comes to the shortest possible release.

    python bench/scheduler.py [--largest 100000] [--repeat 3] [--write docs]

Cost is CPU time, with a publish function that yields once, beside a bare event-driven loop that
takes turns with it. Makespans are those of the real Scheduler on a virtual clock, over the lower
bound max(critical path, work / concurrency), beside three references with the same durations.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import statistics
import sys
import time
import tracemalloc
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[1]
    sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests")]

from bench.scheduler_charts import charts, table
from bench.scheduler_references import (
    dependents_of,
    level_by_level,
    list_schedule,
    longest_paths,
    lower_bound,
)

from releasekit.graph import DependencyGraph
from releasekit.scheduler import Scheduler
from releasekit.scheduler.frontier import State
from simulation.virtual_loop import VirtualLoop, run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Edges = dict[str, frozenset[str]]
CONCURRENCY = 50


def chain(size: int) -> Edges:
    return {f"p{at:06}": frozenset({f"p{at - 1:06}"} if at else ()) for at in range(size)}


def fan_out(size: int) -> Edges:
    return {f"p{at:06}": frozenset({"p000000"} if at else ()) for at in range(size)}


def layered(size: int, width: int = 20) -> Edges:
    rng = random.Random(size)
    edges: Edges = {}
    for at in range(size):
        first = (at // width - 1) * width
        below = rng.sample(range(first, first + width), 3) if first >= 0 else ()
        edges[f"p{at:06}"] = frozenset(f"p{other:06}" for other in below)
    return edges


SHAPES: dict[str, Callable[[int], Edges]] = {
    "chain": chain,
    "fan-out": fan_out,
    "layered": layered,
}


async def yield_once(_name: str) -> None:
    await asyncio.sleep(0)


async def bare_loop(edges: Edges, publish: Callable[[str], Awaitable[None]]) -> None:
    """The least that can run a graph in order: no priorities, retries, time-outs, or outcomes."""
    dependents = dependents_of(edges)
    unmet = {name: len(dependencies) for name, dependencies in edges.items()}
    ready = deque(name for name, count in unmet.items() if not count)
    tasks: set[asyncio.Task[None]] = set()
    left, over = len(edges), asyncio.Event()

    def start() -> None:
        while ready and len(tasks) < CONCURRENCY:
            task = asyncio.create_task(one(ready.popleft()))
            tasks.add(task)
            task.add_done_callback(ended)

    def ended(task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        start()

    async def one(name: str) -> None:
        nonlocal left
        await publish(name)
        left -= 1
        for dependent in dependents[name]:
            unmet[dependent] -= 1
            if not unmet[dependent]:
                ready.append(dependent)
        if not left:
            over.set()

    start()
    await over.wait()


async def ours(edges: Edges) -> None:
    graph = DependencyGraph.from_edges(edges)
    scheduler = Scheduler.from_graph(graph, concurrency=CONCURRENCY, controls=False)
    assert (await scheduler.run(yield_once)).ok


@dataclass(frozen=True)
class Cost:
    shape: str
    size: int
    ours_us: float
    bare_us: float
    peak_kb: float

    @property
    def ratio(self) -> float:
        return self.ours_us / self.bare_us


def cpu_us(edges: Edges, work: Callable[[Edges], Awaitable[None]]) -> float:
    async def main() -> None:
        await work(edges)

    gc.collect()
    start = time.process_time()
    asyncio.run(main())
    return (time.process_time() - start) * 1e6 / len(edges)


def cost(shape: str, size: int, repeat: int) -> Cost:
    edges = SHAPES[shape](size)
    rounds = [
        (cpu_us(edges, ours), cpu_us(edges, lambda e: bare_loop(e, yield_once)))
        for _ in range(max(repeat, 2_000 // size))
    ]
    tracemalloc.start()
    asyncio.run(ours(edges))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    fastest = [min(times) for times in zip(*rounds, strict=True)]
    return Cost(shape, size, fastest[0], fastest[1], peak / size / 1024)


@dataclass(frozen=True)
class Makespan:
    """Each over the lower bound of the packages that were really published or tried."""

    shape: str
    size: int
    concurrency: int
    failing: bool
    ours: float
    list_scheduling: float
    fifo: float
    levels: float


def durations_of(edges: Edges, seed: int) -> dict[str, float]:
    """As builds and uploads have them: most short, some long."""
    rng = random.Random(seed)
    return {name: rng.lognormvariate(1.0, 0.8) for name in edges}


def virtual_run(
    edges: Edges, durations: dict[str, float], concurrency: int, failing: frozenset[str]
) -> tuple[float, set[str]]:
    """The makespan of the real Scheduler, and what it tried."""

    async def main(loop: VirtualLoop) -> tuple[float, set[str]]:
        async def publish(name: str) -> None:
            await asyncio.sleep(durations[name])
            if name in failing:
                raise ConnectionError(name)

        scheduler = Scheduler.from_graph(
            DependencyGraph.from_edges(edges),
            concurrency=concurrency,
            task_timeout=None,
            durations=durations,
            controls=False,
        )
        result = await scheduler.run(publish)
        return loop.time(), set(result.attempts)

    return run(main)


def makespan(shape: str, size: int, concurrency: int, *, failing: bool) -> Makespan:
    edges = SHAPES[shape](size)
    durations = durations_of(edges, size)
    rng = random.Random(size + 1)
    bad = frozenset(n for n in edges if rng.random() < 0.02) if failing else frozenset[str]()
    ours_s, tried = virtual_run(edges, durations, concurrency, bad)
    best_s = lower_bound(edges, durations, concurrency, tried)
    longest = longest_paths(edges, durations)
    by_path = list_schedule(edges, durations, concurrency, bad, lambda n: -longest[n])
    fifo = list_schedule(edges, durations, concurrency, bad, lambda _: 0.0)
    levels = level_by_level(edges, durations, concurrency, bad)
    ratios = (x / best_s for x in (ours_s, by_path, fifo, levels))
    return Makespan(shape, size, concurrency, failing, *ratios)


def idle_share(base_delay_s: float) -> float:
    """Slot time that stood free while a package was ready, with every fifth attempt failing."""
    edges = layered(300)
    durations = durations_of(edges, 7)

    async def main(loop: VirtualLoop) -> float:
        rng, idle_s, since = random.Random(7), 0.0, [0.0, 0.0]
        running: set[str] = set()

        async def publish(name: str) -> None:
            running.add(name)
            await asyncio.sleep(durations[name])
            running.discard(name)
            if rng.random() < 0.2:
                raise ConnectionError(name)

        scheduler = Scheduler.from_graph(
            DependencyGraph.from_edges(edges),
            concurrency=10,
            max_retries=50,
            retry_base_delay=base_delay_s,
            controls=False,
            rng=random.Random(1),
        )

        def look() -> None:
            nonlocal idle_s
            idle_s += since[1] * (loop.time() - since[0])
            frontier = scheduler._frontier  # noqa: SLF001 - from outside nobody can tell
            ready = sum(frontier.state(name) is State.READY for name in edges)
            since[:] = [loop.time(), min(ready, 10 - len(running))]

        loop.before_jump(look)
        assert (await scheduler.run(publish)).ok
        return idle_s / (10 * loop.time())

    return run(main)


async def cancel_ms(*, backing_off: bool) -> float:
    """From `cancel` to the return of `run`, in real time, with nothing in flight."""
    scheduler = Scheduler.from_graph(
        DependencyGraph.from_edges(fan_out(100)), max_retries=9, controls=False
    )

    class Busy(ConnectionError):
        retry_after = 60.0

    async def publish(_name: str) -> None:
        raise Busy

    if not backing_off:
        scheduler.pause()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(scheduler.run(publish))
        await asyncio.sleep(0.05)
        start = time.perf_counter()
        scheduler.cancel()
        await running
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--write", type=Path, help="a folder for the chart")
    options = parser.parse_args()
    sizes = [size for size in (100, 1_000, 10_000, 100_000) if size <= options.largest]

    costs = [cost(shape, size, options.repeat) for shape in SHAPES for size in sizes]
    print("\nCPU time and peak memory per package\n")
    print(
        table(
            ("graph", "packages", "us", "bare loop, us", "ratio", "peak kB"),
            [
                (
                    c.shape,
                    f"{c.size:,}",
                    f"{c.ours_us:.1f}",
                    f"{c.bare_us:.1f}",
                    f"{c.ratio:.2f}",
                    f"{c.peak_kb:.2f}",
                )
                for c in costs
            ],
        )
    )
    spans = [
        makespan(shape, size, concurrency, failing=failing)
        for shape in SHAPES
        for size in sizes
        if size <= 10_000
        for concurrency in (5, 20)
        for failing in (False, True)
    ]
    print("\nMakespan over the lower bound\n")
    print(
        table(
            (
                "graph",
                "packages",
                "slots",
                "failures",
                "ReleaseKit",
                "list scheduling",
                "FIFO",
                "levels",
            ),
            [
                (
                    s.shape,
                    f"{s.size:,}",
                    str(s.concurrency),
                    "2 %" if s.failing else "none",
                    f"{s.ours:.3f}",
                    f"{s.list_scheduling:.3f}",
                    f"{s.fifo:.3f}",
                    f"{s.levels:.3f}",
                )
                for s in spans
            ],
        )
    )
    print(
        f"\nmean: ReleaseKit {statistics.fmean(s.ours for s in spans):.4f}, "
        f"FIFO {statistics.fmean(s.fifo for s in spans):.4f}, "
        f"levels {statistics.fmean(s.levels for s in spans):.4f}"
    )
    worse = sum(s.ours > s.list_scheduling * (1 + 1e-9) for s in spans)
    print(f"worse than critical-path-first list scheduling: {worse} of {len(spans)} cases")
    for base_delay_s in (0.0, 1.0, 30.0):
        share = idle_share(base_delay_s)
        print(f"idle while a package is ready, base delay {base_delay_s:g} s: {share:.2%}")
    for backing_off in (False, True):
        text = "in a 60 s backoff" if backing_off else "paused"
        print(f"cancel {text}: {asyncio.run(cancel_ms(backing_off=backing_off)):.2f} ms")
    if options.write:
        (options.write / "scheduler-performance.svg").write_text(
            charts(
                [(c.shape, c.size, c.ours_us) for c in costs],
                [
                    ("ReleaseKit", statistics.fmean(s.ours for s in spans)),
                    ("FIFO", statistics.fmean(s.fifo for s in spans)),
                    ("level by level", statistics.fmean(s.levels for s in spans)),
                ],
            )
        )


if __name__ == "__main__":
    main()
