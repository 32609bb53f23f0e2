"""The Gantt chart of a run."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from releasekit.model import Span
from releasekit.report.gantt import gantt
from releasekit.spent import RunSpent, Spent, Step
from sample_runs import hostile_text, partial_report, report, result

if TYPE_CHECKING:
    from releasekit.model import Report

HEAD = ["gantt", "    dateFormat YYYY-MM-DD HH:mm:ss.SSS"]
# As Mermaid reads it: no colon in a text, and nothing at its start that means something else.
LINE = re.compile(
    r"gantt|    dateFormat .*|    axisFormat [%MHSLd: .]+|    todayMarker off|"
    r"    section [A-Z][A-Za-z</>-]+|"
    r"    (build|upload|confirm|approval|follow-up|wait|dependency|slot|retry|index-lag) "
    r"[A-Za-z0-9 ._+/@-]+ · [0-9][0-9a-z. ]+ :((crit|done)(, done)?, )?"
    r"2001-01-\d\d \d\d:\d\d:\d\d\.\d{3}, \d+ms"
)


def chained(run: Report, *steps: Step) -> Report:
    return replace(run, spent=RunSpent(total=Spent(), chain=steps))


def test_the_longest_chain_stands_above_the_lanes() -> None:
    run = chained(
        partial_report(),
        Step(package="pypi:core", what="build", lasted_s=1.0),
        Step(package="pypi:core", what="upload", lasted_s=2.25),
        Step(package="pypi:core", what="index-lag", lasted_s=0.75),
    )
    assert gantt(run).splitlines() == [
        *HEAD,
        "    axisFormat %S.%L",
        "    todayMarker off",
        "    section Longest<br/>chain",
        "    build pypi core · 1.0 s :crit, 2001-01-01 00:00:00.000, 1000ms",
        "    upload pypi core · 2.2 s :crit, 2001-01-01 00:00:01.000, 2250ms",
        "    index-lag pypi core · 0.8 s :crit, done, 2001-01-01 00:00:03.250, 750ms",
        "    section Build",
        "    build pypi core · 1.0 s :2001-01-01 00:00:00.000, 1000ms",
        "    section Upload",
        "    upload pypi core · 2.2 s :2001-01-01 00:00:01.000, 2250ms",
        "    section Confirm",
        "    confirm pypi core · 0.8 s :done, 2001-01-01 00:00:03.250, 750ms",
    ]


def test_a_long_chain_is_cut_into_parts_that_fill_the_run() -> None:
    """R40: named after their longest step."""
    steps = [
        Step(package=f"npm:p{n}", what="build", lasted_s=2 if n % 10 else 3) for n in range(99)
    ]
    run = report(result(spans=(Span(phase="build", start_s=0, end_s=208),)))
    lines = [line for line in gantt(chained(run, *steps)).splitlines() if ":crit" in line]
    assert len(lines) == 12
    assert lines[0].startswith("    build npm p0 and 7 more · 17 s :crit, 2001-01-01 00:00:00.000,")
    assert sum(int(line.rpartition(", ")[2][:-2]) for line in lines) == 208_000


def test_the_chain_of_the_job_that_ended_last_ends_with_it() -> None:
    run = report(result(spans=(Span(phase="build", start_s=30, end_s=40),)))
    text = gantt(chained(run, Step(package="pypi:core", what="build", lasted_s=10)))
    assert ":crit, 2001-01-01 00:00:30.000, 10000ms" in text


def test_one_build_of_many_packages_is_one_bar() -> None:
    span = Span(phase="build", start_s=0, end_s=60)
    text = gantt(report(*(result(f"p{n}", spans=(span,)) for n in range(50))))
    assert text.count("ms") == 1
    assert "    build pypi p0 and 49 more · 1 min 0 s :" in text


def test_a_lane_shows_what_took_longest_by_its_start() -> None:
    """R40"""
    runs = [
        result(f"p{n}", spans=(Span(phase="upload", start_s=n, end_s=n + 1 + n / 10),))
        for n in range(99)
    ]
    names = re.findall(r"upload pypi (p\d+)", gantt(report(*runs)))
    assert names == [f"p{n}" for n in range(91, 99)]


@pytest.mark.parametrize(
    ("end_s", "axis"),
    [(9, "%S.%L"), (90, "%M:%S"), (3_700, "%H:%M"), (200_000, "%d %H:%M")],
)
def test_the_axis_is_no_finer_than_the_run_is_long(end_s: float, axis: str) -> None:
    text = gantt(report(result(spans=(Span(phase="approval", start_s=0, end_s=end_s),))))
    assert f"    axisFormat {axis}\n" in text


@pytest.mark.parametrize("end_s", [0, 31 * 86_400])
def test_nothing_is_drawn_of_an_instant_or_of_months(end_s: float) -> None:
    assert gantt(report(result(spans=(Span(phase="build", start_s=0, end_s=end_s),)))) == ""
    assert gantt(report(result())) == ""


@given(name=hostile_text)
def test_no_text_adds_a_line_or_ends_the_text_of_a_bar(name: str) -> None:
    """R35"""
    run = report(result(name, spans=(Span(phase="build", start_s=0, end_s=86_399),)))
    text = gantt(chained(run, Step(package=f"{name}:{name}", what="build", lasted_s=3)))
    lines = text.splitlines()
    assert len(lines) == 8
    assert [line for line in lines if not LINE.fullmatch(line)] == []
