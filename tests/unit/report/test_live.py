from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given, settings

from processes import PATIENCE_S
from releasekit.fields import replace
from releasekit.model import (
    Action,
    Course,
    Event,
    Outcome,
    PackageId,
    PackageWarning,
    Phase,
    Plan,
    PlannedPackage,
    WarningName,
)
from releasekit.report.live import LiveProgress
from sample_runs import (
    hostile_text,
    mixed_plan,
    outcomes,
    package,
    partial_report,
    plan,
    report,
    result,
)
from screens import Cutting, Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator


class Screen:
    """A live table of given size on a screen of its own, drawn by events alone."""

    def __init__(
        self,
        *,
        width: int = 100,
        height: int = 24,
        keys: bool = True,
        encoding: str = "utf-8",
        **environment: str,
    ) -> None:
        self.stream = Terminal(encoding)
        self.now_s = 100.0
        self.screen = Cutting(width, height)
        self.written = ""
        self.progress = LiveProgress(
            self.stream,
            {"TERM": "xterm-256color", **environment},
            keys=keys,
            clock=lambda: self.now_s,
            size=lambda: (self.screen.columns, self.screen.lines),
            every_s=0,
        )

    def event(
        self,
        state: Literal["started", "ended", "waiting", "retrying", "settled"],
        name: str = "http",
        *,
        phase: Phase | None = None,
        attempt: int = 1,
        delay_s: float = 0.0,
        outcome: Outcome | None = None,
        detail: str = "",
    ) -> None:
        self.progress.on_event(
            Event(
                package=PackageId("pypi", name),
                state=state,
                at_s=self.now_s - 100.0,
                phase=phase,
                attempt=attempt,
                delay_s=delay_s,
                outcome=outcome,
                detail=detail,
            )
        )

    def course(self, name: Literal["running", "paused", "cancelling"], **more: object) -> None:
        until_s = more.get("until_s")
        assert until_s is None or isinstance(until_s, float)
        self.progress.on_course(
            Course(
                name=name, at_s=self.now_s - 100.0, reason=str(more.get("reason")), until_s=until_s
            )
        )

    def rows(self) -> list[str]:
        """What a person sees now."""
        text = self.stream.taken()
        self.written += text
        self.screen.take(text)
        return self.screen.shown


def of(*names: str, needs: dict[str, tuple[str, ...]] | None = None, kept: int = 0) -> Plan:
    fresh = [(name, Action.PUBLISH) for name in names]
    there = [(f"kept{number}", Action.KEEP) for number in range(kept)]
    return Plan(
        packages=tuple(
            PlannedPackage(
                package=package(name, needs=(needs or {}).get(name, ())), action=action, reason=""
            )
            for name, action in (*fresh, *there)
        ),
        private=(),
        commit="",
        digest="",
    )


@pytest.fixture
def screen() -> Iterator[Screen]:
    screen = Screen()
    yield screen
    screen.progress.close()


def test_what_is_running_is_shown_and_how_far_it_is(screen: Screen) -> None:
    kept, *others = mixed_plan().packages
    kept = replace(
        kept, warnings=(PackageWarning(name=WarningName.OLDER_SIBLING, message="pinned"),)
    )
    notes = ("npm: what is published is not known",)
    screen.progress.begin(replace(mixed_plan(), packages=(kept, *others), notes=notes))
    assert notes[0] in screen.rows()  # both before anything is uploaded
    assert any(row.startswith("warning: older-sibling: pypi:core: ") for row in screen.rows())
    screen.event("started", phase="upload")
    screen.now_s += 4
    screen.event("started", "app", phase="build", attempt=2)
    *_, http, app, bar, legend = screen.rows()
    assert re.fullmatch(r"  pypi:http +upload +4\.0 s", http)
    assert re.fullmatch(r"  pypi:app +build \(attempt 2\) +0\.0 s", app)
    assert re.fullmatch(r"░+ 0 of 3 packages, 4 s elapsed", bar)
    assert legend == "keys: p pause, q cancel"


