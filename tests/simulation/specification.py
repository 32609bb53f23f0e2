"""What a Frontier has to do, said a second time and as plainly as possible: the state of every task
as a function of what happened so far. Slow, without increments, and written from REQUIREMENTS only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from releasekit.model import Outcome
from releasekit.scheduler.frontier import Frontier, State, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

BAD = frozenset({Outcome.FAILED, Outcome.UNKNOWN, Outcome.BLOCKED})
GOOD = frozenset({Outcome.PUBLISHED, Outcome.ALREADY_PUBLISHED})


@dataclass
class World:
    """`tasks` have dependencies first. `fates` are the ends that came from outside."""

    tasks: dict[str, Task[str]]
    lanes: dict[str, int | None]
    preparing: frozenset[str] = frozenset()
    completing: frozenset[str] = frozenset()
    sequential: bool = False
    fates: dict[str, Outcome] = field(default_factory=dict)
    barred: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    paused: bool = False
    stopping: bool = False
    states: dict[str, State | Outcome] = field(default_factory=dict)  # as of the last check

    def copy(self) -> World:
        return World(
            dict(self.tasks),
            self.lanes,
            self.preparing,
            self.completing,
            self.sequential,
            dict(self.fates),
            set(self.barred),
            set(self.leaving),
            set(self.running),
            set(self.waiting),
            self.paused,
            self.stopping,
            self.states,
        )

    def expected(self) -> dict[str, State | Outcome]:
        """The state of each task, or its outcome once it is settled."""
        states: dict[str, State | Outcome] = {}
        for name, task in self.tasks.items():
            below = {d: states[d] for d in task.after}
            if name in self.fates:
                states[name] = self.fates[name]
            elif name in self.running:
                states[name] = State.RUNNING
            elif any(self._blocks(d, state) for d, state in below.items()):
                states[name] = Outcome.BLOCKED
            elif not all(isinstance(state, Outcome) for state in below.values()):
                states[name] = State.PENDING
            elif self.stopping and not self._completes(task, below.values()):
                states[name] = Outcome.CANCELLED
            else:
                states[name] = State.WAITING if name in self.waiting else State.READY
        return states

    def _completes(self, task: Task[str], below: Collection[State | Outcome]) -> bool:
        """Whether it may still start after a cancel: it goes on with what was done before."""
        return task.lane in self.completing and len(below) > 0 and set(below) <= GOOD

    def _blocks(self, name: str, state: State | Outcome) -> bool:
        return state in BAD or (state is Outcome.REMOVED and name in self.barred)

    def priorities(self, states: dict[str, State | Outcome]) -> dict[str, tuple[float, str]]:
        """Of all that has no outcome; the smaller goes first."""
        longest: dict[str, float] = {}
        for name in reversed(self.tasks):
            if isinstance(states[name], State):
                behind = [longest[d] for d in longest if name in self.tasks[d].after]
                then = max(behind, default=-math.inf)
                in_vain = self.tasks[name].lane in self.preparing and then == -math.inf
                longest[name] = then if in_vain else self.tasks[name].weight + max(then, 0.0)
        places = {name: place for place, name in enumerate(self.tasks)}
        return {
            name: (places[name] if self.sequential and length > -math.inf else -length, name)
            for name, length in longest.items()
        }

    def pools(self) -> list[tuple[int | None, set[str]]]:
        """Slots, and the lanes that share them."""
        if self.sequential:
            return [(1, set(self.lanes))]
        return [(limit, {lane}) for lane, limit in self.lanes.items()]

    def room(self, limit: int | None, lanes: set[str]) -> int:
        holding = self.running | self.waiting if self.sequential else self.running
        busy = sum(self.tasks[name].lane in lanes for name in holding)
        return len(self.tasks) if limit is None else limit - busy

    def startable(self) -> set[str]:
        """What a take has to give out now: for each slot, the first by priority that is ready."""
        states = self.states
        if self.paused or State.READY not in states.values():
            return set()
        priorities = self.priorities(states)
        chosen: set[str] = set()
        for limit, lanes in self.pools():
            ready = [n for n, s in states.items() if s is State.READY]
            ready = [n for n in ready if self.tasks[n].lane in lanes]
            ready.sort(key=priorities.__getitem__)
            chosen.update(ready[: max(0, self.room(limit, lanes))])
        return chosen


class Pair:
    """The real Frontier and the specification, driven together and compared after every step."""

    def __init__(
        self,
        tasks: dict[str, Task[str]],
        lanes: dict[str, int | None],
        done: frozenset[str] = frozenset(),
        *,
        preparing: frozenset[str] = frozenset(),
        completing: frozenset[str] = frozenset(),
        sequential: bool = False,
    ) -> None:
        self.real = Frontier(
            tasks.values(),
            lanes=lanes,
            done=done,
            preparing=preparing,
            completing=completing,
            sequential=sequential,
        )
        fates = dict.fromkeys((n for n in tasks if n in done), Outcome.ALREADY_PUBLISHED)
        self.world = World(dict(tasks), lanes, preparing, completing, sequential, fates)
        self.check()

    def check(self) -> dict[str, State | Outcome]:
        expected = self.world.expected()
        outcomes = {n: s for n, s in expected.items() if isinstance(s, Outcome)}
        assert self.real.outcomes == outcomes, "outcomes"
        for name, state in expected.items():
            known = State.SETTLED if isinstance(state, Outcome) else state
            assert self.real.state(name) is known, (name, state)
        for limit, lanes in self.world.pools():
            assert limit is None or self.world.room(limit, lanes) >= 0, ("limit", lanes)
        assert self.real.paused == self.world.paused, "paused"
        assert self.real.finished == (len(outcomes) == len(expected)), "finished"
        self.world.states = expected
        return expected

    def take(self) -> set[str]:
        startable = self.world.startable()
        taken = self.real.take()
        assert len(taken) == len(set(taken)), "twice"
        assert set(taken) == startable, ("take", taken, startable)
        if startable:
            self.world.running |= startable
            self.world.states = self.world.states | dict.fromkeys(startable, State.RUNNING)
        return startable

    def settle(self, name: str, outcome: Outcome) -> None:
        self._changed(self.real.settle(name, outcome), lambda: self._ended(name, outcome))

    def defer(self, name: str) -> None:
        def pause() -> None:
            fate = self.world.states[name]
            if self.world.stopping or name in self.world.leaving or isinstance(fate, Outcome):
                self._ended(name, Outcome.FAILED)
            else:
                self.world.running.discard(name)
                self.world.waiting.add(name)

        self._changed(self.real.defer(name), pause)

    def give_back(self, name: str) -> None:
        def back() -> None:
            if name in self.world.leaving:
                self._ended(name, Outcome.CANCELLED)
            else:
                self.world.running.discard(name)

        self._changed(self.real.give_back(name), back)

    def wake(self, name: str) -> None:
        self.real.wake(name)
        self.world.waiting.discard(name)
        self.check()

    def cancel(self, spared: frozenset[str] | None = None) -> None:
        def stop() -> None:
            self.world.paused, self.world.stopping = False, True
            if spared is not None:
                self.world.completing &= spared
            for name in self.world.waiting:
                self.world.fates[name] = Outcome.CANCELLED
            self.world.waiting.clear()

        self._changed(self.real.cancel(spared), stop)

    def mark_done(self, name: str) -> None:
        def done() -> None:
            if not isinstance(self.world.states[name], Outcome):
                self.world.waiting.discard(name)
                self.world.fates[name] = Outcome.ALREADY_PUBLISHED

        self._changed(self.real.mark_done(name), done)

    def remove(self, name: str, *, block: bool) -> None:
        def leave() -> None:
            if isinstance(self.world.states[name], Outcome):
                return
            self.world.barred.discard(name)
            if block:
                self.world.barred.add(name)
            self.world.leaving.add(name)
            if name not in self.world.running:
                self.world.waiting.discard(name)
                self.world.fates[name] = Outcome.REMOVED

        self._changed(self.real.remove(name, block_dependents=block), leave)

    def add(self, task: Task[str]) -> None:
        self._changed(self.real.add(task), lambda: self.world.tasks.update({task.name: task}))

    def pause(self, *, paused: bool) -> None:
        self.real.paused = self.world.paused = paused
        self.check()

    def _ended(self, name: str, outcome: Outcome) -> None:
        self.world.running.discard(name)
        if isinstance(self.world.states[name], Outcome):
            return
        if name in self.world.leaving and outcome in {Outcome.FAILED, Outcome.CANCELLED}:
            outcome = Outcome.REMOVED
        self.world.fates[name] = outcome

    def _changed(self, settled: list[str], change: Callable[[], None]) -> None:
        before = {n for n, s in self.world.states.items() if isinstance(s, Outcome)}
        change()
        after = {n for n, s in self.check().items() if isinstance(s, Outcome)}
        assert before <= after, "an outcome was taken back"
        assert sorted(settled) == sorted(after - before), ("settled", settled, after - before)
        assert settled == [n for n in self.real.outcomes if n in set(settled)], "order of record"
