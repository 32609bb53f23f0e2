from __future__ import annotations

import re
import subprocess
import sys
import threading
from contextlib import nullcontext
from io import StringIO
from typing import TYPE_CHECKING, TypedDict, Unpack

import pytest
from rich.console import Console

from releasekit.model import Event, Outcome, PackageId, Phase
from releasekit.report.live import LiveProgress
from releasekit.report.log import LogProgress
from releasekit.report.progress import choose_progress
from sample_runs import mixed_plan, outcomes, partial_report, plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Literal


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


class Details(TypedDict, total=False):
    phase: Phase
    attempt: int
    delay_s: float
    outcome: Outcome
    detail: str


def event(
    state: Literal["started", "ended", "retrying", "settled"],
    name: str = "http",
    **details: Unpack[Details],
) -> Event:
    return Event(package=PackageId("pypi", name), state=state, at_s=1.25, **details)


@pytest.mark.parametrize(
    ("terminal", "environment", "live"),
    [
        (True, {"TERM": "xterm-256color"}, True),
        (True, {}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {"CI": "true"}, False),
        (False, {"TERM": "xterm-256color"}, False),
    ],
)
def test_only_a_terminal_gets_the_live_table(
    terminal: bool, environment: Mapping[str, str], live: bool
) -> None:
    progress = choose_progress(Terminal() if terminal else StringIO(), environment)
    assert isinstance(progress, LiveProgress if live else LogProgress)


def test_a_log_that_folds_is_never_a_live_table() -> None:
    progress = choose_progress(Terminal(), {}, group=lambda _: nullcontext())
    assert isinstance(progress, LogProgress)


def test_who_wants_to_see_everything_gets_lines_on_a_terminal_too() -> None:
    progress = choose_progress(Terminal(), {"TERM": "xterm"}, verbose=True)
    assert isinstance(progress, LogProgress)


def test_a_log_does_not_import_rich() -> None:
    code = "import sys, releasekit.report.progress; sys.exit('rich' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Screen:
    """A live table of given size, redrawn by hand."""

    def __init__(self, *, width: int = 100, height: int = 24, **environment: str) -> None:
        self.stream = Terminal()
        self.clock = Clock()
        self.width = width
        self.progress = LiveProgress(
            self.stream,
            {"TERM": "xterm", "COLUMNS": str(width), "LINES": str(height), **environment},
            clock=self.clock,
        )

    def drawn(self) -> list[str]:
        """What the table shows now."""
        paper = StringIO()
        console = Console(file=paper, width=self.width, force_terminal=False, _environ={})
        console.print(self.progress._drawn())
        return [line.rstrip() for line in paper.getvalue().splitlines()]


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@pytest.fixture
def screen() -> Iterator[Screen]:
    screen = Screen()
    yield screen
    screen.progress.close()


def test_the_live_table_shows_what_is_running_and_how_far_it_is(screen: Screen) -> None:
    screen.progress.begin(mixed_plan())
    screen.progress.on_event(event("started", phase="upload"))
    screen.clock.now += 4
    screen.progress.on_event(event("started", "app", phase="build", attempt=2))
    lines = screen.drawn()
    assert re.fullmatch(r"pypi:http +upload +4\.0 s", lines[0])
    assert re.fullmatch(r"pypi:app +build \(attempt 2\) +0\.0 s", lines[1])
    assert "0/3 packages" in lines[2]
    screen.progress.on_event(event("ended", phase="upload"))
    screen.progress.on_event(event("settled", outcome=Outcome.PUBLISHED))
    lines = screen.drawn()
    assert not any("pypi:http" in line for line in lines)
    assert "1/3 packages" in lines[1]


def test_packages_that_were_there_before_do_not_move_the_bar(screen: Screen) -> None:
    screen.progress.begin(mixed_plan())
    screen.progress.on_event(event("settled", "core", outcome=Outcome.ALREADY_PUBLISHED))
    assert "0/3 packages" in screen.drawn()[-1]


def test_waits_and_failures_stay_on_the_screen(screen: Screen) -> None:
    screen.progress.begin(mixed_plan())
    screen.progress.on_event(event("retrying", phase="upload", delay_s=12, detail="busy"))
    assert re.fullmatch(r"pypi:http +upload: again in 12 s +0\.0 s", screen.drawn()[0])
    screen.progress.on_event(event("settled", outcome=Outcome.FAILED, detail="no\x1b[2J"))
    screen.progress.on_event(event("settled", "app", outcome=Outcome.UNKNOWN))
    screen.progress.on_event(event("settled", "x", outcome=Outcome.BLOCKED))
    screen.progress.close()
    text = plain(screen.stream.getvalue())
    assert "pypi:http upload: again in 12 s: busy\n" in text.replace("\r", "")
    assert "pypi:http failed: no\\x1b[2J\n" in text
    assert "pypi:app unknown\n" in text
    assert "pypi:x" not in text


def test_the_live_table_stays_small_on_a_small_screen() -> None:
    """R40"""
    screen = Screen(width=40, height=8)
    screen.progress.begin(mixed_plan())
    for number in range(30):
        screen.progress.on_event(
            event("started", f"{number}-with-quite-a-long-name", phase="confirm")
        )
    lines = screen.drawn()
    screen.progress.close()
    assert len(lines) == 6
    assert lines[4] == "and 26 more"
    assert all(len(line) <= 40 for line in lines)
    assert "0/3 packages" in lines[5]


def test_the_terminal_ends_with_results_hints_and_the_headline(screen: Screen) -> None:
    screen.progress.begin(mixed_plan())
    screen.progress.end(partial_report())
    lines = [line.strip() for line in plain(screen.stream.getvalue()).splitlines()]
    assert re.fullmatch(r"pypi:broken +1\.0\.0 +failed +the build failed", lines[-4])
    assert lines[-3:] == [
        "pypi:broken: Read the log.",
        "",
        "2 of 5 packages published, 1 already there, 1 failed, 1 blocked",
    ]


def test_a_run_of_nothing_ends_with_the_headline(screen: Screen) -> None:
    screen.progress.begin(plan())
    screen.progress.end(outcomes())
    assert plain(screen.stream.getvalue()).splitlines()[-1].strip() == "No package to publish"


def test_no_color_means_none() -> None:
    """https://no-color.org"""
    screen = Screen(NO_COLOR="1")
    screen.progress.begin(mixed_plan())
    screen.progress.end(partial_report())
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", screen.stream.getvalue())


def test_the_redrawing_thread_ends_with_the_run() -> None:
    """R29"""
    before = set(threading.enumerate())
    screen = Screen()
    screen.progress.begin(mixed_plan())
    (redrawing,) = set(threading.enumerate()) - before
    screen.progress.close()
    screen.progress.close()
    redrawing.join(timeout=60)
    assert not redrawing.is_alive()