def test_warnings_of_the_plan_are_told_once_and_counted_at_the_end(screen: Screen) -> None:
    """Those of a build are new by then."""
    early = PackageWarning(name=WarningName.NEW_NAME, message="nobody has it yet")
    late = PackageWarning(name=WarningName.MISSING_README, message="it says nothing of itself")
    made = of("http")
    (planned,) = made.packages
    planned = replace(planned, warnings=(early,))
    screen.progress.begin(replace(made, packages=(planned,)))
    screen.progress.end(report(replace(result(), package=planned.package, warnings=(early, late))))
    rows = screen.rows()
    assert sum("nobody has it yet" in row for row in rows) == 1
    at = rows.index("1 warning of the plan: see above")
    assert rows[at + 2].startswith("warning: missing-readme: pypi:http: it says nothing of itself")


@pytest.mark.parametrize("plain", [False, True])
def test_what_waits_says_for_what_and_only_work_has_its_time(plain: bool) -> None:
    """Colour and weight tell building, uploading and waiting apart; without colours, weight does.

    https://no-color.org
    """
    screen = Screen(NO_COLOR="1" if plain else "")
    screen.progress.begin(of("http", "app", "core"))
    screen.event("started", phase="upload")
    screen.event("started", "app", phase="build")
    screen.event("waiting", phase="upload", detail="the upload before it")
    screen.now_s += 7.5
    screen.event("started", "core", phase="confirm")
    *_, app, http, core, _, _ = screen.rows()
    assert re.fullmatch(r"  pypi:app +build +7\.5 s", app)
    assert re.fullmatch(r"  pypi:http +upload: waits for the upload before it +7\.5 s", http)
    assert re.fullmatch(r"  pypi:core +confirm +0\.0 s", core)
    before = len(screen.written)
    screen.event("waiting", phase="upload")
    assert any(re.fullmatch(r"  pypi:http +upload +0\.0 s", row) for row in screen.rows())
    shown = screen.written[before:]
    styles = {
        what: re.search(rf"(?:\x1b\[([0-9;]*)m| ){what}", shown)
        for what in ("build", "upload", "confirm")
    }
    assert {what: found[1] for what, found in styles.items() if found} == {
        "build": None if plain else "36",
        "upload": "1" if plain else "1;35",
        "confirm": "2",
    }


def test_a_terminal_says_where_packages_go_before_the_first_ends(screen: Screen) -> None:
    screen.progress.begin(mixed_plan())
    lines = screen.rows()
    assert lines[1] == "to: pypi.org"


def test_a_package_that_has_ended_leaves_a_line_with_its_seconds(screen: Screen) -> None:
    screen.progress.begin(of("core", "http", "app", "cli", "slow", "gui"))
    for name, outcome in (
        ("core", Outcome.PUBLISHED),
        ("http", Outcome.STAGED),
        ("app", Outcome.ALREADY_PUBLISHED),
        ("cli", Outcome.WOULD_PUBLISH),
        ("gui", Outcome.UNKNOWN),
        ("slow", Outcome.FAILED),
    ):
        screen.event("started", name, phase="build")
        screen.now_s += 1.5
        screen.event("ended", name, phase="build")
        detail = f"pypi:{name} 1.0.0: no" if outcome in {Outcome.FAILED, Outcome.UNKNOWN} else "x"
        screen.event("settled", name, outcome=outcome, detail=detail)
    lines = screen.rows()
    assert lines[1:7] == [
        "✓ pypi:core 1.0.0  1.5 s",
        "◆ pypi:http 1.0.0  staged, for a person to approve  1.5 s",
        "= pypi:app 1.0.0  already there  1.5 s",
        "✓ pypi:cli 1.0.0  would be published  1.5 s",
        "? pypi:gui 1.0.0  unknown: no",
        "✗ pypi:slow 1.0.0  failed: no",
    ]
    assert re.fullmatch(r"█+ 6 of 6 packages, 2 failed, 9 s elapsed", lines[7])


def test_a_thousand_packages_that_were_there_leave_no_lines(screen: Screen) -> None:
    """R40"""
    screen.progress.begin(of("a", "b", "c", "d", kept=996))
    for number in range(996):
        screen.event("settled", f"kept{number}", outcome=Outcome.ALREADY_PUBLISHED)
    lines = screen.rows()
    assert lines[0] == "1000 packages: 4 to build and publish, 996 already published"
    assert "0 of 4 packages" in lines[1]


