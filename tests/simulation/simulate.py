"""One seeded run of the real Scheduler in virtual time, with everything that may happen to it, and
an auditor that knows the rules and not the code. `python tests/simulation/simulate.py SEED` replays
one and prints what happened.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(root / "src"), str(root / "tests")]

from releasekit.errors import Rejected, Transient, Undecided
from releasekit.graph import DependencyGraph
from releasekit.model import Outcome
from releasekit.scheduler import RunResult, Scheduler, Task
from simulation.specification import BAD, GOOD
from simulation.virtual_loop import VirtualLoop, run

if TYPE_CHECKING:
    from collections.abc import Callable

LANES: dict[str, int | None] = {"build": 2, "upload": 3, "confirm": None}
TIMEOUT_S = 20.0
BASE_DELAY_S = 2.0


@dataclass(frozen=True)
class Scenario:
    """All that happens to a run, drawn before it starts: a seed is a scenario."""

    seed: int
    tasks: dict[str, Task]
    lanes: dict[str, int | None]
    max_retries: int
    done: frozenset[str]
    behaviours: dict[tuple[str, int], tuple[str, float]]
    events: list[tuple[float, str, str]]
    outer_timeout_s: float | None

    @property
    def strict(self) -> bool:
        return "publish" not in self.lanes


ANY_END = ("ok",) * 12 + ("error",) * 3 + ("transient", "after", "rejected", "undecided", "hang")
ROUGH_END = (*ANY_END, "itself", "foreign", "late", "at once", "at once", "busy")
ERRORS: dict[str, Callable[[], BaseException]] = {
    "error": lambda: ConnectionError("reset"),
    "transient": lambda: Transient("busy"),
    "after": lambda: Transient("busy", retry_after=45.0),
    "rejected": lambda: Rejected("not welcome"),
    "undecided": lambda: Undecided("may be there"),
    "itself": asyncio.CancelledError,
}
FINAL = {"Rejected", "Undecided"}
OWN_CANCEL = {"itself", "foreign", "hang"}
STRICT = {"error": "transient", "itself": "rejected"}


def draw(seed: int) -> Scenario:
    rng = random.Random(seed)
    strict = rng.random() < 0.4
    lanes: dict[str, int | None] = dict(LANES) if strict else {"publish": rng.randint(1, 4)}
    names = rng.sample("abcdefghijklmnop", rng.randint(1, 9))
    tasks: dict[str, Task] = {}
    for at, name in enumerate(names):
        after = rng.sample(names[:at], min(at, rng.choice((0, 0, 1, 1, 2, 3))))
        weight = rng.choice((1.0, 1.0, 2.0, 5.0))
        tasks[name] = Task(name, rng.choice(sorted(lanes)), frozenset(after), weight)
    retries = rng.randint(0, 2)
    ends = ROUGH_END if rng.random() < 0.5 else ANY_END
    behaviours = {}
    for name in (*names, "new0", "new1", "new2"):
        for attempt in range(1, retries + 2):
            end = rng.choice(ends)
            end = STRICT.get(end, end) if strict else end
            behaviours[name, attempt] = (end, rng.choice((0.0, 0.5, 1.0, 1.0, 3.0, rng.random())))
    calm = rng.random() < 0.3
    events = [] if calm else _events(rng, names)
    outer = rng.choice((None,) * 9 + (rng.uniform(0.0, 12.0),))
    done = frozenset(n for n in names if not strict and rng.random() < 0.07)
    return Scenario(seed, tasks, lanes, retries, done, behaviours, events, outer)


def _events(rng: random.Random, names: list[str]) -> list[tuple[float, str, str]]:
    events: list[tuple[float, str, str]] = []
    for at in range(rng.randint(0, 4)):
        kind = rng.choice(("pause", "remove", "bar", "add", "add", "cancel", "grace", "lane"))
        when = rng.choice((0.0, 1.0, rng.uniform(0.0, 10.0)))
        events.append((when, kind, f"new{at % 3}" if kind == "add" else rng.choice(names)))
        if kind == "pause":
            events.append((when + rng.choice((0.001, 1.0, 30.0)), "resume", ""))
    return events


@dataclass
class Auditor:
    """Stands in for the registry, watches as an observer, and objects to every broken rule."""

    scenario: Scenario
    loop: VirtualLoop
    scheduler: Scheduler = field(init=False)
    tasks: dict[str, Task] = field(init=False)
    running: set[str] = field(default_factory=set)
    attempts: dict[str, int] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)
    not_before: dict[str, float] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    barred: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    deadlines: dict[str, float] = field(default_factory=dict)
    paused: bool = False
    cancelled: bool = False
    last_end: float = 0.0
    broken: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)

    def rule(self, holds: object, text: str) -> None:
        if not holds:
            self.broken.append(f"{self.loop.time():.3f} s: {text}")

    def note(self, text: str) -> None:
        self.trace.append(f"{self.loop.time():8.3f} {text}")

    # What the run calls.

    async def publish(self, name: str) -> None:
        task, attempt = self.tasks[name], self.attempts.get(name, 0) + 1
        self.rule(not self.paused, f"{name} started while paused")
        self.rule(not self.cancelled, f"{name} started after cancel")
        self.rule(name not in self.running, f"{name} runs twice")
        self.rule(name not in self.outcomes, f"{name} started after its end")
        self.rule(name not in self.removed, f"{name} started after its removal")
        self.rule(attempt <= self.scenario.max_retries + 1, f"{name}: attempt {attempt}")
        self.rule(self.ends.get(name) not in FINAL, f"{name} started again after what is final")
        self.rule(name not in self.scenario.done, f"{name} started, but it is there already")
        self.rule(self.loop.time() >= self.not_before.get(name, 0.0), f"{name} retried early")
        for dependency in task.after:
            self.rule(self.satisfied(dependency), f"{name} started before {dependency}")
        self.attempts[name] = attempt
        self.running.add(name)
        busy = sum(self.tasks[other].lane == task.lane for other in self.running)
        limit = self.scenario.lanes[task.lane]
        self.rule(limit is None or busy <= limit, f"{busy} in lane {task.lane}")
        self.note(f"start {name} #{attempt}")
        end, seconds = self.scenario.behaviours[name, attempt]
        start_s = self.loop.time()
        try:
            await self._behave(name, end, seconds)
            self.ends[name] = "published"
        except BaseException as error:
            self.ends[name] = type(error).__name__
            raise
        finally:
            self.note(f"end {name} {end} {self.ends[name]}")
            self.running.discard(name)
            self.last_end = self.loop.time()
            self.rule(self.last_end <= start_s + TIMEOUT_S + 1e-6, f"{name} had no time-out")
            if self.ends[name] == "CancelledError" and end not in OWN_CANCEL:
                asked = self.last_end >= self.deadlines.get(name, 1e9) - 1e-6
                outer = self.scenario.outer_timeout_s is not None
                self.rule(asked or outer, f"{name} was cancelled, too early or for nothing")

    async def _behave(self, name: str, end: str, seconds: float) -> None:
        if end == "foreign":
            cast("asyncio.Task[object]", asyncio.current_task()).cancel()
        if end != "at once":
            await asyncio.sleep(seconds)
        if end in ERRORS:
            failure = ERRORS[end]()
            raise failure
        if end == "hang":
            await asyncio.sleep(10_000)
        elif end == "late":  # the answer arrives in spite of the cancellation
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(10_000)
        elif end == "busy" and not self.paused:  # calls back while it runs
            self.perform("pause", "")
            self.perform("resume", "")

    def satisfied(self, name: str) -> bool:
        outcome = self.outcomes.get(name)
        return outcome in GOOD or (outcome is Outcome.REMOVED and name not in self.barred)

    # What an observer is told.

    def started(self, name: str, attempt: int) -> None:
        self.rule(attempt == self.attempts.get(name, 0) + 1, f"{name}: announced #{attempt}")
        self._misbehave(name)

    def retrying(self, name: str, attempt: int, delay_s: float, error: BaseException) -> None:
        self.note(f"retry {name} in {delay_s:.3f}")
        asked = getattr(error, "retry_after", None) or 0.0
        cap = max(min(BASE_DELAY_S * 2 ** (attempt - 1), 60.0), asked)
        self.rule(asked <= delay_s <= cap, f"{name}: delay {delay_s}")
        self.not_before[name] = self.loop.time() + delay_s - 1e-6
        self._misbehave(name)

    def settled(self, name: str, outcome: Outcome, reason: str) -> None:
        self.note(f"settled {name} {outcome} {reason}")
        self.rule(name not in self.outcomes, f"{name} settled twice")
        self.rule(name not in self.running, f"{name} settled while running")
        self.outcomes[name] = outcome
        self.order.append(name)
        if not self.paused:
            self.scheduler.resume()  # changes nothing
        if len(self.outcomes) == len(self.tasks) and self.scenario.seed % 5 == 0:
            self._add("new2")  # on the last occasion there is
        self._misbehave(name)

    def _misbehave(self, name: str) -> None:
        if (self.scenario.seed + len(self.trace)) % 11 == 0:
            raise RuntimeError(f"observer of {name}")

    # What happens from outside.

    def perform(self, kind: str, name: str) -> None:
        self.note(f"{kind} {name}")
        match kind:
            case "pause" | "resume":
                self.paused = kind == "pause"
                getattr(self.scheduler, kind)()
            case "remove" | "bar":
                if name not in self.outcomes:
                    self.removed.add(name)
                    self.barred.discard(name)
                    if kind == "bar":
                        self.barred.add(name)
                self._must_end(name, 0.0)
                self.scheduler.remove_package(name, block_dependents=kind == "bar")
            case "add":
                if len(self.outcomes) < len(self.tasks):  # else there is nothing to add to
                    self._add(name)
            case _:
                self.cancelled = True
                grace_s = {"cancel": 0.0, "grace": 2.0, "lane": 4.0}[kind]
                lanes = {"upload", "publish"} if kind == "lane" else None
                for other in self.running:
                    spared = lanes is None or self.tasks[other].lane in lanes
                    self._must_end(other, grace_s if spared else 0.0)
                self.scheduler.cancel(grace_s=grace_s, lanes=lanes)

    def _add(self, name: str) -> None:
        if name in self.tasks:
            return
        rng = random.Random(self.scenario.seed)
        after = frozenset(rng.sample(sorted(self.tasks), min(2, len(self.tasks))))
        task = Task(name, rng.choice(sorted(self.scenario.lanes)), after)
        self.tasks[name] = task
        self.scheduler.add_task(task)

    def _must_end(self, name: str, grace_s: float) -> None:
        at = self.loop.time() + grace_s
        self.deadlines[name] = min(at, self.deadlines.get(name, at))

    def look(self) -> None:
        """Nothing is left to do in this instant: what was to end has, and no slot is free that
        something could use.
        """
        for name in self.running & self.deadlines.keys():
            self.rule(self.loop.time() <= self.deadlines[name], f"{name} was to be cancelled")
        if self.paused or self.cancelled:
            return
        for name, task in self.tasks.items():
            waits = self.loop.time() < self.not_before.get(name, 0.0)
            if name in self.outcomes or name in self.running or waits:
                continue
            if all(self.satisfied(dependency) for dependency in task.after):
                busy = sum(self.tasks[other].lane == task.lane for other in self.running)
                limit = self.scenario.lanes[task.lane]
                self.rule(limit is not None and busy >= limit, f"{name} is ready, a slot is free")


def build(scenario: Scenario, auditor: Auditor) -> Scheduler:
    rng = random.Random(scenario.seed)
    if scenario.strict:
        return Scheduler.from_tasks(
            scenario.tasks.values(),
            lanes=scenario.lanes,
            max_retries=scenario.max_retries,
            retry_base_delay=BASE_DELAY_S,
            task_timeout=TIMEOUT_S,
            observer=auditor,
            rng=rng,
        )
    graph = DependencyGraph.from_edges({n: t.after for n, t in scenario.tasks.items()})
    return Scheduler.from_graph(
        graph=graph,
        publishable=set(graph),
        concurrency=scenario.lanes["publish"] or 1,
        max_retries=scenario.max_retries,
        retry_base_delay=BASE_DELAY_S,
        task_timeout=TIMEOUT_S,
        already_published=scenario.done,
        durations={name: task.weight for name, task in scenario.tasks.items()},
        observer=auditor,
        controls=False,
        rng=rng,
    )


async def _main(loop: VirtualLoop, auditor: Auditor) -> RunResult | None:
    scenario = auditor.scenario
    auditor.tasks = dict(scenario.tasks)
    auditor.scheduler = build(scenario, auditor)
    loop.before_jump(auditor.look)
    loop.set_exception_handler(lambda _, context: auditor.rule(False, str(context)))
    for when, kind, name in scenario.events:
        loop.call_later(when, auditor.perform, kind, name)
    result = None
    try:
        async with asyncio.timeout(scenario.outer_timeout_s):
            result = await auditor.scheduler.run(auditor.publish)
    except TimeoutError:
        auditor.rule(scenario.outer_timeout_s is not None, "a time-out from inside came out")
    auditor.rule(asyncio.all_tasks() == {asyncio.current_task()}, "tasks were left behind")
    auditor.rule(not auditor.running, f"{auditor.running} still run")
    if result is not None:
        auditor.note("over")
        last_event = max((when for when, _, _ in scenario.events), default=0.0)
        quiet = max(auditor.last_end, last_event)
        auditor.rule(loop.time() <= quiet + 1e-6, "the run returned late")
        _judge(auditor, result)
    return result


def _judge(auditor: Auditor, result: RunResult) -> None:
    """Does every package have the one outcome that its own end and its dependencies give it?"""
    rule = auditor.rule
    rule(dict(result.outcomes) == auditor.outcomes, "observer and result differ")
    rule(set(result.outcomes) == set(auditor.tasks), "a package has no outcome")
    buckets = [*result.published, *result.already_published, *result.failed, *result.skipped]
    rule(sorted(buckets) == sorted(auditor.tasks), "not exactly one bucket each")
    rule(result.published == [n for n in auditor.order if n in result.published], "order")
    rule(dict(result.attempts) == auditor.attempts, "attempts")
    for name, task in auditor.tasks.items():
        outcome = result.outcomes[name]
        ended = auditor.ends.get(name)
        bad = [d for d in task.after if result.outcomes[d] in BAD or d in _walls(auditor, result)]
        if outcome is Outcome.BLOCKED:
            rule(bad and ended is None, f"{name} is blocked by nothing")
            rule(result.reasons[name].startswith("blocked by"), f"{name}: {result.reasons[name]}")
        elif outcome is Outcome.ALREADY_PUBLISHED:
            rule(name in auditor.scenario.done, f"{name} was not there")
        else:
            rule(not bad or outcome is Outcome.REMOVED, f"{name} should be blocked by {bad}")
        rule((outcome is Outcome.PUBLISHED) == (ended == "published"), f"{name}: {ended} {outcome}")
        if outcome is Outcome.REMOVED:
            rule(name in auditor.removed, f"nobody removed {name}")
        if outcome is Outcome.CANCELLED:
            rule(auditor.cancelled, f"nobody cancelled {name}")
        rule((outcome is Outcome.UNKNOWN) == (ended == "Undecided"), f"{name}: {ended} {outcome}")
        if outcome is Outcome.FAILED and ended == "CancelledError":
            rule(_last_end(auditor, name) in OWN_CANCEL, f"{name} failed, but was cancelled")
        if outcome is Outcome.FAILED and not auditor.cancelled:
            hung = _last_end(auditor, name) == "hang"
            cut = auditor.scenario.strict and ended == "CancelledError" and not hung
            final = ended in FINAL or cut
            exhausted = auditor.attempts[name] == auditor.scenario.max_retries + 1
            rule(final or exhausted, f"{name} failed with attempts left after {ended}")


def _walls(auditor: Auditor, result: RunResult) -> set[str]:
    return {n for n in auditor.barred if result.outcomes[n] is Outcome.REMOVED}


def _last_end(auditor: Auditor, name: str) -> str:
    return auditor.scenario.behaviours[name, auditor.attempts[name]][0]


def simulate(seed: int, *, order: int | None = None) -> tuple[Auditor, RunResult | None]:
    """`order` draws the wake-ups anew and leaves the scenario as it is."""
    scenario = draw(seed)
    audits: list[Auditor] = []

    async def main(loop: VirtualLoop) -> RunResult | None:
        audits.append(Auditor(scenario, loop))
        return await _main(loop, audits[0])

    result = run(main, seed if order is None else order)
    if audits[0].broken:
        raise AssertionError(f"seed {seed}: " + "; ".join(audits[0].broken))
    return audits[0], result


if __name__ == "__main__":
    audit, _ = simulate(int(sys.argv[1]))
    print("\n".join(audit.trace))  # noqa: T201 - a command
