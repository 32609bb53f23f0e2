"""Runs tasks in dependency order with asyncio: starts what the Frontier allows, waits out retries,
and knows pause, resume and cancel. It knows nothing of packages or registries.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Generic, ParamSpec, Self, cast

from releasekit.aio import Group
from releasekit.errors import CircuitOpen, PackageError, PlanError, Transient
from releasekit.graph import DependencyGraph, K, gc_paused
from releasekit.model import Outcome
from releasekit.scheduler.controls import listening
from releasekit.scheduler.frontier import Frontier, State, Task
from releasekit.scheduler.result import Observer, Reasons, RunResult
from releasekit.scheduler.retries import (
    PATIENT,
    SPREAD,
    Backoff,
    Deadlines,
    Estimates,
    Retry,
    WaitBudget,
    outcome_of,
    per_lane,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping


LANE = "publish"
Told = ParamSpec("Told")
logger = logging.getLogger(__name__)


class Scheduler(Generic[K]):
    """One run. Its methods belong to the event loop's thread; call them from the publish function,
    from observers, or from anywhere else in that thread, before and during the run.
    """

    def __init__(
        self,
        frontier: Frontier[K],
        retries: Mapping[str, Retry],
        *,
        estimates: Estimates[K],
        task_timeout_s: Mapping[str, float | None],
        rng: random.Random,
        groups: Mapping[K, str] | None = None,
        observer: Observer[K] | None = None,
        controls: bool = False,
    ) -> None:
        self._frontier = frontier
        self._retries = retries
        self._rng = rng
        self._estimates = estimates
        self._observer = observer
        self._listens = controls
        self._publish: Callable[[K], Awaitable[object]] = _not_running
        self._conclude: Callable[[K, PackageError], Awaitable[object]] | None = None
        self._context = Context()
        self._group = Group(together=True)
        self._changed = asyncio.Event()
        self._unreported = list(frontier.outcomes)
        self._running: dict[K, asyncio.Task[object]] = {}  # whose attempt has begun
        self._pauses: dict[K, asyncio.TimerHandle] = {}
        self._graces: list[asyncio.TimerHandle] = []
        self._deadlines = {lane: Deadlines(limit_s) for lane, limit_s in task_timeout_s.items()}
        self._attempts: dict[K, int] = {}
        self._turns = Turns(groups or {})
        self._reasons = Reasons(frontier)

    @classmethod
    @gc_paused()
    def from_graph(
        cls,
        graph: DependencyGraph[K],
        publishable: Collection[K] | None = None,
        *,
        concurrency: int = 5,
        max_retries: int = 0,
        retry_base_delay: float = 1.0,
        task_timeout: float | None = 600.0,
        already_published: Collection[K] = (),
        durations: Mapping[K, float] | None = None,
        observer: Observer[K] | None = None,
        controls: bool = True,
        rng: random.Random | None = None,
    ) -> Self:
        """One lane. Publishes `publishable` (None: all) in the order of `graph`; what is not
        publishable is looked through. `already_published` names count as done.

        Whatever the publish function raises ends that package only and is retried, up to
        `max_retries` times, except for errors of `releasekit.errors` other than Transient, which
        are final. `durations`, `retry_base_delay` and `task_timeout` (of one attempt) are in
        seconds. With `controls`, `run` listens to SIGUSR1, SIGUSR2 and the keys p, r and q.
        """
        done = frozenset(already_published)
        wanted = frozenset(graph if publishable is None else publishable)
        kept = graph.restricted_to(wanted | (done & graph.edges.keys()))
        names = (*kept.order, *sorted(done - graph.edges.keys()))
        known = durations or {}
        estimates = Estimates((Task(name, LANE) for name in names if name in known), known)
        tasks = (Task(name, LANE, kept.edges.get(name, frozenset())) for name in names)
        frontier = Frontier(map(estimates.weigh, tasks), lanes={LANE: concurrency}, done=done)
        return cls(
            frontier,
            {LANE: Retry(max_retries, retry_base_delay, any_error=True)},
            estimates=estimates,
            task_timeout_s={LANE: task_timeout},
            rng=rng or SPREAD,
            observer=observer,
            controls=controls,
        )

    @classmethod
    @gc_paused()
    def from_tasks(
        cls,
        tasks: Iterable[Task[K]],
        *,
        lanes: Mapping[str, int | None],
        max_retries: int | Mapping[str, int] = 0,
        retry_base_delay: float = 1.0,
        task_timeout: float | Mapping[str, float | None] | None = 600.0,
        durations: Mapping[K, float] | None = None,
        preparing: Collection[str] = (),
        completing: Collection[str] = (),
        sequential: bool = False,
        patience: WaitBudget = PATIENT,
        observer: Observer[K] | None = None,
        rng: random.Random | None = None,
    ) -> Self:
        """Several lanes, each with its own limit (None: no limit), retries and time-out.

        Tasks of the lanes `preparing` prepare the tasks after them, and come last once none of
        these can start. Tasks of the lanes `completing` complete what the tasks before them have
        begun, even after `cancel`. When `sequential`, there is one slot for all lanes; it goes to
        the first of `tasks` that may start, and a task that backs off keeps it.

        Only PackageError ends a task: Transient is retried, Undecided makes it `unknown`, every
        other one `failed`. Anything else that is raised is a bug, ends the run, and is raised by
        `run`. What asks for longer pauses than `patience` has is not retried. Lanes that a Mapping
        of retries or time-outs does not name have the default.
        """
        by_name: dict[K, Task[K]] = {}
        for task in tasks:
            if by_name.setdefault(task.name, task) is not task:
                raise PlanError(f"{task.name} is there more than once")
        graph = DependencyGraph.from_edges({name: task.after for name, task in by_name.items()})
        retries = {
            lane: Retry(count, retry_base_delay, patience)
            for lane, count in per_lane(max_retries, lanes, 0).items()
        }
        estimates = Estimates(by_name.values(), durations or {})
        order = _as_listed(by_name) if sequential else graph.order
        frontier = Frontier(
            (estimates.weigh(by_name[name]) for name in order),
            lanes=lanes,
            preparing=preparing,
            completing=completing,
            sequential=sequential,
        )
        groups = {name: task.group for name, task in by_name.items() if task.group}
        return cls(
            frontier,
            retries,
            estimates=estimates,
            task_timeout_s=per_lane(task_timeout, lanes, 600.0),
            rng=rng or SPREAD,
            groups=groups,
            observer=observer,
        )

    async def run(
        self,
        publish_fn: Callable[[K], Awaitable[object]],
        conclude: Callable[[K, PackageError], Awaitable[object]] | None = None,
    ) -> RunResult[K]:
        """Publish everything; returns once every package has its outcome. Once per Scheduler.

        `conclude` is the end of the last attempt, if that fails with a PackageError: whatever it
        raises takes the place of that error, and where it returns, the attempt has ended well.

        Cancelling it cancels the attempts in flight, waits for them, and raises as usual.
        """
        if self._publish is not _not_running:
            raise RuntimeError("a Scheduler runs once")
        self._publish, self._conclude = publish_fn, conclude
        self._context = copy_context()
        by_key = partial(self.cancel, reason="cancelled by the key q")
        keys = listening(pause=self.pause, resume=self.resume, cancel=by_key)
        try:
            with keys if self._listens else contextlib.nullcontext():
                async with self._group:
                    self._report(self._unreported)
                    while not self._frontier.finished:
                        self._changed.clear()
                        await self._changed.wait()
        finally:
            for timer in (*self._pauses.values(), *self._graces):
                timer.cancel()
            for deadlines in self._deadlines.values():
                deadlines.close()
        return RunResult(
            outcomes=self._frontier.outcomes,
            reasons=self._reasons.in_the_end(),
            errors=self._reasons.errors,
            attempts=self._attempts,
        )

    def pause(self) -> None:
        """Nothing starts until `resume`, not even a retry; what runs goes on."""
        self._frontier.paused = True

    def resume(self) -> None:
        self._frontier.paused = False
        self._advance()

    def cancel(
        self,
        *,
        grace_s: float | None = None,
        lanes: Collection[str] | None = None,
        reason: str = "cancelled by a call to `cancel`",
    ) -> None:
        """Nothing new starts, not even a retry, and a pause ends. What runs goes on to its end: a
        success counts, and a failure is final. The rest is skipped, with `reason`.

        With `grace_s`, what runs gets that long, and is then interrupted. Running tasks outside
        `lanes` (None: all) are interrupted at once. May be called again: the stricter call holds.
        """
        if not self._group.is_open or (grace_s is not None and grace_s <= 0):
            lanes = ()
        self._reasons.cancelled = self._reasons.cancelled or reason
        self._report(self._frontier.cancel(lanes))
        for name in list(self._running):
            if lanes is not None and self._frontier.lane_of(name) not in lanes:
                self._interrupt(name, reason)
        if grace_s and not self._frontier.finished:
            strict = partial(self.cancel, grace_s=0.0, reason=reason)
            self._graces.append(asyncio.get_running_loop().call_later(grace_s, strict))

    def mark_done(self, name: K) -> None:
        """Somebody else has completed it: from now on it counts as already published, and nothing
        waits for it. Raises PlanError for an unknown name, and does nothing for one that has its
        outcome.

        A running attempt has nothing left to do, and is interrupted. It holds its slot until it has
        ended, and however it ends, the outcome stays.
        """
        if settled := self._frontier.mark_done(name):
            self._reasons.errors.pop(name, None)
            self._report(settled)
            self._interrupt(name, "done elsewhere")

    def free_slot(self, name: K) -> None:
        """The running attempt at it goes on without its slot, which another task may take."""
        self._frontier.free_slot(name)
        self._advance()

    def add_package(self, name: K, deps: Collection[K] = ()) -> None:
        """May be called at any moment before the end of the run. Raises UnknownDependency unless
        all `deps` are part of the run; if one of them failed, the package is blocked at once.
        """
        self.add_task(Task(name, LANE, frozenset(deps)))

    def add_task(self, task: Task[K]) -> None:
        """As `add_package`, for any lane."""
        if self._publish is not _not_running and not self._group.is_open:
            raise RuntimeError(f"{task.name} cannot be added: the run has ended")
        self._report(self._frontier.add(self._estimates.weigh(task)))

    def remove_package(self, name: K, *, block_dependents: bool = False) -> None:
        """Its dependents no longer wait for it, or with `block_dependents` never start.

        A running attempt is cancelled; if it succeeds anyway, the package is published.
        """
        self._report(self._frontier.remove(name, block_dependents=block_dependents))
        if self._frontier.state(name) is State.RUNNING:
            self._interrupt(name, "removed")

    def _advance(self) -> None:
        """Start what may start; called after every change that could allow it."""
        if self._group.is_open:
            for name in self._frontier.take():
                # Nothing that the task has set which made room for this one, such as its locks.
                _ = self._context.run(self._group.start, self._attempt(name))
            if self._frontier.finished:
                self._changed.set()

    async def _attempt(self, name: K) -> None:
        # Pause, cancel, remove or mark_done may have come between the decision and this first step.
        if not self._frontier.may_run(name):
            self._report(self._frontier.give_back(name))
            return
        if not self._turns.begin(name):
            self._report(self._frontier.defer(name))
            return
        attempt = self._attempts[name] = self._attempts.get(name, 0) + 1
        task = cast("asyncio.Task[object]", asyncio.current_task())
        deadlines = self._deadlines[self._frontier.lane_of(name)]
        self._running[name] = task
        deadlines.start(name, task)
        backoff: Backoff | None = None
        try:
            if self._observer is not None:
                _tell(self._observer.started, name, attempt)
            error = await self._find_failure(name, partial(self._publish, name))
            if error is not None:
                backoff = self._judge(name, error)
            if backoff is None and self._conclude and isinstance(error, PackageError):
                error = await self._find_failure(name, partial(self._conclude, name, error))
        finally:
            deadlines.stop(name)
            del self._running[name]
        self._after(name, error, backoff)

    async def _find_failure(
        self, name: K, attempt: Callable[[], Awaitable[object]]
    ) -> BaseException | None:
        """What the attempt ends with; None where it ends well. Raises what ends the whole run."""
        lane = self._frontier.lane_of(name)
        try:
            await attempt()
        except asyncio.CancelledError as cancelled:
            # Raised by the function itself, or asked for by a deadline or `_interrupt`: the end of
            # this attempt. Otherwise the whole run is being cancelled.
            if not self._group.is_open:
                raise
            deadlines = self._deadlines[lane]
            return deadlines.passed() if deadlines.expired(name) else cancelled
        except Exception as failure:
            if not (self._retries[lane].any_error or isinstance(failure, PackageError)):
                raise
            if isinstance(failure, Transient) and failure.contended:
                self._turns.record_contention(name)
            return failure
        return None

    def _judge(self, name: K, error: BaseException) -> Backoff | None:
        """The one verdict on an attempt that has failed: the pause before another one; None where
        none follows.
        """
        if self._reasons.cancelled or name in self._reasons.interrupted:
            return None
        # What met an open circuit, or others beside it, does not count.
        spared = (name in self._turns.spared) + isinstance(error, CircuitOpen)
        return self._retries[self._frontier.lane_of(name)].decide(
            error,
            attempts=self._attempts[name] - spared,
            now_s=asyncio.get_running_loop().time(),
        )

    def _after(self, name: K, error: BaseException | None, backoff: Backoff | None) -> None:
        if error is None:
            self._reasons.errors.pop(name, None)
            self._report(self._frontier.settle(name, Outcome.PUBLISHED))
        elif name in self._frontier.outcomes:  # it was marked as done
            self._report(self._frontier.settle(name, Outcome.CANCELLED))
        elif backoff is None:
            self._report(self._frontier.settle(name, self._fail(name, error)))
        else:
            self._back_off(name, error, backoff)
        if waiting := self._turns.end(name):
            for other in waiting:
                if self._frontier.state(other) is State.WAITING:
                    self._frontier.wake(other)
            self._advance()

    def _fail(self, name: K, error: BaseException) -> Outcome:
        """Put on record what its last attempt ended with, unless that is our own interruption."""
        interrupted = name in self._reasons.interrupted
        if interrupted and isinstance(error, asyncio.CancelledError):
            return Outcome.CANCELLED
        self._reasons.errors[name] = error
        retry = self._retries[self._frontier.lane_of(name)]
        return Outcome.CANCELLED if interrupted and retry.is_passing(error) else outcome_of(error)

    def _back_off(self, name: K, error: BaseException, backoff: Backoff) -> None:
        self._reasons.errors[name] = error
        attempt = self._attempts[name]
        if isinstance(error, CircuitOpen):
            self._attempts[name] -= 1  # nothing was sent: the next one has the same number
        self._frontier.defer(name)
        delay_s = backoff.draw(self._rng)
        self._pauses[name] = asyncio.get_running_loop().call_later(delay_s, self._wake, name)
        if self._observer is not None:
            _tell(self._observer.retrying, name, attempt, delay_s, error)
        self._advance()

    def _wake(self, name: K) -> None:
        del self._pauses[name]
        self._frontier.wake(name)
        self._advance()

    def _interrupt(self, name: K, reason: str) -> None:
        # An attempt that has not begun notices on its own; cancelled now, it would never run at
        # all and never settle.
        if name in self._running:
            self._reasons.interrupted.setdefault(name, f"{reason}, in the middle of an attempt")
            self._running[name].cancel()

    def _report(self, settled: Iterable[K]) -> None:
        for name in settled:
            if name in self._pauses:
                self._pauses.pop(name).cancel()
            if self._observer is not None:
                outcome = self._frontier.outcomes[name]
                _tell(self._observer.settled, name, outcome, self._reasons.so_far(name))
        self._advance()


def _as_listed(tasks: Mapping[K, Task[K]]) -> list[K]:
    """Their names in the order of `tasks`, except where one has to wait for a later one."""
    names = list(tasks)
    places = {name: place for place, name in enumerate(names)}
    edges = {places[name]: {places[d] for d in task.after} for name, task in tasks.items()}
    return [names[place] for place in DependencyGraph.from_edges(edges).order]


async def _not_running(name: object) -> None:
    raise RuntimeError(f"{name} was started before the run")


def _tell(call: Callable[Told, None], *args: Told.args, **kwargs: Told.kwargs) -> None:
    try:
        call(*args, **kwargs)
    except (Exception, asyncio.CancelledError):
        # A faulty observer must not end a release.
        logger.exception("an observer of the run failed")


class Turns(Generic[K]):
    """Tasks of a group go side by side until one fails because of the others, and from then on one
    at a time. `groups` has the group of each task that has one; any other may always begin. One
    attempt at each that is `spared` failed so, and not at its turn.
    """

    def __init__(self, groups: Mapping[K, str]) -> None:
        self._groups = groups
        self._running: dict[str, set[K]] = defaultdict(set)
        self._waiting: dict[str, list[K]] = {}  # of the groups that go one at a time
        self._crowd: set[K] = set()  # who was running when it came to that
        self.spared: set[K] = set()

    def begin(self, name: K) -> bool:
        """Whether it is its turn; if not, `end` of another one tells that it may try again."""
        group = self._groups.get(name)
        if group is None:
            return True
        if group in self._waiting and self._running[group]:
            self._waiting[group].append(name)
            return False
        self._running[group].add(name)
        return True

    def record_contention(self, name: K) -> None:
        """It failed because of others: from now on its group goes one at a time."""
        group = self._groups.get(name)
        if group is None:
            return
        if group not in self._waiting:
            self._waiting[group] = []
            self._crowd |= self._running[group]
        if name in self._crowd:
            self.spared.add(name)

    def end(self, name: K) -> list[K]:
        """Its attempt is over; those that may try to begin now."""
        group = self._groups.get(name)
        if group is None:
            return []
        self._crowd.discard(name)
        self._running[group].discard(name)
        if self._running[group] or group not in self._waiting:
            return []
        waiting, self._waiting[group] = self._waiting[group], []
        return waiting
