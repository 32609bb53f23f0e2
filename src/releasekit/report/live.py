"""The live table of a run on a terminal: what is running, how far it is, how long it may take."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from releasekit.model import Action, Outcome
from releasekit.report import headline, plan_headline
from releasekit.report.results_table import failures_last, remarks
from releasekit.report.text import seconds
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TextIO

    from rich.console import RenderableType

    from releasekit.model import Event, PackageId, Plan, Report

_STYLES: Final = {
    Outcome.PUBLISHED: "green",
    Outcome.ALREADY_PUBLISHED: "dim",
    Outcome.STAGED: "cyan",
    Outcome.FAILED: "bold red",
    Outcome.UNKNOWN: "bold yellow",
    Outcome.BLOCKED: "yellow",
    Outcome.REMOVED: "dim",
    Outcome.WOULD_PUBLISH: "green",
    Outcome.CANCELLED: "yellow",
}
_MAX_ROWS: Final = 12


@dataclass(frozen=True, slots=True)
class _Row:
    what: str
    since_s: float


class LiveProgress:
    """Redraws eight times a second, from a thread that ends with `end` or `close`.

    That thread reads what the events change, so values are replaced as a whole and never modified.
    """

    def __init__(
        self,
        stream: TextIO,
        environment: Mapping[str, str],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = Console(
            file=stream,
            markup=False,
            emoji=False,
            highlight=False,
            no_color=bool(environment.get("NO_COLOR")) or None,
            _environ=environment,
        )
        self._clock = clock
        self._running: Mapping[PackageId, _Row] = {}
        self._counted: frozenset[PackageId] = frozenset()
        self._bar = Bar(*_columns(self._console.width), get_time=clock)
        self._task = self._bar.add_task("packages", total=0)
        self._live = Live(
            get_renderable=self._drawn,
            console=self._console,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def begin(self, plan: Plan) -> None:
        self._console.print(plan_headline(plan))
        self._counted = frozenset(
            planned.package.id for planned in plan.packages if planned.action is not Action.KEEP
        )
        self._bar.update(self._task, total=len(self._counted))
        self._live.start()

    def on_event(self, event: Event) -> None:
        others = {name: row for name, row in self._running.items() if name != event.package}
        if event.state == "started":
            again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
            others[event.package] = _Row(f"{event.phase}{again}", self._clock())
        elif event.state == "retrying":
            wait = f"{event.phase}: again in {seconds(event.delay_s)}"
            others[event.package] = _Row(wait, self._clock())
            self._say(event, wait)
        elif event.state == "settled":
            self._settled(event)
        self._running = others

    def end(self, report: Report) -> None:
        self.close()
        if report.results:
            self._console.print(_results(report))
        for line in remarks(report):
            self._console.print(Text(visible(line)))
        self._console.print(Text(headline(report), style="bold"))

    def close(self) -> None:
        self._live.stop()

    def _settled(self, event: Event) -> None:
        if event.package in self._counted:
            self._bar.advance(self._task)
        if event.outcome in {Outcome.FAILED, Outcome.UNKNOWN}:
            self._say(event, event.outcome)

    def _say(self, event: Event, what: str) -> None:
        line = f"{event.package} {what}" + (f": {event.detail}" if event.detail else "")
        style = _STYLES[event.outcome] if event.outcome else ""
        self._console.print(Text(visible(clip(line, 1_000)), style=style))

    def _drawn(self) -> RenderableType:
        running = self._running
        room = max(1, min(_MAX_ROWS, self._console.height - 4))
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=3)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=2)
        table.add_column(no_wrap=True, justify="right")
        for name, row in list(running.items())[:room]:
            elapsed = seconds(max(0.0, self._clock() - row.since_s))
            table.add_row(Text(visible(str(name)), style="cyan"), Text(row.what), Text(elapsed))
        more = [Text(f"and {len(running) - room} more", style="dim")] if len(running) > room else []
        return Group(table, *more, self._bar)


def _columns(width: int) -> list[ProgressColumn]:
    count = [MofNCompleteColumn(), TextColumn("packages")]
    if width < 60:
        return [*count, TimeElapsedColumn()]
    left = [TextColumn("left"), TimeRemainingColumn()]
    return [BarColumn(bar_width=None), *count, TimeElapsedColumn(), *left]


def _results(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("package", "version", "outcome", "why"):
        table.add_column(heading, overflow="fold")
    for result in failures_last(report):
        table.add_row(
            Text(visible(str(result.package.id))),
            Text(visible(result.package.version)),
            Text(result.outcome, style=_STYLES[result.outcome]),
            Text(visible(clip(result.reason, 1_000))),
        )
    return table
