"""The decision what may start now. It is pure and synchronous, without a clock or randomness, so
that the engine, the simulator and the exhaustive checker run the very same code.
"""

from __future__ import annotations

import heapq
import math
from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic

from msgspec import Struct

from releasekit.errors import PlanError, UnknownDependency
from releasekit.graph import K, PriorityQueue
from releasekit.model import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping


BLOCKING = frozenset({Outcome.FAILED, Outcome.UNKNOWN, Outcome.BLOCKED})


class Task(Struct, Generic[K], frozen=True):
    """`after` names the tasks that must be done first; `weight` is in any unit, usually seconds.

    A task takes a slot of its `lane` while an attempt at it runs, or until that frees it, and at no
    other time. Tasks of one `group` go one at a time once an attempt has failed because of others
    beside it.
    """

    name: K
    lane: str = "publish"
    after: frozenset[K] = frozenset()
    weight: float = 1.0
    group: str = ""


class State(Enum):
    """Where a task is in its life. Only `SETTLED` is final and has an outcome."""

    PENDING = auto()  # waits for dependencies
    READY = auto()
    RUNNING = auto()  # holds a slot
    WAITING = auto()  # backs off before another attempt
    SETTLED = auto()


# Before Python 3.12 it takes longer to look a member up in its class than to compare it.
PENDING, READY, RUNNING, WAITING, SETTLED = State


class _Lane(Generic[K]):
    __slots__ = ("limit", "name", "ready", "running")

    def __init__(self, name: str, limit: int | None) -> None:
        if limit is not None and limit < 1:
            raise ValueError(f"the limit of lane {name!r} is {limit}, must be at least 1")
        self.name = name
        self.limit = limit
        self.running: set[K] = set()  # those that have a slot
        # Entries that no longer hold are skipped.
        self.ready: PriorityQueue[tuple[float, K]] = PriorityQueue()

    @property
    def free(self) -> float:
        """The number of free slots."""
        return math.inf if self.limit is None else self.limit - len(self.running)


class _Node(Generic[K]):
    __slots__ = (
        *("after", "bars", "dependents", "lane", "leaving", "name"),
        *("rank", "remaining", "state", "unmet", "weight"),
    )

    def __init__(self, task: Task[K], lane: _Lane[K], rank: int) -> None:
        self.name = task.name
        self.weight = task.weight
        self.lane = lane
        self.after = task.after
        self.rank = rank  # dependencies have smaller ranks
        self.dependents: list[_Node[K]] | None = None  # most have none, in a large graph
        self.unmet = 0
        # The longest path from its start to the end of the run; -inf where it prepares nothing.
        self.remaining = task.weight
        self.state = PENDING
        self.leaving = False  # removed while running: settles when its attempt has ended
        self.bars = False  # removed, and its dependents with it


