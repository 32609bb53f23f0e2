"""What each second of a run went into, from the tasks of the run and the moments they came to.

Everything is a pure function of these. Times are whole milliseconds, so that sums are exact.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from msgspec import Struct, field

from releasekit.fields import replace
from releasekit.model import Node
from releasekit.spent import WORK

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from releasekit.http.traffic import Pause
    from releasekit.model import PackageId, Phase
    from releasekit.scheduler import Task
    from releasekit.spent import Wait, Work

    What = Wait | Work

_AT_WORK: Final[Mapping[Phase, What]] = {
    "build": "build",
    "attest": "attest",
    "upload": "upload",
    "confirm": "index-lag",
    "approval": "approval",
    "follow-up": "follow-up",
}
# What a task that is ready waits for; a registry takes its time whether it is asked or not.
_READY: Final[Mapping[Phase, What]] = {
    "build": "build-slot",
    "attest": "slot",
    "upload": "slot",
    "follow-up": "slot",
}
# Where pauses of several requests overlap, the first of these counts.
_FIRST: Final[tuple[Wait, ...]] = ("rate-limit", "retry", "slot", "build-slot")


class Moment(NamedTuple):
    """An attempt at a task has begun, or ended with a pause `until_s` because of `cause`, or the
    task has ended for good. In seconds since the run started; `asked` says that a request was made.
    """

    node: Node
    kind: Literal["started", "paused", "settled"]
    at_s: float
    until_s: float = 0.0
    cause: Wait = "retry"
    asked: bool = True


class TimeSlice(NamedTuple):
    """Some time of one package, which went into one thing."""

    what: What
    start_ms: int
    end_ms: int

    @property
    def lasts(self) -> int:
        return self.end_ms - self.start_ms


class TimedAttempt(NamedTuple):
    """At one task. `pause_ms` came after it, until it was ready again."""

    node: Node
    start_ms: int
    end_ms: int
    pause_ms: int = 0
    cause: Wait = "retry"

    @property
    def again_ms(self) -> int:
        return self.end_ms + self.pause_ms


class TaskTimes(Struct, frozen=True):
    """One task. `ready_ms` is None where it never was."""

    ready_ms: int | None
    attempts: tuple[TimedAttempt, ...]
    settled_ms: int


class Timesheet(Struct, frozen=True):
    """`chains` has the tasks of each package in their order; `pauses` are those within attempts."""

    tasks: Mapping[Node, Task[Node]]
    lives: Mapping[Node, TaskTimes]
    chains: Mapping[PackageId, Sequence[Node]]
    pauses: Mapping[Node, Sequence[TimeSlice]] = field(default_factory=dict)

    def pieces(self, package: PackageId) -> Iterator[TimeSlice]:
        """All its time from the run's start to its own end, without gaps and overlaps."""
        now = 0
        for node in self.chains[package]:
            life = self.lives[node]
            for piece in self._of_task(node, life, now):
                if piece.lasts > 0:
                    yield piece
            now = max(now, life.settled_ms)

    def count_shared(self) -> Counter[What]:
        """How many milliseconds of work are those of several packages, which one build makes: once
        for each of them but the first.
        """
        found: Counter[What] = Counter()
        counts = Counter(node for chain in self.chains.values() for node in chain)
        for node, count in counts.items():
            for attempt in self.lives[node].attempts if count > 1 else ():
                for piece in self._of_attempt(attempt):
                    if piece.what in WORK and piece.lasts:
                        found[piece.what] += (count - 1) * piece.lasts
        return found

    def waited_for(self, package: PackageId) -> dict[PackageId, int]:
        """Each dependency that it waited for, and for how many milliseconds."""
        found: dict[PackageId, int] = defaultdict(int)
        now = 0
        for node in self.chains[package]:
            life = self.lives[node]
            until = life.settled_ms if life.ready_ms is None else life.ready_ms
            for on in self.tasks[node].after if until > now else ():
                if on.package != package:
                    found[on.package] += max(0, min(self.lives[on].settled_ms, until) - now)
            now = max(now, life.settled_ms)
        return {on: ms for on, ms in found.items() if ms}

    def _of_task(self, node: Node, life: TaskTimes, now: int) -> Iterator[TimeSlice]:
        """From `now` on, when the task before it has ended, to its end."""
        end = life.settled_ms
        ready = end if life.ready_ms is None else life.ready_ms
        yield TimeSlice("dependency", now, ready)
        now = max(now, ready)
        for attempt in life.attempts:
            yield TimeSlice(_ready(node), now, attempt.start_ms)
            yield from self._of_attempt(attempt)
            now = min(attempt.again_ms, end)
            yield TimeSlice(attempt.cause, attempt.end_ms, now)
        yield TimeSlice(_ready(node), now, end)

    def _of_attempt(self, attempt: TimedAttempt) -> Iterator[TimeSlice]:
        """One attempt: work, and the pauses in it."""
        pauses = self.pauses.get(attempt.node, ())
        what = _AT_WORK.get(attempt.node.phase, "dependency")
        return _split(what, attempt.start_ms, attempt.end_ms, pauses)


