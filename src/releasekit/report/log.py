"""What a run shows in a log: the plan, a line for each package as it ends, what is in flight when
the log was silent for long, and the results. With `verbose` there is a line for every event.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from releasekit.model import Outcome
from releasekit.report.marks import symbols_for
from releasekit.report.plans import plan_headline, plan_table
from releasekit.report.tables import results_table
from releasekit.report.text import few, seconds
from releasekit.text.escape import clip, log_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TextIO

    from releasekit.model import Course, Event, PackageId, Phase, Plan, Report

    # Opens a folded section of a log under a title, and closes it.
    Group: TypeAlias = Callable[[str], AbstractContextManager[None]]

# These packages end with the run; only the table that follows has a row for each.
_NO_LINE: Final = frozenset(
    {Outcome.BLOCKED, Outcome.CANCELLED, Outcome.REMOVED, Outcome.WOULD_PUBLISH}
)
_DOING: Final[Mapping[Phase, str]] = {
    "build": "building",
    "attest": "signing",
    "upload": "uploading",
    "confirm": "waiting for its registry to show it",
    "approval": "waiting for a person's approval",
    "follow-up": "running its scripts",
    "wait": "waiting for another job",
}
# A pause that a reader would wonder about.
LONG_S: Final = 5.0
# So many logs are shown unfolded; those of more failures are folded where that can be done.
MOST_OPEN: Final = 5
# A line of a build's output may be 64 KiB long; its log file has all of it.
_MAX_CHARS: Final = 1_000
_MAX_DETAIL_CHARS: Final = 500
_MAX_REASON: Final = 300
# Each further silence may be twice as long.
_FIRST_S: Final = 30.0
_LONGEST_S: Final = 300.0
# What ends an attempt that was interrupted.
_INTERRUPTED: Final = asyncio.CancelledError.__name__


class _Work(NamedTuple):
    """What a package is at since `at_s`, or what it is `put_off` to."""

    at_s: float
    what: str
    put_off: bool = False


class LogProgress:
    """Prints lines; the runner takes none of them for a command.

    `group` folds sections of the log where the CI system can; without it they get a title.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        group: Group | None = None,
        verbose: bool = False,
        dry_run: bool = False,
    ) -> None:
        self._stream = stream
        self._marks = symbols_for(stream.encoding or "utf-8").marks
        self._group = group or self._print_section
        self._verbose = verbose
        self._dry_run = dry_run
        self._versions: dict[PackageId, str] = {}
        self._needs: Mapping[PackageId, frozenset[PackageId]] = {}
        self._there: set[PackageId] = set()
        self._begun: dict[PackageId, float] = {}
        self._busy: dict[PackageId, float] = {}
        self._failed: set[PackageId] = set()
        self._failure_shown: set[PackageId] = set()
        self._at_work: dict[PackageId, _Work] = {}
        self._last = ""
        self._silence = _Silence(self._print_work)

    def begin(self, plan: Plan) -> None:
        packages = [planned.package for planned in plan.packages]
        self._versions = {each.id: each.version for each in (*packages, *plan.foreign)}
        self._needs = plan.edges()
        self._there |= plan.kept()
        with self._group(f"Plan: {plan_headline(plan)}"):
            # Warnings stand once in a log, below the results, where it is read first.
            table = plan_table(plan, whole=False, warnings=False).rstrip("\n")
            if table:
                self._print(table)
        self._silence.begin()

    def on_event(self, event: Event) -> None:
        match event.state:
            case "started":
                self._on_started(event)
            case "ended":
                self._on_ended(event)
            case "waiting":
                what = f"waiting for {event.detail}" if event.detail else ""
                if event.phase is not None and event.package in self._at_work:
                    self._at_work[event.package] = _Work(event.at_s, what or _DOING[event.phase])
            case "retrying":
                self._on_retrying(event)
            case "settled":
                self._on_settled(event)

    def on_course(self, course: Course) -> None:
        self._print(f"{course.at_s:8.1f} s    {course_line(course)}")
        self._silence.restart()

    def end(self, report: Report) -> None:
        self.close()
        self._print_gap()
        self._show_logs(report)
        self._print(results_table(report, verbose=self._verbose))

    def close(self) -> None:
        self._silence.end()

    def _on_started(self, event: Event) -> None:
        package, phase = event.package, event.phase
        if phase is None:
            return
        self._begun[package] = event.at_s
        self._at_work[package] = _Work(event.at_s, _DOING[phase])
        if self._verbose:
            self._say(event, f"{phase} started{_attempt_text(event)}", event.detail)
        elif phase == "wait":
            self._say(event, "waits", event.detail)
        elif phase == "approval":
            self._say(event, _DOING[phase])

    def _on_ended(self, event: Event) -> None:
        package, phase = event.package, event.phase
        lasted_s = max(0.0, event.at_s - self._begun.pop(package, event.at_s))
        if phase != "approval":
            self._busy[package] = self._busy.get(package, 0.0) + lasted_s
        self._at_work.pop(package, None)
        if phase in {"confirm", "wait"} and not event.detail:
            self._there.add(package)
        took = f"in {seconds(lasted_s)}"
        if self._verbose:
            self._say(event, f"{phase} ended {took}{_attempt_text(event)}", event.detail)
            self._say_missing(event)
        elif phase == "wait":
            self._say(event, f"waited {seconds(lasted_s)}", event.detail or "it is there")
        elif phase in {"build", "follow-up"} and event.detail not in {"", _INTERRUPTED}:
            self._failed.add(package)
            # A package that needs a failed one ends as blocked, even if its build succeeds.
            if self._failed.isdisjoint(self._needs.get(package, ())):
                self._failure_shown.add(package)
                failed = self._marks[Outcome.FAILED]
                self._say(event, f"{phase} failed {took}", event.detail, mark=failed)
        elif phase == "build" and self._dry_run and not event.detail:
            # Also without a result: a dry run tries some builds too early.
            self._say(event, f"build ended {took}")

    def _say_missing(self, event: Event) -> None:
        missing = sorted(self._needs.get(event.package, frozenset()) - self._there)
        if missing and event.phase == "build" and not event.detail and not self._dry_run:
            self._say(event, f"waits for {log_line(few([*map(str, missing)]))}")

    def _on_retrying(self, event: Event) -> None:
        pause = f"again in {seconds(event.delay_s)}"
        what = "not there yet, asked" if event.phase == "wait" else f"{event.phase}"
        if event.phase != "wait":
            self._at_work[event.package] = _Work(event.at_s, f"{what} {pause}", put_off=True)
        if self._verbose or event.phase == "wait" or event.delay_s >= LONG_S:
            self._say(event, f"{what} {pause}{_attempt_text(event)}", event.detail)

    def _on_settled(self, event: Event) -> None:
        package, outcome = event.package, event.outcome
        self._at_work.pop(package, None)
        if outcome is None:
            return
        busy_s = self._busy.get(package)
        if outcome.done:
            self._there.add(package)
        shown = package in self._failure_shown and outcome is Outcome.FAILED
        if busy_s is None and outcome.done:  # the plan has counted it
            return
        if not self._verbose and (shown or outcome in _NO_LINE):
            return
        took = "" if busy_s is None else f" in {seconds(busy_s)}"
        tries = f", {event.attempt} attempts" if event.attempt > 1 else ""
        why = "" if outcome.done else event.detail
        self._say(event, f"{outcome}{took}{tries}", why, mark=self._marks[outcome])

    def _show_logs(self, report: Report) -> None:
        """Unfolded, since a runner shows only the title of a group."""
        for number, (title, lines) in enumerate(failed_logs(report)):
            place = self._print_section if number < MOST_OPEN else self._group
            with place(title):
                self._print("\n".join(lines))

    def _print_work(self, now_s: float) -> bool:
        """Prints what is in flight; False where nothing is."""
        works = sorted(self._at_work.items(), key=lambda each: (each[1].at_s, each[0]))
        if not works:
            return False
        names = [
            f"{package} {work.what}"
            + ("" if work.put_off else f" for {seconds(max(0.0, now_s - work.at_s))}")
            for package, work in works
        ]
        self._print(f"{now_s:8.1f} s    still at work: {log_line(few(names, 3))}")
        return True

    def _say(self, event: Event, what: str, why: str = "", *, mark: str = " ") -> None:
        version = self._versions.get(event.package, "")
        name = log_line(f"{event.package} {version}".rstrip())
        why = why.removeprefix(f"{event.package}: ")
        reason = f": {log_line(clip(why, _MAX_DETAIL_CHARS))}" if why else ""
        self._print(f"{event.at_s:8.1f} s  {mark} {name}  {what}{reason}")
        self._silence.restart()

    def _print_gap(self) -> None:
        if self._last:
            self._print("")

    def _print(self, text: str) -> None:
        self._last = text
        print(text, file=self._stream, flush=True)

    @contextmanager
    def _print_section(self, title: str) -> Iterator[None]:
        self._print(title)
        yield
        self._print_gap()