def test_what_a_failure_blocks_is_counted_at_once_and_told_at_the_end(screen: Screen) -> None:
    screen.progress.begin(
        of("core", "http", "app", "other", needs={"http": ("core",), "app": ("http",)})
    )
    screen.event("settled", "core", outcome=Outcome.FAILED, detail="no")
    assert "1 of 4 packages, 1 failed, 2 blocked" in screen.rows()[2]
    screen.event("settled", "http", outcome=Outcome.BLOCKED, detail="needs core")
    assert "2 of 4 packages, 1 failed, 1 blocked" in screen.rows()[2]


def test_elapsed_and_left_are_words_and_an_estimate_needs_three(screen: Screen) -> None:
    screen.progress.begin(of(*"abcdef"))
    for name in "ab":
        screen.now_s += 10
        screen.event("settled", name, outcome=Outcome.PUBLISHED)
    assert screen.rows()[-2].endswith("2 of 6 packages, 20 s elapsed")
    screen.now_s += 10
    screen.event("settled", "c", outcome=Outcome.PUBLISHED)
    assert screen.rows()[-2].endswith("3 of 6 packages, 30 s elapsed, about 30 s left")


def test_what_is_built_is_another_part_of_the_bar(screen: Screen) -> None:
    screen.progress.begin(of(*"abcd"))
    for name in "ab":
        screen.event("ended", name, phase="build")
    screen.event("ended", "c", phase="build", detail="it failed")
    screen.event("settled", "a", outcome=Outcome.PUBLISHED)
    assert re.match(r"█{10}▒{10}░{20} 1 of 4 packages, 1 built, ", screen.rows()[-2])


def test_a_pause_shows_at_once_and_what_is_in_flight_stays(screen: Screen) -> None:
    """R10"""
    screen.progress.begin(of(*"abc"))
    screen.event("started", "a", phase="upload")
    screen.course("paused")
    *_, row, _, state, legend = screen.rows()
    assert "pypi:a  upload" in row
    assert state == "Paused: 1 in flight goes on, nothing new starts"
    assert legend == "keys: r resume, q cancel"
    screen.now_s += 5
    screen.event("ended", "a", phase="upload")
    assert screen.rows()[-2] == "Paused: nothing in flight, nothing new starts"
    screen.course("running")
    lines = screen.rows()
    assert lines[-3] == "Resumed after a pause of 5.0 s."
    assert lines[-1] == "keys: p pause, q cancel"


def test_a_pause_is_no_part_of_the_estimate(screen: Screen) -> None:
    screen.progress.begin(of(*"abcdef"))
    screen.course("paused")
    screen.now_s += 100
    screen.course("running")
    for name in "abc":
        screen.now_s += 10
        screen.event("settled", name, outcome=Outcome.PUBLISHED)
    assert screen.rows()[-2].endswith("2 min 10 s elapsed, about 30 s left")


def test_a_cancellation_counts_down_and_what_is_in_flight_stays(screen: Screen) -> None:
    """R10, R28"""
    screen.progress.begin(of(*"abc"))
    for name in "ab":
        screen.event("started", name, phase="upload")
    screen.course("cancelling", reason="cancelled by the key q")
    *_, state, legend = screen.rows()
    assert state == "Cancelling, by the key q: what is built goes out next time, 2 in flight"
    assert legend == "keys: q again stops builds, uploads get 6 s"
    screen.course("cancelling", reason="cancelled by Ctrl-C", until_s=6.0)
    assert screen.rows()[-2] == "Cancelling, by Ctrl-C: 6 s left, 2 in flight"
    screen.now_s += 4
    screen.event("settled", "b", outcome=Outcome.PUBLISHED)
    *_, row, _, state, legend = screen.rows()
    assert "pypi:a  upload" in row
    assert state == "Cancelling, by Ctrl-C: 2 s left, 1 in flight"
    assert legend == "keys: q again ends it at once"
    screen.course("cancelling", reason="cancelled by SIGTERM", until_s=4.0)
    assert screen.rows()[-1] == "Cancelling, by SIGTERM: interrupting, 1 in flight"