def timesheet(
    tasks: Iterable[Task[Node]],
    moments: Sequence[Moment],
    *,
    batches: Mapping[Node, Collection[PackageId]],
    end_s: float,
    pauses: Mapping[Node, Iterable[Pause]] = MappingProxyType({}),
) -> Timesheet:
    """Of a run that has ended after `end_s`, at any point. `batches` are the packages that
    were built together, by the task that built them. All times count from the run's start.
    """
    by_name = {task.name: task for task in tasks}
    end = max([_ms(end_s), *(_ms(moment.at_s) for moment in moments)])
    attempts, settled = _read_moments(moments, end)
    lives = {}
    for name, task in by_name.items():
        settled_ms = settled.get(name, end)
        ready_ms = max((settled.get(on, end) for on in task.after), default=0)
        known = attempts.get(name) or all(on in settled for on in task.after)
        ready = min(ready_ms, settled_ms) if known else None
        lives[name] = TaskTimes(ready, tuple(attempts.get(name, ())), settled_ms)
    shown = _without_hold(by_name, settled)
    pieces = {
        node: [TimeSlice(each.cause, _ms(each.start_s), _ms(each.end_s)) for each in found]
        for node, found in pauses.items()
    }
    return Timesheet(shown, {name: lives[name] for name in shown}, _chains(shown, batches), pieces)


def _read_moments(
    moments: Iterable[Moment], end: int
) -> tuple[Mapping[Node, Sequence[TimedAttempt]], Mapping[Node, int]]:
    """The attempts at each task, which may last until the `end`, and when tasks were settled."""
    attempts: dict[Node, list[TimedAttempt]] = defaultdict(list)
    settled: dict[Node, int] = {}
    begun: dict[Node, int] = {}
    for moment in moments:
        node, at_ms = moment.node, _ms(moment.at_s)
        if moment.kind == "started":
            begun[node] = at_ms
            continue
        pause_ms = max(0, _ms(moment.until_s) - at_ms) if moment.kind == "paused" else 0
        if node in begun:
            attempt = TimedAttempt(node, begun.pop(node), at_ms, pause_ms, moment.cause)
            attempts[node].append(attempt)
        if moment.kind == "settled":
            settled[node] = at_ms
    for node, start_ms in begun.items():
        attempts[node].append(TimedAttempt(node, start_ms, end))
    return attempts, settled


def _without_hold(
    tasks: Mapping[Node, Task[Node]], settled: Mapping[Node, int]
) -> Mapping[Node, Task[Node]]:
    """What waits for the hold waits, in place of that, for what the hold waited for longest."""
    hold = next((name for name in tasks if name.phase == "hold"), None)
    if hold is None:
        return tasks
    waiting = tasks[hold].after
    ends = [*settled, *sorted(waiting - settled.keys())]
    longest = {next((on for on in reversed(ends) if on in waiting), hold)}
    return {
        name: replace(task, after=(task.after | longest) - {hold}) if hold in task.after else task
        for name, task in tasks.items()
        if name != hold
    }


def _chains(
    tasks: Mapping[Node, Task[Node]], batches: Mapping[Node, Collection[PackageId]]
) -> dict[PackageId, list[Node]]:
    """Each task of a package begins after the one before it has ended."""
    built_by = {package: node for node, packages in batches.items() for package in packages}
    chains: dict[PackageId, list[Node]] = {}
    for package in dict.fromkeys([*built_by, *(node.package for node in tasks)]):
        confirm = tasks.get(Node("confirm", package))
        upload = [on for on in confirm.after if on.phase == "upload"] if confirm else []
        rest = (Node("confirm", package), Node("approval", package), Node("follow-up", package))
        chain = [built_by[package]] if package in built_by else []
        attest = [node for node in [Node("attest", package)] if node in tasks]
        chains[package] = [*chain, *attest, *upload, *(node for node in rest if node in tasks)]
    return chains


def _split(what: What, start: int, end: int, pauses: Iterable[TimeSlice]) -> Iterator[TimeSlice]:
    """`what` from start to end, except where there is a pause."""
    edges = []
    for pause in pauses:
        from_, until = max(start, pause.start_ms), min(end, pause.end_ms)
        if until > from_:
            edges += [(from_, 1, pause.what), (until, -1, pause.what)]
    running: dict[What, int] = defaultdict(int)
    since, told = start, what
    for at, changes in groupby(sorted(edges), key=itemgetter(0)):
        for _, change, cause in changes:
            running[cause] += change
        now = next((each for each in _FIRST if running[each]), what)
        if now != told:
            yield TimeSlice(told, since, at)
            since, told = at, now
    yield TimeSlice(told, since, end)


def _ready(node: Node) -> What:
    return _READY.get(node.phase) or _AT_WORK.get(node.phase, "dependency")


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