def failed_logs(report: Report) -> list[tuple[str, list[str]]]:
    """A title and the last lines of each build that failed: once, though several packages may have
    failed in it.
    """
    logs: dict[tuple[str, ...], list[str]] = {}
    for result in report.results:
        if result.log and not result.outcome.done:
            logs.setdefault(result.log, []).append(str(result.package.id))
    return [
        (
            f"Last lines of the log of {log_line(few(names))}",
            [f"  | {log_line(clip(line, _MAX_CHARS))}" for line in log],
        )
        for log, names in logs.items()
    ]


def _attempt_text(event: Event) -> str:
    return f" (attempt {event.attempt})" if event.attempt > 1 else ""


def course_line(course: Course) -> str:
    """What a pause, its end or a cancellation means, in the words of a person."""
    match course.name:
        case "running":
            return "resumed"
        case "paused":
            return "paused: nothing new starts, what is in flight goes on; SIGUSR2 resumes it"
        case "cancelling":
            if course.until_s is None:
                then = "what is in flight is finished, and what is built goes out next time"
            elif (left_s := course.until_s - course.at_s) > 0:
                then = f"builds are interrupted, uploads in flight have {seconds(left_s)}"
            else:
                then = "what is in flight is interrupted"
            return f"cancelling, {cancel_reason(course)}: {then}"