def test_a_cancellation_ends_a_pause(screen: Screen) -> None:
    """R10"""
    screen.progress.begin(of(*"abc"))
    screen.course("paused")
    screen.course("cancelling", reason="cancelled by the key q")
    rows = screen.rows()
    assert (
        rows[-2] == "Cancelling, by the key q: what is built goes out next time, nothing in flight"
    )
    assert not any("Resumed" in row for row in rows)


def test_a_persons_time_is_not_counted(screen: Screen) -> None:
    screen.progress.begin(of("a"))
    screen.event("started", "a", phase="approval")
    screen.now_s += 3_600
    screen.event("ended", "a", phase="approval")
    screen.event("settled", "a", outcome=Outcome.PUBLISHED)
    assert "✓ pypi:a 1.0.0" in screen.rows()


def test_a_very_narrow_window_has_no_bar() -> None:
    """R40"""
    screen = Screen(width=26)
    screen.progress.begin(of("a"))
    assert screen.rows()[-3:-1] == ["0 of 1 packages", "0 s elapsed"]


def test_where_nobody_hears_keys_there_are_none_to_press() -> None:
    screen = Screen(keys=False)
    screen.progress.begin(of(*"abc"))
    screen.course("paused")
    assert not any("keys:" in row for row in screen.rows())
    assert screen.rows()[-1] == "Paused: nothing in flight, nothing new starts"


def test_a_retry_counts_down_and_leaves_a_line(screen: Screen) -> None:
    screen.progress.begin(mixed_plan())
    screen.event("retrying", phase="upload", delay_s=12, detail="busy\x1b[2J")
    screen.now_s += 4
    screen.event("started", "app", phase="build")
    lines = screen.rows()
    assert "~ pypi:http 1.0.0  upload: again in 12 s: busy\\x1b[2J" in lines
    assert any(re.fullmatch(r"  pypi:http +upload: again in 8\.0 s", row) for row in lines)


@pytest.mark.parametrize(("width", "height"), [(40, 8), (60, 10), (40, 24), (60, 5), (30, 3)])
def test_a_small_screen_holds_all_of_it(width: int, height: int) -> None:
    """R40"""
    screen = Screen(width=width, height=height)
    screen.progress.begin(of(*"abcdef"))
    for number in range(30):
        screen.event("started", f"{number}-with-quite-a-long-name-名前", phase="confirm")
    screen.course("paused")
    for name in "abc":
        screen.event("settled", name, outcome=Outcome.PUBLISHED)
    lines = screen.rows()
    assert len(lines) <= height
    assert "Paused" in " ".join(lines)
    if height > 3:
        assert sum("elapsed" in row for row in lines) == 1
    if height > 5:
        assert any(re.fullmatch(r"  and \d+ more", row) for row in lines)
        assert "0-with" in "".join(lines)
        assert " ".join(lines).count("3 of 6 packages") == 1


def test_names_that_are_too_long_are_cut(screen: Screen) -> None:
    screen.progress.begin(mixed_plan())
    screen.event("started", "n" * 200, phase="build")
    row = screen.rows()[-3]
    assert re.fullmatch(r"  pypi:n+…  build  0\.0 s", row)
    assert len(row) < 100


def test_an_encoding_without_the_signs_gets_ascii() -> None:
    screen = Screen(encoding="ascii")
    screen.progress.begin(of(*"abcd"))
    screen.event("ended", "a", phase="build")
    screen.event("settled", "b", outcome=Outcome.PUBLISHED)
    screen.event("settled", "c", outcome=Outcome.FAILED, detail="no")
    screen.event("started", "n" * 200, phase="build")
    lines = screen.rows()
    assert lines[1:3] == ["+ pypi:b 1.0.0", "x pypi:c 1.0.0  failed: no"]
    assert lines[3].endswith("n...  build  0.0 s")
    assert re.match(r"#{20}={10}\.{10} 2 of 4", lines[4])
    screen.progress.end(partial_report())
    screen.rows()
    assert screen.written.isascii()


def test_the_terminal_ends_with_what_failed_hints_and_the_headline(screen: Screen) -> None:
    screen.progress.begin(mixed_plan())
    screen.progress.end(partial_report())
    lines = screen.rows()
    assert re.fullmatch(
        r"pypi:broken +1\.0\.0 +✗ failed +the build failed; 1 package waits for it", lines[-5]
    )
    assert lines[-4:] == [
        "",
        "pypi:broken: Read the log.",
        "",
        "2 of 5 packages published, 1 already there, 1 failed, 1 blocked",
    ]
    assert sum("headline" in row or "2 of 5" in row for row in lines) == 1


