"""What a run shows while it goes on: one line per event in a log, or `live`'s table."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from releasekit.report import plan_headline, plan_table, results_table
from releasekit.report.course import course_line
from releasekit.report.text import seconds
from releasekit.text.escape import clip, log_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TextIO

    from releasekit.model import Course, Event, Plan, Report

    # Opens a folded section of a log under a title, and closes it.
    Group: TypeAlias = Callable[[str], AbstractContextManager[None]]


_VERBS: Final = {"started": "started", "ended": "ended", "retrying": "again", "settled": ""}
# Of a line of a build's output, which may be 64 KiB long; its log file has all of it.
_MAX_CHARS: Final = 1_000


class Progress(Protocol):
    """Watches one run: `begin`, any number of events, `end`; then `close`, whatever happened."""

    def begin(self, plan: Plan) -> None: ...

    def on_event(self, event: Event) -> None: ...

    def on_course(self, course: Course) -> None: ...

    def end(self, report: Report) -> None: ...

    def close(self) -> None:
        """Gives the terminal back; may be called at any time, and again."""
        ...


def choose_progress(
    stream: TextIO,
    environment: Mapping[str, str],
    *,
    group: Group | None = None,
    keys: bool = False,
) -> Progress:
    """The live table on a terminal that can move its cursor and does not belong to a CI job.

    `group` folds sections of the log where the CI system can; without it they get a title. `keys`
    says whether somebody who presses one is heard.
    """
    if group or environment.get("CI") or environment.get("TERM") == "dumb" or not stream.isatty():
        return LogProgress(stream, group=group)
    # rich takes 60 ms to import, and a CI job never needs it.
    from releasekit.report.live import LiveProgress  # noqa: PLC0415

    return LiveProgress(stream, environment, keys=keys)


class LogProgress:
    """One line per event. None of it is a command to the runner, wherever the text comes from."""

    def __init__(self, stream: TextIO, *, group: Group | None = None) -> None:
        self._stream = stream
        self._group = group or self._titled

    def begin(self, plan: Plan) -> None:
        with self._group(f"Plan: {plan_headline(plan)}"):
            self._print(plan_table(plan))

    def on_event(self, event: Event) -> None:
        self._print(f"{event.at_s:8.1f} s  {log_line(str(event.package))}  {_told(event)}")

    def on_course(self, course: Course) -> None:
        self._print(f"{course.at_s:8.1f} s  {course_line(course)}")

    def end(self, report: Report) -> None:
        for result in report.results:
            if result.log and not result.outcome.done:
                with self._group(f"Last lines of the log of {log_line(str(result.package.id))}"):
                    lines = (log_line(clip(line, _MAX_CHARS)) for line in result.log)
                    self._print("\n".join(f"  | {line}" for line in lines))
        self._print(results_table(report))

    def close(self) -> None:
        """Nothing is held open."""

    def _print(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    @contextmanager
    def _titled(self, title: str) -> Iterator[None]:
        self._print(title)
        yield


def _told(event: Event) -> str:
    text = f"{event.outcome or event.phase or 'package'} {_VERBS[event.state]}".rstrip()
    if event.state == "retrying":
        text += f" in {seconds(event.delay_s)}"
    if event.attempt > 1 and event.state != "settled":
        text += f" (attempt {event.attempt})"
    return f"{text}: {log_line(clip(event.detail, 500))}" if event.detail else text