def cancel_reason(course: Course) -> str:
    """Who or what asked for it, as a clause."""
    reason = course.reason.removeprefix("cancelled ")
    return log_line(clip(reason, _MAX_REASON))


class _Silence:
    """Breaks the silence of a log, in which a job would look as if it hung: calls `tell`, with the
    seconds since `begin`, when no line was printed for long.
    """

    def __init__(self, tell: Callable[[float], bool]) -> None:
        self._tell = tell
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._began = self._since = 0.0
        self._patience_s = _FIRST_S

    def begin(self) -> None:
        """Does nothing outside of a loop, where nothing goes on."""
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._began = self._since = self._loop.time()
        self._timer = self._loop.call_at(self._since + self._patience_s, self._due)

    def restart(self) -> None:
        """A line was printed; the timer finds out when it is due."""
        if self._loop is not None:
            self._since, self._patience_s = self._loop.time(), _FIRST_S

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _due(self) -> None:
        assert self._loop is not None  # noqa: S101 (it has called this)
        now = self._loop.time()
        if now >= self._since + self._patience_s:
            self._since = now
            if self._tell(now - self._began):
                self._patience_s = min(2 * self._patience_s, _LONGEST_S)
        # A line that comes meanwhile makes the next silence a short one.
        self._timer = self._loop.call_at(
            min(self._since + self._patience_s, now + _FIRST_S), self._due
        )
