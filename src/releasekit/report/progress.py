"""What a run shows while it goes on: lines in a log, or `live`'s table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from releasekit.report.log import LogProgress
from releasekit.report.screen import has_screen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from releasekit.model import Course, Event, Plan, Report
    from releasekit.report.log import Group


class Progress(Protocol):
    """Watches one run: `begin`, any number of events, `end`; then always `close`."""

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
    verbose: bool = False,
    dry_run: bool = False,
    keys: bool = False,
) -> Progress:
    """The live table on a terminal that can move its cursor and does not belong to a CI job, unless
    the user asks for more lines than one screen has.

    `group` folds sections of the log where the CI system can; without it they get a title. `keys`
    says whether the run listens to keys.
    """
    if group or verbose or not has_screen(stream, environment):
        return LogProgress(stream, group=group, verbose=verbose, dry_run=dry_run)
    # rich takes 60 ms to import, and a CI job never needs it.
    from releasekit.report.live import LiveProgress  # noqa: PLC0415

    return LiveProgress(stream, environment, keys=keys)
