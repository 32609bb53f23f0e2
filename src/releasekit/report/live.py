"""What a run shows on a terminal: a line for each package that has ended, and below them what is
running, how far it is, how long it may take, and which keys are heard.
"""

from __future__ import annotations

import textwrap
import time
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from releasekit.fields import replace
from releasekit.graph import reachable
from releasekit.model import Course, Outcome
from releasekit.report.log import MOST_OPEN, cancel_reason, failed_logs
from releasekit.report.marks import OUTCOMES, symbols_for
from releasekit.report.plans import destination_line, plan_headline
from releasekit.report.region import Region
from releasekit.report.remarks import warning_table
from releasekit.report.screen import size_of
from releasekit.report.tables import remarks
from releasekit.report.text import count_of, seconds, without_name
from releasekit.report.view import View
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TextIO

    from rich.console import RenderableType

    from releasekit.model import (
        Event,
        Package,
        PackageId,
        PackageWarning,
        Phase,
        Plan,
        Report,
    )
    from releasekit.report.screen import Size
    from releasekit.report.view import Row

_MAX_ROWS: Final = 12
_MAX_CHARS: Final = 1_000
_NARROW: Final = 60
_LEAST_TABLE: Final = 80
_GAP: Final = 2  # between the columns of a table
_LEAST_BAR: Final = 12
_MOST_BAR: Final = 40
# Before so many have ended, what is left is a guess.
_ENOUGH: Final = 3
# The other phases wait for somebody else.
_STYLES: Final[Mapping[Phase | None, str]] = {
    "build": "cyan",
    "attest": "cyan",
    "upload": "bold magenta",
    "follow-up": "magenta",
}
# What ends a package before its turn is shown once, at the end, with how many others it ends.
_SHOWN_AT_THE_END: Final = frozenset({Outcome.BLOCKED, Outcome.CANCELLED, Outcome.REMOVED})
_PLAIN: Final = {
    Outcome.ALREADY_PUBLISHED: "already there",
    Outcome.STAGED: "staged, for a person to approve",
    Outcome.WOULD_PUBLISH: "would be published",
}


class _Row(Struct, frozen=True):
    """Where it waits for another attempt, it goes on at `until_s`."""

    what: str
    since_s: float
    style: str
    until_s: float | None = None


