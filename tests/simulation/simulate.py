"""One seeded run of the real Scheduler in virtual time, with everything that may happen to it, and
an auditor that knows the rules and not the code. `python tests/simulation/simulate.py SEED` replays
one and prints what happened.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(root / "src"), str(root / "tests")]

from releasekit.graph import DependencyGraph
from releasekit.model import Outcome
from releasekit.scheduler import RunResult, Scheduler, Task
from simulation.scenario import (
    BASE_DELAY_S,
    CANCELS,
    COMPLETING,
    ERRORS,
    FINAL,
    OWN_CANCEL,
    TIMEOUT_S,
    Scenario,
    draw,
)
from simulation.specification import BAD, GOOD
from simulation.virtual_loop import VirtualLoop, run


@dataclass
class Auditor:
    """Stands in for the registry, watches as an observer, and objects to every broken rule."""

    scenario: Scenario
    loop: VirtualLoop
    scheduler: Scheduler[str] = field(init=False)
    tasks: dict[str, Task[str]] = field(init=False)
    running: set[str] = field(default_factory=set)
    attempts: dict[str, int] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)
    not_before: dict[str, float] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    barred: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    marked: set[str] = field(default_factory=set)
    failed_after_cancel: set[str] = field(default_factory=set)
    completing: frozenset[str] = COMPLETING
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
        self.rule(self.may_start(name), f"{name} started after cancel")
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
        self.rule(self.free(task.lane) >= 0, f"too many in lane {task.lane}")
        if self.scenario.sequential and not self.scenario.events:
            first = next(other for other in self.tasks if self.could_run(other))
            self.rule(name == first, f"{name} started before {first}")
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
            if self.cancelled and name not in self.deadlines and self.ends[name] != "published":
                self.failed_after_cancel.add(name)
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

    def may_start(self, name: str) -> bool:
        """Unless the run was cancelled, or what is done is completed by it."""
        task = self.tasks[name]
        completes = task.lane in self.completing and bool(task.after)
        done = all(self.outcomes.get(dependency) in GOOD for dependency in task.after)
        return not self.cancelled or (completes and done)

    def could_run(self, name: str) -> bool:
        """Whether all it waits for has happened, and it has not ended."""
        waits = self.loop.time() < self.not_before.get(name, 0.0)
        if name in self.outcomes or waits or not self.may_start(name):
            return False
        return all(self.satisfied(dependency) for dependency in self.tasks[name].after)

    def free(self, lane: str) -> float:
        """Slots that a task of this lane could have."""
        holding, limit = set(self.running), self.scenario.lanes[lane]
        if self.scenario.sequential:
            now_s = self.loop.time()
            waiting = {n for n, at in self.not_before.items() if at > now_s}
            return 1 - len(holding | (waiting - self.outcomes.keys()))
        if limit is None:
            return math.inf
        return limit - sum(self.tasks[other].lane == lane for other in holding)

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
        running = name in self.running and name not in self.marked
        self.rule(not running, f"{name} settled while running")
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
            case "mark":
                if name not in self.outcomes:
                    self.marked.add(name)
                    self._must_end(name, 0.0)
                self.scheduler.mark_done(name)
            case "add":
                if len(self.outcomes) < len(self.tasks):  # else there is nothing to add to
                    self._add(name)
            case _:
                self._cancel(kind)

    def _cancel(self, kind: str) -> None:
        grace_s, lanes = CANCELS.get(kind, (None, None))
        self.cancelled, self.paused = True, False
        spared = frozenset[str]() if grace_s == 0.0 else lanes
        if spared is not None:
            self.completing &= spared
        for other in self.running:
            if spared is not None and self.tasks[other].lane not in spared:
                self._must_end(other, 0.0)
            elif grace_s is not None:
                self._must_end(other, grace_s)
        if grace_s:
            self.loop.call_later(grace_s, self._grace_is_over)
        self.scheduler.cancel(grace_s=grace_s, lanes=lanes, reason=f"cancelled by {kind}")

    def _grace_is_over(self) -> None:
        self.completing = frozenset()
        for other in self.running:
            self._must_end(other, 0.0)

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
        if self.paused:
            return
        for name, task in self.tasks.items():
            if name not in self.running and self.could_run(name):
                self.rule(self.free(task.lane) <= 0, f"{name} is ready, a slot is free")


def build(scenario: Scenario, auditor: Auditor) -> Scheduler[str]:
    rng = random.Random(scenario.seed)
    if scenario.strict:
        return Scheduler.from_tasks(
            scenario.tasks.values(),
            lanes=scenario.lanes,
            max_retries=scenario.max_retries,
            retry_base_delay=BASE_DELAY_S,
            task_timeout=TIMEOUT_S,
            completing=COMPLETING,
            sequential=scenario.sequential,
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


async def _main(loop: VirtualLoop, auditor: Auditor) -> RunResult[str] | None:
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


def _judge(auditor: Auditor, result: RunResult[str]) -> None:
    """Does every package have the one outcome that its own end and its dependencies give it?"""
    rule = auditor.rule
    rule(dict(result.outcomes) == auditor.outcomes, "observer and result differ")
    rule(set(result.outcomes) == set(auditor.tasks), "a package has no outcome")
    buckets = [*result.published, *result.already_published, *result.failed, *result.skipped]
    rule(sorted(buckets) == sorted(auditor.tasks), "not exactly one bucket each")
    rule(result.published == [n for n in auditor.order if n in result.published], "order")
    rule(dict(result.attempts) == auditor.attempts, "attempts")
    for name in auditor.marked:
        rule(result.outcomes[name] is Outcome.ALREADY_PUBLISHED, f"{name} was marked as done")
    for name in auditor.tasks.keys() - auditor.marked:
        _judge_one(auditor, result, name)


def _judge_one(auditor: Auditor, result: RunResult[str], name: str) -> None:
    rule, task, outcome = auditor.rule, auditor.tasks[name], result.outcomes[name]
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
        rule(result.reasons[name].startswith("cancelled by "), f"{name}: {result.reasons[name]}")
        rule(name not in auditor.failed_after_cancel, f"{name} had failed by itself")
    rule((outcome is Outcome.UNKNOWN) == (ended == "Undecided"), f"{name}: {ended} {outcome}")
    if outcome is Outcome.FAILED and ended == "CancelledError":
        rule(_last_end(auditor, name) in OWN_CANCEL, f"{name} failed, but was cancelled")
    if outcome is Outcome.FAILED and not auditor.cancelled:
        hung = _last_end(auditor, name) == "hang"
        cut = auditor.scenario.strict and ended == "CancelledError" and not hung
        final = ended in FINAL or cut
        exhausted = auditor.attempts[name] == auditor.scenario.max_retries + 1
        rule(final or exhausted, f"{name} failed with attempts left after {ended}")


def _walls(auditor: Auditor, result: RunResult[str]) -> set[str]:
    return {n for n in auditor.barred if result.outcomes[n] is Outcome.REMOVED}


def _last_end(auditor: Auditor, name: str) -> str:
    return auditor.scenario.behaviours[name, auditor.attempts[name]][0]


def simulate(seed: int, *, order: int | None = None) -> tuple[Auditor, RunResult[str] | None]:
    """`order` draws the wake-ups anew and leaves the scenario as it is."""
    scenario = draw(seed)
    audits: list[Auditor] = []

    async def main(loop: VirtualLoop) -> RunResult[str] | None:
        audits.append(Auditor(scenario, loop))
        return await _main(loop, audits[0])

    result = run(main, seed if order is None else order)
    if audits[0].broken:
        raise AssertionError(f"seed {seed}: " + "; ".join(audits[0].broken))
    return audits[0], result


if __name__ == "__main__":
    audit, _ = simulate(int(sys.argv[1]))
    print("\n".join(audit.trace))  # noqa: T201 - a command