class Frontier(Generic[K]):
    """Tasks in, names to start out; `outcomes` is the one record of what has come to its end.

    Methods that may end tasks return the names they settled, in the order they did. `tasks` have
    dependencies first, as in `DependencyGraph.order`; `done` are those that need no attempt. Tasks
    of the lanes `preparing` prepare the tasks after them, and come last once none of these can
    start. Tasks of the lanes `completing` complete what the tasks before them have begun. When
    `sequential`, there is one slot for all lanes, `tasks` get it in their order, and a task that
    backs off keeps it.
    """

    def __init__(
        self,
        tasks: Iterable[Task[K]],
        *,
        lanes: Mapping[str, int | None],
        done: Collection[K] = (),
        preparing: Collection[str] = (),
        completing: Collection[str] = (),
        sequential: bool = False,
    ) -> None:
        self.paused = False
        self._stopping = False
        self._preparing = frozenset(preparing)
        self._completing = frozenset(completing)
        self._sequential = sequential
        self._lanes = {
            name: _Lane[K](name, 1 if sequential else limit) for name, limit in lanes.items()
        }
        if sequential:
            first = next(iter(self._lanes.values()))
            for lane in self._lanes.values():
                lane.ready, lane.running = first.ready, first.running
        self._nodes: dict[K, _Node[K]] = {}
        self._by_rank: list[_Node[K]] = []
        self._outcomes: dict[K, Outcome] = {}
        for task in tasks:
            node = self._insert(task)
            if task.name in done:
                self._record(node, Outcome.ALREADY_PUBLISHED)
        for node in reversed(self._by_rank):
            node.remaining = self._longest_from(node)
        for node in self._by_rank:
            if node.state is PENDING and not node.unmet:
                self._enqueue(node)

    @property
    def outcomes(self) -> Mapping[K, Outcome]:
        """In the order of settlement."""
        return MappingProxyType(self._outcomes)

    @property
    def finished(self) -> bool:
        return len(self._outcomes) == len(self._nodes)

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def state(self, name: K) -> State:
        return self._nodes[name].state

    def lane_of(self, name: K) -> str:
        return self._nodes[name].lane.name

    def may_run(self, name: K) -> bool:
        """Whether an attempt that was taken but has not begun may still begin."""
        node = self._nodes[name]
        return not (
            self.paused
            or node.leaving
            or node.state is SETTLED
            or (self._stopping and self._comes_too_late(node))
        )

    def take(self) -> list[K]:
        """Give slots to as many ready tasks as there is room for, longest remaining path first."""
        taken: list[K] = []
        if self.paused:
            return taken
        for lane in self._lanes.values():
            free = lane.free
            while free > 0 and (entry := lane.ready.pop()):
                priority, name = entry
                node = self._nodes[name]
                if node.state is READY and priority == -node.remaining:
                    node.state = RUNNING
                    lane.running.add(name)
                    taken.append(name)
                    free -= 1
        return taken

    def free_slot(self, name: K) -> None:
        """Its attempt goes on without a slot."""
        self._leave_slot(name)

    def give_back(self, name: K) -> list[K]:
        """Take the slot back: its attempt has not begun and is not going to now."""
        node = self._leave_slot(name)
        if node.state is SETTLED:
            return []
        return self._end_early(node) or self._enqueue(node)

    def defer(self, name: K) -> list[K]:
        """Its attempt failed, and another is due after a pause, which `wake` ends.

        If there can be no other attempt, that failure is its end.
        """
        node = self._nodes[name]
        if node.state is SETTLED or node.leaving or self._stopping:
            return self.settle(name, Outcome.FAILED)
        if not self._sequential:
            self._leave_slot(name)
        node.state = WAITING
        return []

    def wake(self, name: K) -> None:
        """Its pause is over."""
        node = self._nodes[name]
        if node.state is not WAITING:
            raise ValueError(f"{name} is {node.state.name}, not WAITING")
        node.lane.running.discard(name)
        self._enqueue(node)

    def settle(self, name: K, outcome: Outcome) -> list[K]:
        """Its last attempt has ended; when that is not how the task ended, nothing else happens.

        A task that was removed meanwhile counts as removed, unless the attempt achieved something:
        a success, or an upload whose end is unknown.
        """
        node = self._leave_slot(name)
        if node.leaving and outcome in {Outcome.FAILED, Outcome.CANCELLED}:
            outcome = Outcome.REMOVED
        return self._settle((node, outcome))

    def mark_done(self, name: K) -> list[K]:
        """Somebody else has done it: nothing waits for it any more, and it is never started.

        A running task keeps its slot until its attempt ends, which no longer changes anything.
        """
        return self._settle((self._known(name), Outcome.ALREADY_PUBLISHED))

    def add(self, task: Task[K]) -> list[K]:
        """Raises UnknownDependency, and PlanError when the name is taken."""
        if task.name in self._nodes:
            raise PlanError(f"{task.name} is already part of this run")
        if unknown := sorted(name for name in task.after if name not in self._nodes):
            names = ", ".join(map(str, unknown))
            raise UnknownDependency(
                f"{task.name} depends on {names}, which is not part of this run"
            )
        node = self._insert(task)
        node.remaining = self._longest_from(node)
        if any(self._blocks(dependency) for dependency in self._before(node)):
            return self._settle((node, Outcome.BLOCKED))
        if node.unmet:
            self._reprioritise(self._before(node))
            return []
        return self._end_early(node) or self._enqueue(node)

    def remove(self, name: K, *, block_dependents: bool = False) -> list[K]:
        """Nothing waits for it any more, or, with `block_dependents`, nothing is started after it.

        A running task stays until its attempt has ended; a settled one keeps its outcome.
        """
        node = self._known(name)
        if node.state is SETTLED:
            return []
        node.leaving, node.bars = True, block_dependents
        return [] if node.state is RUNNING else self._settle((node, Outcome.REMOVED))

    def cancel(self, spared: Collection[str] | None = None) -> list[K]:
        """Nothing new starts any more, and a pause ends: only what completes something that is done
        may still start, in the lanes `spared` (None: all). When called again, the stricter call
        holds.

        What waits for a running task is settled after it: it is blocked if that fails, else
        cancelled, whichever of the two came first.
        """
        self.paused, self._stopping = False, True
        if spared is not None:
            self._completing &= set(spared)
        return self._settle(
            *(
                (node, Outcome.CANCELLED)
                for node in self._by_rank
                if node.state is WAITING or (node.state is READY and self._comes_too_late(node))
            )
        )

    def blockers(self, name: K) -> list[K]:
        """The dependencies of `name` that keep it from ever starting, by name."""
        return sorted(d.name for d in self._before(self._nodes[name]) if self._blocks(d))

    def causes(self) -> dict[K, K]:
        """For every blocked name, the task that is the cause; of several, the first by name."""
        causes: dict[K, K] = {}
        for node in self._by_rank:
            if self._outcomes.get(node.name) is Outcome.BLOCKED:
                causes[node.name] = min(causes.get(b, b) for b in self.blockers(node.name))
        return causes

    def _insert(self, task: Task[K]) -> _Node[K]:
        if task.lane not in self._lanes:
            raise ValueError(f"{task.name} is in lane {task.lane!r}, which has no limit")
        node = _Node(task, self._lanes[task.lane], rank=len(self._by_rank))
        for dependency in self._before(node):
            if dependency.dependents is None:
                dependency.dependents = [node]
            else:
                dependency.dependents.append(node)
            if dependency.state is not SETTLED:
                node.unmet += 1
        self._nodes[task.name] = node
        self._by_rank.append(node)
        return node

    def _before(self, node: _Node[K]) -> Iterator[_Node[K]]:
        """What it depends on directly."""
        return map(self._nodes.__getitem__, node.after)

    def _enqueue(self, node: _Node[K]) -> list[K]:
        node.state = READY
        node.lane.ready.push((-node.remaining, node.name))
        return []

    def _known(self, name: K) -> _Node[K]:
        if name not in self._nodes:
            raise PlanError(f"{name} is not part of this run")
        return self._nodes[name]

    def _leave_slot(self, name: K) -> _Node[K]:
        node = self._nodes[name]
        if node.state is not RUNNING and node.state is not SETTLED:
            raise ValueError(f"{name} is {node.state.name}, not RUNNING")
        node.lane.running.discard(name)
        return node

    def _end_early(self, node: _Node[K]) -> list[K]:
        if node.leaving:
            return self._settle((node, Outcome.REMOVED))
        if self._stopping and self._comes_too_late(node):
            return self._settle((node, Outcome.CANCELLED))
        return []

    def _comes_too_late(self, node: _Node[K]) -> bool:
        """Whether it may no longer start after `cancel`; everything it waits for has ended."""
        done = all(self._outcomes[name].done for name in node.after)
        return not (done and node.after and node.lane.name in self._completing)

    def _record(self, node: _Node[K], outcome: Outcome) -> None:
        if node.state is WAITING:
            node.lane.running.discard(node.name)
        node.state = SETTLED
        self._outcomes[node.name] = outcome

    def _blocks(self, node: _Node[K]) -> bool:
        outcome = self._outcomes.get(node.name)
        return outcome in BLOCKING or (outcome is Outcome.REMOVED and node.bars)

    def _settle(self, *ends: tuple[_Node[K], Outcome]) -> list[K]:
        """Record `ends` and everything that follows from them."""
        todo = list(ends)
        settled: list[K] = []
        shortened: list[_Node[K]] = []
        for node, outcome in todo:  # it grows meanwhile
            if node.state is SETTLED:
                continue
            if node.unmet:
                shortened.extend(self._before(node))
            self._record(node, outcome)
            settled.append(node.name)
            if node.dependents is None:
                continue
            blocks = self._blocks(node)
            for dependent in node.dependents:
                if dependent.state is not PENDING:
                    continue
                if blocks:
                    todo.append((dependent, Outcome.BLOCKED))
                elif self._release(dependent):
                    todo.append((dependent, Outcome.CANCELLED))
        if shortened:
            self._reprioritise(shortened)
        return settled

    def _release(self, dependent: _Node[K]) -> bool:
        """One dependency less to wait for; True if it was the last and comes too late."""
        dependent.unmet -= 1
        if dependent.unmet:
            return False
        if self._stopping and self._comes_too_late(dependent):
            return True
        self._enqueue(dependent)
        return False

    def _longest_from(self, node: _Node[K]) -> float:
        unsettled = [d.remaining for d in node.dependents or () if d.state is not SETTLED]
        longest = max(unsettled, default=-math.inf)
        if node.lane.name in self._preparing and longest == -math.inf:
            return longest
        if self._sequential:
            return -node.rank
        return node.weight + max(longest, 0.0)

    def _reprioritise(self, nodes: Iterable[_Node[K]]) -> None:
        """The paths behind `nodes` changed: recompute, each node once, dependents first."""
        todo = [-node.rank for node in nodes if node.state is not SETTLED]
        heapq.heapify(todo)
        last = 1
        while todo:
            if (rank := heapq.heappop(todo)) == last:
                continue
            last = rank
            node = self._by_rank[-rank]
            longest = self._longest_from(node)
            if node.remaining == longest:
                continue
            node.remaining = longest
            if node.state is READY:
                self._enqueue(node)
            for dependency in self._before(node):
                if dependency.state is not SETTLED:
                    heapq.heappush(todo, -dependency.rank)
