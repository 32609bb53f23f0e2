"""What happens in a run, put on record in the journal and shown to those who watch."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING, Final

from releasekit.errors import CircuitOpen, Transient
from releasekit.http.traffic import Pause, attribute_to, record_pauses, restart_clock
from releasekit.model import Course, Event, Node, Span
from releasekit.release.timesheet import Moment
from releasekit.report.spent import WAITED_FOR
from releasekit.report.text import seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from releasekit.model import Outcome, PackageId, Phase, Result
    from releasekit.release.package_run import PackageRun
    from releasekit.scheduler import Task
    from releasekit.spent import Wait
    from releasekit.state.journal import Journal


class Events:
    """The events of one run, which starts now; times are in seconds since then. It also observes
    the scheduler.

    `on_course` is told what becomes of the run as a whole. `moments` is what the scheduler has
    told, `waits` says of each task why it has begun no sooner, and `on_settled` is told of the ends
    of tasks too.
    """

    def __init__(
        self,
        journal: Journal,
        watch: Callable[[Event], None],
        on_course: Callable[[Course], None] = lambda _: None,
    ) -> None:
        self._journal = journal
        self._watch = watch
        self._on_course = on_course
        self._course = Course(name="running")
        self._ended: set[PackageId] = set()
        self._began = restart_clock()
        self.moments: list[Moment] = []
        self.waits = Waits()
        self._why: dict[Node, str] = {}
        self.on_settled: Callable[[Node], None] = lambda _: None
        self._pauses: dict[Node, list[Pause]] = {}
        self._at_work: set[Node] = set()

    def now_s(self) -> float:
        """Seconds since the run started."""
        return asyncio.get_running_loop().time() - self._began

    @contextlib.contextmanager
    def span(self, phase: Phase, *runs: PackageRun, detail: str = "") -> Iterator[None]:
        """Around one attempt at a phase of packages that go through it together; `detail` says more
        of its beginning.
        """
        task, attempt = Node(phase, runs[0].id), max(runs[0].attempts, 1)
        node, detail = str(task), detail or self._why.pop(task, "")
        start_s = self.now_s()
        self._journal.phase_started(node, attempt=attempt)
        for run in runs:
            self._watch(
                Event(
                    package=run.id,
                    state="started",
                    at_s=start_s,
                    phase=phase,
                    attempt=attempt,
                    detail=detail,
                )
            )
        trouble = ""
        try:
            yield
        except BaseException as error:
            trouble = str(error) or type(error).__name__
            raise
        finally:
            end_s = self.now_s()
            self._journal.phase_ended(
                node, attempt=attempt, duration_s=end_s - start_s, error=trouble
            )
            for run in runs:
                run.spans.append(Span(phase=phase, start_s=start_s, end_s=end_s))
                self._watch(
                    Event(
                        package=run.id,
                        state="ended",
                        at_s=end_s,
                        phase=phase,
                        attempt=attempt,
                        # Of several that are built together, some may have failed.
                        detail=trouble or str(run.error or ""),
                    )
                )

    def ended(self, result: Result) -> None:
        """Record the end of a package: only the first call counts."""
        package = result.package
        if package.id in self._ended:
            return
        self._ended.add(package.id)
        self._journal.outcome(package, result.outcome, result.reason, staged=result.staged)
        self._watch(
            Event(
                package=package.id,
                state="settled",
                at_s=self.now_s(),
                attempt=result.attempts,
                outcome=result.outcome,
                detail=result.reason,
            )
        )

    def paused(self) -> None:
        self._take(Course(name="paused", at_s=self.now_s()))

    def resumed(self) -> None:
        self._take(Course(name="running", at_s=self.now_s()))

    def stopping(self, reason: str, grace_s: float | None) -> None:
        """Of several, the strictest holds."""
        before, at_s = self._course, self.now_s()
        until_s = None if grace_s is None else at_s + grace_s
        if before.name == "cancelling" and (
            until_s is None or (before.until_s is not None and before.until_s <= until_s)
        ):
            return
        self._take(Course(name="cancelling", at_s=at_s, reason=reason, until_s=until_s))

    def _take(self, course: Course) -> None:
        """A run that is being cancelled does not go on."""
        over = self._course.name == "cancelling"
        if course.name == "cancelling" or (course.name != self._course.name and not over):
            self._course = course
            self._on_course(course)

    @contextlib.contextmanager
    def attempt(self, node: Node) -> Iterator[None]:
        """What is asked in this block is asked for the task, and it is the task that pauses."""
        pauses = self._pauses.setdefault(node, [])
        self._at_work.add(node)
        try:
            with attribute_to(node.package), record_pauses(pauses, partial(self._on_wait, node)):
                yield
        finally:
            self._at_work.discard(node)

    def _on_wait(self, node: Node, cause: Wait | None, what: str) -> None:
        """What an attempt has started may go on, and wait, when its package has come to its end."""
        if node not in self._at_work:
            return
        self._watch(
            Event(
                package=node.package,
                state="waiting",
                at_s=self.now_s(),
                phase=node.phase,
                detail="" if cause is None else what or WAITED_FOR.get(cause, cause),
            )
        )

    def retrying(self, node: Node, attempt: int, delay_s: float, error: BaseException) -> None:
        """Only the scheduler knows when a phase will be tried again."""
        now_s = self.now_s()
        limited = isinstance(error, Transient) and error.limited
        cause: Wait = "rate-limit" if limited else "retry"
        asked = not isinstance(error, CircuitOpen)
        self.moments.append(Moment(node, "paused", now_s, now_s + delay_s, cause, asked))
        self.waits.paused(node, now_s + delay_s)
        self._watch(
            Event(
                package=node.package,
                state="retrying",
                at_s=now_s,
                phase=node.phase,
                attempt=attempt,
                delay_s=delay_s,
                detail=str(error),
            )
        )

    def waiting(self, run: PackageRun, delay_s: float, why: str) -> None:
        """Something else stands in the way of what is waited for than before."""
        self._watch(
            Event(
                package=run.id,
                state="retrying",
                at_s=self.now_s(),
                phase="wait",
                delay_s=delay_s,
                detail=why,
            )
        )

    def started(self, node: Node, attempt: int) -> None:  # noqa: ARG002
        """`span` tells the others."""
        now_s = self.now_s()
        self.moments.append(Moment(node, "started", now_s))
        self._why[node] = self.waits.why(node, now_s)

    def settled(self, node: Node, outcome: Outcome, reason: str) -> None:  # noqa: ARG002
        """The end of a phase, which is not yet that of its package."""
        now_s = self.now_s()
        self.moments.append(Moment(node, "settled", now_s))
        self.waits.settled(node, now_s)
        self.on_settled(node)

    def pauses(self) -> dict[Node, list[Pause]]:
        """Those within attempts, in seconds since the run started."""
        began = self._began
        return {
            node: [Pause(cause, start_s - began, end_s - began) for cause, start_s, end_s in found]
            for node, found in self._pauses.items()
            if found
        }


# What begins so soon has waited for no slot, only for its turn in the event loop.
_AT_ONCE_S: Final = 0.05


class Waits:
    """Of the tasks of one run, told of their ends and pauses as these come, in seconds since its
    start. What a whole run waited for is told by the timesheet, once it has ended.
    """

    def __init__(self, tasks: Iterable[Task[Node]] = ()) -> None:
        self._after = {task.name: task.after for task in tasks}
        self._settled_s: dict[Node, float] = {}
        self._again_s: dict[Node, float] = {}
        self._named: dict[Node, Node] = {}

    def settled(self, node: Node, at_s: float) -> None:
        self._settled_s[node] = at_s
        if node.phase == "hold":
            # The one that it waited for longest, which settled just before it.
            before = self._after[node]
            self._named[node] = max(
                before, key=lambda on: self._settled_s.get(on, 0.0), default=node
            )

    def paused(self, node: Node, until_s: float) -> None:
        self._again_s[node] = until_s

    def why(self, node: Node, at_s: float) -> str:
        """For an attempt that begins at that moment; empty where it has begun at once."""
        if node in self._again_s:
            slot = _slot(at_s - self._again_s[node])
            return f"it waited {slot}" if slot else ""
        own_s, others = 0.0, {}
        for on in self._after.get(node, ()):
            ended_s = self._settled_s.get(on, 0.0)
            if on in self._named:
                others[self._named[on]] = ended_s
            # An upload comes after its own build, which may be that of others, too.
            elif on.package == node.package or (on.phase == "build" and node.phase == "upload"):
                own_s = max(own_s, ended_s)
            else:
                others[on] = ended_s
        last = max(others, key=lambda on: (others[on], on), default=None)
        ready_s = max(own_s, others[last] if last else 0.0)
        words = []
        if last and ready_s - own_s >= _AT_ONCE_S:
            words.append(f"{seconds(ready_s - own_s)} for {last.package}")
        words += filter(None, [_slot(at_s - ready_s)])
        return f"it waited {', then '.join(words)}" if words else ""


def _slot(lasted_s: float) -> str:
    return f"{seconds(lasted_s)} for a slot" if lasted_s >= _AT_ONCE_S else ""
