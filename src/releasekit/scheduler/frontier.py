"""The decision what may start now. Pure and synchronous, without clock or randomness, so that the
engine, the simulator and the exhaustive checker run the very same code.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING

from releasekit.errors import PlanError, UnknownDependency
from releasekit.model import Outcome
from releasekit.priority import PriorityQueue

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

BLOCKING = frozenset({Outcome.FAILED, Outcome.UNKNOWN, Outcome.BLOCKED})


@dataclass(frozen=True, slots=True)
class Task:
    """`after` names the tasks that must be done first; `weight` is in any unit, usually seconds.

    A task takes a slot of its `lane` while an attempt at it runs, and at no other time.
    """

    name: str
    lane: str = "publish"
    after: frozenset[str] = frozenset()
    weight: float = 1.0


class State(Enum):
    """Where a task is in its life. Only `SETTLED` is final, and only then it has an outcome."""

    PENDING = auto()  # waits for dependencies
    READY = auto()
    RUNNING = auto()  # holds a slot
    WAITING = auto()  # backs off before another attempt, without a slot
    SETTLED = auto()


# Before Python 3.12 it takes longer to look a member up in its class than to compare it.
PENDING, READY, RUNNING, WAITING, SETTLED = State
NOBODY: list[_Node] = []  # shared by all without dependents: most, in a large graph


class _Lane:
    __slots__ = ("limit", "name", "ready", "running")

    def __init__(self, name: str, limit: int | None) -> None:
        if limit is not None and limit < 1:
            raise ValueError(f"the limit of lane {name!r} is {limit}, must be at least 1")
        self.name = name
        self.limit = limit
        self.running: set[str] = set()
        self.ready = PriorityQueue[tuple[float, str]]()  # entries that no longer hold are skipped

    @property
    def free(self) -> float:
        """Slots."""
        return math.inf if self.limit is None else self.limit - len(self.running)


class _Node:
    __slots__ = (
        "after",
        "bars",
        "dependents",
        "lane",
        "leaving",
        "name",
        "rank",
        "remaining",
        "state",
        "unmet",
        "weight",
    )

    def __init__(self, task: Task, lane: _Lane, rank: int) -> None:
        self.name = task.name
        self.weight = task.weight
        self.lane = lane
        self.after = task.after
        self.rank = rank  # dependencies have smaller ranks
        self.dependents: list[_Node] = NOBODY
        self.unmet = 0
        self.remaining = task.weight  # the longest path from its start to the end of the run
        self.state = PENDING
        self.leaving = False  # removed while running: settles when its attempt has ended
        self.bars = False  # removed, and its dependents with it


class Frontier:
    """Tasks in, names to start out; `outcomes` is the one record of what has come to its end.

    Methods that may end tasks return the names they settled, in the order they did. `tasks` have
    dependencies first, as in `DependencyGraph.order`; `done` are those that need no attempt.
    """

    def __init__(
        self, tasks: Iterable[Task], *, lanes: Mapping[str, int | None], done: Collection[str] = ()
    ) -> None:
        self.paused = False
        self._stopping = False
        self._lanes = {name: _Lane(name, limit) for name, limit in lanes.items()}
        self._nodes: dict[str, _Node] = {}
        self._by_rank: list[_Node] = []
        self._outcomes: dict[str, Outcome] = {}
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
    def outcomes(self) -> Mapping[str, Outcome]:
        """In the order of settlement."""
        return MappingProxyType(self._outcomes)

    @property
    def finished(self) -> bool:
        return len(self._outcomes) == len(self._nodes)

    @property
    def stopping(self) -> bool:
        """After `cancel`; there is no way back."""
        return self._stopping

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def state(self, name: str) -> State:
        return self._nodes[name].state

    def lane_of(self, name: str) -> str:
        return self._nodes[name].lane.name

    def may_run(self, name: str) -> bool:
        """Whether an attempt that was taken but has not begun may still begin."""
        return not (self.paused or self._stopping or self._nodes[name].leaving)

    def take(self) -> list[str]:
        """Give slots to as many ready tasks as there is room for, longest remaining path first."""
        taken: list[str] = []
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

    def give_back(self, name: str) -> list[str]:
        """Its attempt has not begun and is not going to now."""
        node = self._leave_slot(name)
        return self._end_early(node) or self._enqueue(node)

    def defer(self, name: str) -> list[str]:
        """Its attempt failed and another is due: free the slot until `wake`.

        When there can be no other attempt, the task is settled instead.
        """
        node = self._leave_slot(name)
        node.state = WAITING
        return self._end_early(node)

    def wake(self, name: str) -> None:
        """Its pause is over."""
        node = self._nodes[name]
        if node.state is not WAITING:
            raise ValueError(f"{name} is {node.state.name}, not WAITING")
        self._enqueue(node)

    def settle(self, name: str, outcome: Outcome) -> list[str]:
        """Its last attempt has ended. What was removed meanwhile counts as removed, unless the
        attempt came to something: a success, or an upload nobody knows the end of.
        """
        node = self._leave_slot(name)
        if node.leaving and outcome in {Outcome.FAILED, Outcome.CANCELLED}:
            outcome = Outcome.REMOVED
        return self._settle((node, outcome))

    def add(self, task: Task) -> list[str]:
        """Raises UnknownDependency, and PlanError when the name is taken."""
        if task.name in self._nodes:
            raise PlanError(f"{task.name} is already part of this run")
        if unknown := sorted(name for name in task.after if name not in self._nodes):
            raise UnknownDependency(
                f"{task.name} depends on {', '.join(unknown)}, which is not part of this run"
            )
        node = self._insert(task)
        if any(self._blocks(dependency) for dependency in self._before(node)):
            return self._settle((node, Outcome.BLOCKED))
        if node.unmet:
            self._reprioritise(self._before(node))
            return []
        return self._end_early(node) or self._enqueue(node)

    def remove(self, name: str, *, block_dependents: bool = False) -> list[str]:
        """Nobody waits for it any more, or, with `block_dependents`, nobody is started after it.

        A running task stays until its attempt has ended; a settled one stays what it is.
        """
        if name not in self._nodes:
            raise PlanError(f"{name} is not part of this run")
        node = self._nodes[name]
        if node.state is SETTLED:
            return []
        node.leaving, node.bars = True, block_dependents
        return [] if node.state is RUNNING else self._settle((node, Outcome.REMOVED))

    def cancel(self) -> list[str]:
        """Nothing starts any more. What waits only for a running task is settled after it: it is
        blocked if that fails, else cancelled, whichever of the two came first.
        """
        self._stopping = True
        idle = {READY, WAITING}
        return self._settle(
            *((node, Outcome.CANCELLED) for node in self._by_rank if node.state in idle)
        )

    def blockers(self, name: str) -> list[str]:
        """The dependencies of `name` that keep it from ever starting, by name."""
        return sorted(d.name for d in self._before(self._nodes[name]) if self._blocks(d))

    def causes(self) -> dict[str, str]:
        """For every blocked name, the task at the root of it: of several, the first by name."""
        causes: dict[str, str] = {}
        for node in self._by_rank:
            if self._outcomes.get(node.name) is Outcome.BLOCKED:
                causes[node.name] = min(causes.get(b, b) for b in self.blockers(node.name))
        return causes

    def _insert(self, task: Task) -> _Node:
        if task.lane not in self._lanes:
            raise ValueError(f"{task.name} is in lane {task.lane!r}, which has no limit")
        node = _Node(task, self._lanes[task.lane], rank=len(self._by_rank))
        for dependency in self._before(node):
            if dependency.dependents is NOBODY:
                dependency.dependents = [node]
            else:
                dependency.dependents.append(node)
            if dependency.state is not SETTLED:
                node.unmet += 1
        self._nodes[task.name] = node
        self._by_rank.append(node)
        return node

    def _before(self, node: _Node) -> Iterator[_Node]:
        """What it depends on directly."""
        return map(self._nodes.__getitem__, node.after)

    def _enqueue(self, node: _Node) -> list[str]:
        node.state = READY
        node.lane.ready.push((-node.remaining, node.name))
        return []

    def _leave_slot(self, name: str) -> _Node:
        node = self._nodes[name]
        node.lane.running.remove(name)  # KeyError: it is not running
        return node

    def _end_early(self, node: _Node) -> list[str]:
        if node.leaving:
            return self._settle((node, Outcome.REMOVED))
        return self._settle((node, Outcome.CANCELLED)) if self._stopping else []

    def _record(self, node: _Node, outcome: Outcome) -> None:
        node.state = SETTLED
        self._outcomes[node.name] = outcome

    def _blocks(self, node: _Node) -> bool:
        outcome = self._outcomes.get(node.name)
        return outcome in BLOCKING or (outcome is Outcome.REMOVED and node.bars)

    def _settle(self, *ends: tuple[_Node, Outcome]) -> list[str]:
        """Record `ends` and all that follows from them."""
        todo = list(ends)
        settled: list[str] = []
        shortened: list[_Node] = []
        for node, outcome in todo:  # it grows meanwhile
            if node.state is SETTLED:
                continue
            if node.unmet:
                shortened.extend(self._before(node))
            self._record(node, outcome)
            settled.append(node.name)
            if not node.dependents:
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

    def _release(self, dependent: _Node) -> bool:
        """One dependency less to wait for; True when it was the last and comes too late."""
        dependent.unmet -= 1
        if not dependent.unmet and not self._stopping:
            self._enqueue(dependent)
        return not dependent.unmet and self._stopping

    def _longest_from(self, node: _Node) -> float:
        unsettled = [d.remaining for d in node.dependents if d.state is not SETTLED]
        return node.weight + max(unsettled, default=0.0)

    def _reprioritise(self, nodes: Iterable[_Node]) -> None:
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