class LiveProgress:
    """Redrawn eight times a second, from a thread that ends with `end` or `close`.

    That thread reads what the events change, so values are replaced as a whole and never modified.
    `keys` says whether the run listens to keys. With `every_s` of 0 it starts no such
    thread, and only events draw.
    """

    def __init__(
        self,
        stream: TextIO,
        environment: Mapping[str, str],
        *,
        keys: bool = False,
        clock: Callable[[], float] = time.monotonic,
        size: Size | None = None,
        every_s: float = 0.125,
    ) -> None:
        self._console = Console(
            file=stream,
            markup=False,
            emoji=False,
            highlight=False,
            no_color=bool(environment.get("NO_COLOR")) or None,
            _environ=environment,
        )
        self._symbols = symbols_for(self._console.encoding)
        self._keys = keys
        self._clock = clock
        self._began_s = clock()
        self._running: Mapping[PackageId, _Row] = {}
        self._packages: Mapping[PackageId, Package] = {}
        self._counts = ProgressCounts()
        self._began_at_s: dict[PackageId, float] = {}
        self._busy_s: dict[PackageId, float] = {}
        self._warned: frozenset[tuple[PackageId, PackageWarning]] = frozenset()
        self._course = Course(name="running")
        self._turned_s = self._began_s
        self._paused_s = 0.0
        self._size = size or size_of(stream, environment)
        self._region = Region(self._console, self._draw, self._size, every_s=every_s)

    def begin(self, plan: Plan) -> None:
        self._packages = {planned.package.id: planned.package for planned in plan.packages}
        self._counts.begin(plan)
        self._began_s = self._turned_s = self._clock()
        self._region.say(Text(plan_headline(plan)))
        warned = warning_table((planned.package, planned.warnings) for planned in plan.packages)
        self._warned = frozenset(
            (each.package.id, it) for each in plan.packages for it in each.warnings
        )
        for line in filter(None, (destination_line(plan), *plan.notes, *warned)):
            self._region.say(Text(visible(line)))
        self._region.start()

    def on_event(self, event: Event) -> None:
        others = {name: row for name, row in self._running.items() if name != event.package}
        now_s = self._clock()
        busy_s = self._busy_s.get(event.package, 0.0)
        self._counts.on_event(event)
        match event.state:
            case "started":
                again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
                others[event.package] = _Row(f"{event.phase}{again}", now_s, _style(event))
                self._began_at_s[event.package] = event.at_s
            case "ended" if event.phase != "approval":  # which takes a person's time
                since_s = self._began_at_s.get(event.package, event.at_s)
                self._busy_s[event.package] = busy_s + event.at_s - since_s
            case "ended":
                pass
            case "waiting":
                what = f"{event.phase}: waits for {event.detail}" if event.detail else event.phase
                others[event.package] = _Row(str(what), now_s, _style(event))
            case "retrying":
                row = _Row(f"{event.phase}: again in", now_s, "yellow", now_s + event.delay_s)
                others[event.package] = row
                self._say(event, f"{row.what} {seconds(event.delay_s)}", style="yellow")
            case "settled":
                self._on_settled(event)
        self._running = others
        self._region.wake()

    def on_course(self, course: Course) -> None:
        now_s = self._clock()
        if self._course.name == "paused":
            self._paused_s += now_s - self._turned_s
            if course.name == "running":
                stood = seconds(now_s - self._turned_s)
                self._region.say(Text(f"Resumed after a pause of {stood}.", style="bold"))
        self._course, self._turned_s = course, now_s
        self._region.wake()

    def end(self, report: Report) -> None:
        self.close()
        view = View(self._without_told(report))
        # Of more failures, the log files say it all.
        for title, lines in failed_logs(report)[:MOST_OPEN]:
            self._console.print()
            self._console.print(Text(title, style="bold"), soft_wrap=True)
            for line in lines:
                self._console.print(Text(line, style="dim"), soft_wrap=True)
        if view.rows:
            self._console.print()
            self._print_results(view.rows)
            self._console.print()
        before = len({warning for _, warning in self._warned})
        above = [f"{count_of(before, 'warning', 'warnings')} of the plan: see above", ""]
        for line in (*(above if before else []), *remarks(view)):
            self._print_words(Text(visible(line)))
        self._print_words(Text(view.headline, style="bold"))

    def close(self) -> None:
        self._region.stop()

    def _without_told(self, report: Report) -> Report:
        """`report` with the warnings of builds alone: those of the plan stand above."""
        results = []
        for each in report.results:
            new = (it for it in each.warnings if (each.package.id, it) not in self._warned)
            results.append(replace(each, warnings=tuple(new)))
        return replace(report, results=tuple(results))

    def _on_settled(self, event: Event) -> None:
        outcome = event.outcome
        if outcome is None or outcome in _SHOWN_AT_THE_END:
            return
        # A package that was there before has no line: there may be a thousand of them.
        if outcome is Outcome.ALREADY_PUBLISHED and event.package not in self._counts.packages:
            return
        mark, colour = self._symbols.marks[outcome], OUTCOMES[outcome].colour
        if outcome in {Outcome.FAILED, Outcome.UNKNOWN}:
            # In one row: its cause is told in full at the end.
            self._say(event, outcome, style=colour, mark=mark, in_one_row=True)
            return
        busy_s = self._busy_s.get(event.package, 0.0)
        line = self._name_line(event, colour, mark)
        for word in (_PLAIN.get(outcome, ""), seconds(busy_s) if busy_s > 0 else ""):
            line.append(f"  {word}" if word else "", style="dim")
        self._region.say(line)

    def _name_line(self, event: Event, style: str, mark: str) -> Text:
        """A mark, the name and the version."""
        package = self._packages.get(event.package)
        version = f" {clip(package.version, 100)}" if package else ""
        line = Text().append(f"{mark} ", style=style).append(visible(clip(str(event.package), 300)))
        return line.append(visible(version), style="dim")

    def _say(
        self, event: Event, what: str, *, style: str, mark: str = "~", in_one_row: bool = False
    ) -> None:
        package = self._packages.get(event.package)
        detail = without_name(event.detail, package) if package else event.detail
        line = self._name_line(event, style, mark).append(f"  {what}", style=style)
        line.append(visible(clip(f": {detail}" if detail else "", _MAX_CHARS)))
        more, (width, _) = self._symbols.more, self._size()
        if in_one_row and line.cell_len > width:
            line.truncate(width - len(more), overflow="crop")
            line.append(more)
        self._region.say(line)

    def _draw(self, width: int, height: int) -> RenderableType:
        below = [*self._draw_progress(width), *self._state_lines()]
        if legend := self._legend(height):
            below.append(Text(legend, style="dim", no_wrap=True, overflow="crop"))
        running = self._running
        taken = sum(-(-text.cell_len // max(1, width)) for text in below)
        room = max(1, min(_MAX_ROWS, height - taken - 2))
        now_s, rows = self._clock(), []
        for package, row in list(running.items())[:room]:
            if row.until_s is None:
                since = seconds(max(0.0, now_s - row.since_s))
                rows.append((str(package), row.what, since, row.style))
            else:
                wait = seconds(max(0.0, row.until_s - now_s))
                rows.append((str(package), f"{row.what} {wait}", "", row.style))
        least = max((len(what) + len(since) for _, what, since, _ in rows), default=0)
        names = max(6, width - least - 6)  # beside the gaps
        table = Table.grid(padding=(0, 2, 0, 0))
        for justify in ("left", "left", "right"):
            table.add_column(no_wrap=True, overflow="crop", justify=justify)
        for name, what, since, style in rows:
            shown, more = visible(name), self._symbols.more
            if cell_len(shown) > names:
                shown = set_cell_size(shown, names - len(more)) + more
            table.add_row(*(Text(cell, style=style) for cell in (f"  {shown}", what, since)))
        left = [Text(f"  and {len(running) - room} more")] if len(running) > room else []
        return Group(*([table] if running else []), *left, *below)

    def _draw_progress(self, width: int) -> list[Text]:
        """How far it is and for how long, in one row where there is room."""
        elapsed_s = max(0.0, self._clock() - self._began_s)
        goes_on = self._course.name == "running"
        times = self._counts.time_text(elapsed_s, idle_s=self._paused_s, goes_on=goes_on)
        counts = self._counts.count_text()
        one = f"{counts}, {times}"
        if width >= _NARROW and cell_len(one) + 1 + _LEAST_BAR <= width:
            return [self._draw_bar(width - cell_len(one) - 1).append(f" {one}")]
        if cell_len(counts) + 1 + _LEAST_BAR <= width:
            return [self._draw_bar(width - cell_len(counts) - 1).append(f" {counts}"), Text(times)]
        return [Text(counts), Text(times)]

    def _draw_bar(self, cells: int) -> Text:
        counts, cells = self._counts, min(cells, _MOST_BAR)
        total = max(1, len(counts.packages))
        done = cells * len(counts.ended) // total
        begun = cells * (len(counts.ended) + len(counts.built)) // total - done
        bar = Text().append(self._symbols.done * done, style="green")
        bar.append(self._symbols.begun * begun, style="cyan")
        return bar.append(self._symbols.rest * (cells - done - begun), style="dim")

    def _state_lines(self) -> list[Text]:
        in_flight = len(self._running)
        what = f"{in_flight} in flight" if in_flight else "nothing in flight"
        match self._course.name:
            case "running":
                return []
            case "paused":
                goes_on = " goes on" if in_flight == 1 else " go on" if in_flight else ""
                return [Text(f"Paused: {what}{goes_on}, nothing new starts", style="bold yellow")]
            case "cancelling":
                why, course = clip(cancel_reason(self._course), 100), self._course
                if course.until_s is None:
                    grace = "what is built goes out next time"
                else:
                    left_s = self._turned_s + course.until_s - course.at_s - self._clock()
                    grace = f"{round(left_s)} s left" if left_s > 0 else "interrupting"
                return [Text(f"Cancelling, {why}: {grace}, {what}", style="bold yellow")]

    def _legend(self, height: int) -> str:
        """Only where keys are heard, and where there is room."""
        if not self._keys or height < 6:
            return ""
        match self._course.name:
            case "running":
                return "keys: p pause, q cancel"
            case "paused":
                return "keys: r resume, q cancel"
            case "cancelling" if self._course.until_s is None:
                return "keys: q again stops builds, uploads get 6 s"
            case "cancelling" if self._course.until_s > self._course.at_s:
                return "keys: q again ends it at once"
            case "cancelling":
                return ""

    def _print_words(self, line: Text) -> None:
        """Broken between words alone: a path that has no room in a row, or in none, stays whole."""
        width, start = self._console.width, 0
        for row in textwrap.wrap(
            line.plain, width, break_long_words=False, break_on_hyphens=False
        ) or [""]:
            start = line.plain.index(row, start)
            self._console.print(line[start : start + len(row)], soft_wrap=True)
            start += len(row)

    def _print_results(self, rows: list[Row]) -> None:
        beside = sum(
            max(map(cell_len, column))
            for column in zip(
                *((r.package, r.version, f"x {r.outcome}") for r in rows), strict=True
            )
        )
        longest = max((cell_len(word) for row in rows for word in row.why.split()), default=0)
        if self._console.width < max(_LEAST_TABLE, beside + 3 * _GAP + longest):
            for row in rows:
                mark, colour = self._symbols.marks[row.outcome], OUTCOMES[row.outcome].colour
                line = Text().append(f"{mark} ", style=colour)
                line.append(f"{row.package} {row.version}".rstrip())
                line.append(f" {row.outcome}", style=colour)
                self._print_words(line.append(f": {row.why}" if row.why else ""))
            return
        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
        for heading in ("package", "version", "outcome"):
            table.add_column(heading, no_wrap=True)
        table.add_column("why")
        for row in rows:
            mark = self._symbols.marks[row.outcome]
            outcome = Text(f"{mark} {row.outcome}", style=OUTCOMES[row.outcome].colour)
            table.add_row(Text(row.package), Text(row.version), outcome, Text(row.why))
        self._console.print(table)


def _style(event: Event) -> str:
    """What is at work stands out from what waits, without colours too."""
    return "dim" if event.detail and event.state == "waiting" else _STYLES.get(event.phase, "dim")


class ProgressCounts:
    """How far the packages are that have work. Another thread reads only the sizes of the
    sets, and never iterates over them.
    """

    def __init__(self) -> None:
        self.packages: frozenset[PackageId] = frozenset()
        self.built: set[PackageId] = set()  # and have not ended
        self.ended: set[PackageId] = set()
        self._failed: set[PackageId] = set()
        self._blocked: set[PackageId] = set()  # will be said to be, in the end
        self._dependents: dict[PackageId, list[PackageId]] = {}

    def begin(self, plan: Plan) -> None:
        pending = plan.pending()
        self.packages = frozenset(pending)
        for name, needs in pending.items():
            for on in needs:
                self._dependents.setdefault(on, []).append(name)

    def on_event(self, event: Event) -> None:
        package = event.package
        if event.state == "ended" and event.phase == "build" and not event.detail:
            self.built.add(package)
        elif event.state == "settled" and package in self.packages:
            self.ended.add(package)
            self.built.discard(package)
            self._blocked.discard(package)
            if event.outcome in {Outcome.FAILED, Outcome.UNKNOWN}:
                self._failed.add(package)
                found = reachable([package], lambda on: self._dependents.get(on, ()))
                self._blocked |= found - self.ended

    def count_text(self) -> str:
        parts = [
            (len(self.built), "built"),
            (len(self._failed), "failed"),
            (len(self._blocked), "blocked"),
        ]
        rest = "".join(f", {count} {word}" for count, word in parts if count)
        return f"{len(self.ended)} of {len(self.packages)} packages{rest}"

    def time_text(self, elapsed_s: float, *, idle_s: float, goes_on: bool) -> str:
        """`idle_s` is the part that pauses took. Only a run that `goes_on` has a time left."""
        elapsed = f"{_whole(elapsed_s)} elapsed"
        left = len(self.packages) - len(self.ended) - len(self._blocked)
        if len(self.ended) < _ENOUGH or left <= 0 or not goes_on:
            return elapsed
        each_s = max(0.0, elapsed_s - idle_s) / len(self.ended)
        return f"{elapsed}, about {_whole(each_s * left)} left"


def _whole(duration_s: float) -> str:
    """Without a last digit that flickers."""
    return f"{duration_s:.0f} s" if duration_s < 10 else seconds(duration_s)