def test_the_end_of_a_failed_builds_log_is_shown_and_paths_stay_whole() -> None:
    """What goes on in the next row is one word for who copies it; the cause is told once."""
    path = f"/{'deep/' * 12}build-pypi-broken.log"
    why = f"its build failed with exit code 1: no {path}"
    failed = result(
        "broken",
        Outcome.FAILED,
        reason=why,
        log=(f"Error: no {path}",),
        hint=f"Read {path} first.",
    )
    for width, table in ((60, False), (80, False), (120, True)):
        screen = Screen(width=width)
        screen.progress.begin(of("broken"))
        screen.event("settled", "broken", outcome=Outcome.FAILED, detail=why)
        screen.progress.end(report(failed))
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", screen.stream.getvalue())
        lines = text.splitlines()
        assert "Last lines of the log of pypi:broken" in lines
        assert f"  | Error: no {path}" in lines
        assert any(line.startswith("package") for line in lines) is table
        assert text.count(path) == 3  # in the log, in the table, and in what to do
        told = next(line for line in lines if "failed: its build" in line and "…" in line)
        assert len(told.rstrip()) == width


def test_a_narrow_terminal_gets_lines_in_place_of_a_table() -> None:
    """R40"""
    screen = Screen(width=40, NO_COLOR="1")
    screen.progress.begin(mixed_plan())
    screen.progress.end(partial_report())
    lines = screen.rows()
    assert "✗ pypi:broken 1.0.0 failed: the build" in lines
    assert "⊘ pypi:app 1.0.0 blocked: needs" in lines


def test_a_run_of_nothing_ends_with_the_headline(screen: Screen) -> None:
    screen.progress.begin(plan())
    screen.progress.end(outcomes())
    assert screen.rows()[-1] == "No package to publish"


def test_when_all_is_published_there_is_no_table(screen: Screen) -> None:
    screen.progress.begin(of("p0", "p1"))
    for name in ("p0", "p1"):
        screen.event("settled", name, outcome=Outcome.PUBLISHED)
    screen.progress.end(outcomes(Outcome.PUBLISHED, Outcome.PUBLISHED))
    assert screen.rows() == [
        "2 packages: 2 to build and publish",
        "✓ pypi:p0 1.0.0",
        "✓ pypi:p1 1.0.0",
        "Both packages are published",
    ]


def test_no_color_means_none_and_the_rest_of_the_bar_can_be_told() -> None:
    """https://no-color.org"""
    screen = Screen(NO_COLOR="1")
    screen.progress.begin(of(*"ab"))
    screen.event("settled", "a", outcome=Outcome.PUBLISHED)
    assert re.match(r"█{20}░{20} 1 of 2", screen.rows()[-2])
    screen.progress.end(partial_report())
    screen.rows()
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", screen.written)


@settings(max_examples=40)
@given(hostile_text)
def test_no_text_from_outside_reaches_the_terminal_as_a_command(text: str) -> None:
    """R35"""
    screen = Screen(NO_COLOR="1")
    screen.progress.begin(of(text))
    screen.event("started", text, phase="build")
    screen.event("retrying", text, phase="upload", delay_s=1, detail=text)
    screen.course("cancelling", reason=text)
    screen.event("settled", text, outcome=Outcome.FAILED, detail=text)
    screen.progress.close()
    screen.rows()
    allowed = re.sub(r"\x1b\[[0-9;]*[mAK]", "", screen.written)
    assert all(char.isprintable() or char in "\n\r" for char in allowed)


def test_the_redrawing_thread_ends_with_the_run() -> None:
    """R29"""
    before = set(threading.enumerate())
    progress = LiveProgress(Terminal(), {"TERM": "xterm"})
    progress.begin(mixed_plan())
    (redrawing,) = set(threading.enumerate()) - before
    progress.close()
    progress.close()
    redrawing.join(timeout=PATIENCE_S)
    assert not redrawing.is_alive()
