from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, TypedDict, Unpack

import pytest
from hypothesis import given

from releasekit.model import Course, Event, Outcome, PackageId, Phase
from releasekit.report.live import LiveProgress
from releasekit.report.progress import LogProgress, choose_progress
from sample_runs import hostile_text, mixed_plan, partial_report, plan, report, result

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
    progress = choose_progress(Terminal(), {}, group=lambda title: _folded(StringIO(), title))
    assert isinstance(progress, LogProgress)


def test_a_log_does_not_import_rich() -> None:
    code = "import sys, releasekit.report.progress; sys.exit('rich' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@contextmanager
def _folded(stream: StringIO, title: str) -> Iterator[None]:
    print(f"fold({title})", file=stream)
    yield
    print("end of fold", file=stream)


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (event("started", phase="build"), "build started"),
        (event("started", phase="upload", attempt=2), "upload started (attempt 2)"),
        (event("ended", phase="confirm"), "confirm ended"),
        (event("ended", phase="build", detail="exit 1"), "build ended: exit 1"),
        (
            event("retrying", phase="upload", attempt=2, delay_s=3.25, detail="503"),
            "upload again in 3.2 s (attempt 2): 503",
        ),
        (event("settled", outcome=Outcome.PUBLISHED, attempt=3), "published"),
        (event("settled", outcome=Outcome.BLOCKED, detail="needs x"), "blocked: needs x"),
        (event("settled"), "package"),
    ],
)
def test_the_log_has_a_line_for_every_event(told: Event, line: str) -> None:
    stream = StringIO()
    LogProgress(stream).on_event(told)
    assert stream.getvalue() == f"     1.2 s  pypi:http  {line}\n"


@pytest.mark.parametrize(
    ("course", "line"),
    [
        (
            Course(name="paused", at_s=1.25),
            "paused: nothing new starts, what is in flight goes on; SIGUSR2 resumes it",
        ),
        (Course(name="running", at_s=1.25), "resumed"),
        (
            Course(name="cancelling", at_s=1.25, reason="cancelled by the key q"),
            "cancelling, by the key q: nothing new starts, what is in flight is finished",
        ),
        (
            Course(name="cancelling", at_s=1.25, reason="cancelled by SIGINT", until_s=7.25),
            "cancelling, by SIGINT: builds are interrupted, uploads in flight have 6.0 s",
        ),
        (
            Course(name="cancelling", at_s=1.25, reason="##[error]x failed", until_s=1.25),
            "cancelling, # #[error]x failed: what is in flight is interrupted",
        ),
    ],
)
def test_the_log_has_a_line_for_a_pause_and_a_cancellation(course: Course, line: str) -> None:
    """R10, R35"""
    stream = StringIO()
    LogProgress(stream).on_course(course)
    assert stream.getvalue() == f"     1.2 s  {line}\n"


def test_the_log_begins_with_the_plan_and_ends_with_the_results() -> None:
    stream = StringIO()
    progress = LogProgress(stream)
    progress.begin(mixed_plan())
    progress.end(partial_report())
    progress.close()
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("Plan: 4 packages: 1 to build and publish")
    assert lines[-1] == "2 of 5 packages published, 1 already there, 1 failed, 1 blocked"


def test_the_log_folds_the_plan_and_the_logs_of_failed_builds() -> None:
    stream = StringIO()
    progress = LogProgress(stream, group=lambda title: _folded(stream, title))
    progress.begin(plan())
    progress.end(partial_report())
    lines = stream.getvalue().splitlines()
    assert lines[:3] == [
        "fold(Plan: No package to publish)",
        "No package to publish",
        "end of fold",
    ]
    assert lines[3:7] == [
        "fold(Last lines of the log of pypi:broken)",
        "  | Traceback:",
        "  | SyntaxError: invalid syntax",
        "end of fold",
    ]


def test_a_line_of_a_build_is_cut_where_nobody_reads_on() -> None:
    """R51: its log file has all of it."""
    stream = StringIO()
    failed = result("broken", Outcome.FAILED, log=("x" * 2**16,))
    LogProgress(stream).end(report(failed))
    assert max(map(len, stream.getvalue().splitlines())) == len("  | ") + 1_000


@given(hostile_text)
def test_nothing_in_the_log_is_a_command_to_the_runner(text: str) -> None:
    """R35"""
    stream = StringIO()
    progress = LogProgress(stream)
    progress.on_event(event("ended", text, phase="build", detail=text))
    progress.on_event(event("settled", text, outcome=Outcome.FAILED, detail=text))
    progress.end(report(result(text, Outcome.FAILED, reason=text, hint=text, log=(text, text))))
    for line in stream.getvalue().splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
    assert "\x1b" not in stream.getvalue()
