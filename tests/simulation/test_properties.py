"""Random histories over random graphs, larger than the exhaustive ones; a failure shrinks."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from releasekit.graph import PriorityQueue
from releasekit.model import Outcome
from releasekit.scheduler.frontier import State, Task
from simulation.specification import Pair

if TYPE_CHECKING:
    import random

LANES: dict[str, int | None] = {"build": 2, "upload": 1, "confirm": None}
WEIGHTS = st.sampled_from([0.0, 0.5, 1.0, 1.0, 3.0])


@st.composite
def task_lists(draw: st.DrawFn, *, largest: int = 12) -> list[Task[str]]:
    """Names in an order that says nothing about the edges."""
    names = draw(st.permutations([f"n{at}" for at in range(draw(st.integers(0, largest)))]))
    tasks: list[Task[str]] = []
    for at, name in enumerate(names):
        after = draw(st.frozensets(st.sampled_from(names[:at]), max_size=4)) if at else frozenset()
        lane = draw(st.sampled_from(sorted(LANES)))
        tasks.append(Task(name, lane, after, draw(WEIGHTS)))
    return tasks


class Histories(RuleBasedStateMachine):
    """Every step is compared with the specification, by `Pair`."""

    @initialize(tasks=task_lists(), data=st.data(), sequential=st.booleans())
    def begin(self, tasks: list[Task[str]], data: st.DataObject, *, sequential: bool) -> None:
        names = [task.name for task in tasks]
        done = data.draw(st.frozensets(st.sampled_from(names))) if names else frozenset[str]()
        self.pair = Pair(
            {task.name: task for task in tasks},
            LANES,
            done,
            preparing=frozenset({"build"}),
            completing=frozenset({"confirm"}),
            sequential=sequential,
        )
        self.added = itertools.count()

    def some(self, data: st.DataObject, names: set[str]) -> str:
        return data.draw(st.sampled_from(sorted(names)))

    @rule()
    def take(self) -> None:
        self.pair.take()

    @precondition(lambda self: self.pair.world.running)
    @rule(
        data=st.data(),
        outcome=st.sampled_from(
            [Outcome.PUBLISHED, Outcome.PUBLISHED, Outcome.FAILED, Outcome.UNKNOWN]
        ),
    )
    def settle(self, data: st.DataObject, outcome: Outcome) -> None:
        self.pair.settle(self.some(data, self.pair.world.running), outcome)

    @precondition(lambda self: self.pair.world.running)
    @rule(data=st.data())
    def defer(self, data: st.DataObject) -> None:
        self.pair.defer(self.some(data, self.pair.world.running))

    @precondition(lambda self: self.pair.world.waiting)
    @rule(data=st.data())
    def wake(self, data: st.DataObject) -> None:
        self.pair.wake(self.some(data, self.pair.world.waiting))

    @precondition(lambda self: self.pair.world.running)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        self.pair.give_back(self.some(data, self.pair.world.running))

    @precondition(lambda self: self.pair.world.tasks)
    @rule(data=st.data(), block=st.booleans())
    def remove(self, data: st.DataObject, *, block: bool) -> None:
        self.pair.remove(self.some(data, set(self.pair.world.tasks)), block=block)

    @precondition(lambda self: self.pair.world.tasks)
    @rule(data=st.data())
    def mark_done(self, data: st.DataObject) -> None:
        self.pair.mark_done(self.some(data, set(self.pair.world.tasks)))

    @rule(data=st.data(), weight=WEIGHTS, lane=st.sampled_from(sorted(LANES)))
    def add(self, data: st.DataObject, weight: float, lane: str) -> None:
        known = sorted(self.pair.world.tasks)
        after: Any = data.draw(st.frozensets(st.sampled_from(known), max_size=3)) if known else ()
        self.pair.add(Task(f"x{next(self.added)}", lane, frozenset(after), weight))

    @rule(paused=st.booleans())
    def pause(self, *, paused: bool) -> None:
        self.pair.pause(paused=paused)

    @precondition(lambda self: self.pair.world.running)
    @rule(spared=st.sampled_from([None, frozenset({"confirm"}), frozenset[str]()]))
    def cancel(self, spared: frozenset[str] | None) -> None:
        self.pair.cancel(spared)

    def teardown(self) -> None:
        """However it stands, it can be brought to its end, and then everything has an outcome."""
        if not hasattr(self, "pair"):
            return
        self.pair.pause(paused=False)
        while not self.pair.real.finished:
            for name in sorted(self.pair.world.waiting):
                self.pair.wake(name)
            self.pair.take()
            assert self.pair.world.running
            self.pair.settle(min(self.pair.world.running), Outcome.PUBLISHED)
        assert State.PENDING not in self.pair.check().values()


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


@given(task_lists(largest=20), st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_outcomes_do_not_depend_on_the_order_of_ends(
    tasks: list[Task[str]], data: st.DataObject
) -> None:
    """R5: two runs in which the same packages fail, in different orders and with other limits."""
    names = [task.name for task in tasks]
    failing = data.draw(st.frozensets(st.sampled_from(names))) if names else frozenset[str]()
    ends = []
    for limit in (1, 7):
        lanes: dict[str, int | None] = dict.fromkeys(LANES, limit)
        pair = Pair({task.name: task for task in tasks}, lanes)
        while not pair.real.finished:
            pair.take()
            name = data.draw(st.sampled_from(sorted(pair.world.running)))
            outcome = Outcome.FAILED if name in failing else Outcome.PUBLISHED
            pair.settle(name, outcome)
        ends.append((dict(pair.real.outcomes), pair.real.causes()))
    assert ends[0] == ends[1]


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=12),
    st.lists(st.floats(-2.0, 0.0), max_size=5),
    st.randoms(use_true_random=False),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_queue_of_any_length_gives_its_smallest(
    rounds: list[tuple[int, int]], first: list[float], rng: random.Random
) -> None:
    """R9: so many arrive together, so many leave one by one."""
    fresh = (f"n{at}" for at in itertools.count())
    expected = [(priority, next(fresh)) for priority in first]
    queue = PriorityQueue(expected)
    for arriving, leaving in rounds:
        for _ in range(arriving):
            item = (rng.choice((-3.0, -2.0, -1.0)), next(fresh))
            queue.push(item)
            expected.append(item)
        expected.sort()
        assert sorted(queue) == expected
        popped = [queue.pop() for _ in range(min(leaving, len(queue)))]
        assert popped == expected[: len(popped)]
        del expected[: len(popped)]
        assert len(queue) == len(expected)
