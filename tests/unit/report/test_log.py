"""What a log says: whole ones of small releases, run on a loop whose clock jumps."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING, TypedDict, Unpack

import pytest
from hypothesis import given

from fakes import SEAL, FakeRegistry, FakeWorkspace, config, package, placed, plan, target
from memory_log import MemoryLog
from releasekit.errors import Transient
from releasekit.fields import replace
from releasekit.model import (
    Action,
    Course,
    Event,
    Outcome,
    PackageId,
    PackageWarning,
    Phase,
    WarningName,
)
from releasekit.problems import Problem
from releasekit.release.polling import Polling
from releasekit.release.release import ReleaseRun
from releasekit.release.sources import Sources
from releasekit.report.log import LogProgress
from releasekit.state.directory import make_state_directory
from releasekit.state.journal import Journal
from sample_runs import hostile_text, mixed_plan, partial_report, report, result, step
from sample_runs import plan as a_plan
from simulation.virtual_loop import VirtualLoop, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any, Literal

    from releasekit.model import Artifact, Package, Plan
    from releasekit.report.log import Group

AGAIN = "Fix what the reason names, then run the same command again."
CORE, APP, CLI = package("core"), package("app", "core"), package("cli", "app")
LONE, BAD = package("lone"), package("bad")


@dataclass
class Slow(FakeWorkspace):
    """A build takes 2 s, or as long as `takes_s` says."""

    takes_s: dict[str, float] = field(default_factory=dict)

    async def build(
        self, packages: Sequence[Package], into: Callable[[Package], Path]
    ) -> Mapping[PackageId, Any]:
        await asyncio.sleep(self.takes_s.get(packages[0].id.name, 2.0))
        return await super().build(packages, into)


@dataclass
class Timed(FakeRegistry):
    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        await asyncio.sleep(1.0)
        await super().upload(package, artifacts)


@dataclass
class Bench:
    root: Path
    registry: Timed = field(default_factory=Timed)
    workspace: Slow = field(default_factory=Slow)
    group: Group | None = None

    def log(self, made: Plan, *, verbose: bool = False, **changes: object) -> list[str]:
        """All lines that a run of `made` prints."""
        stream = StringIO()
        progress = LogProgress(
            stream, group=self.group, verbose=verbose, dry_run=bool(changes.get("dry_run"))
        )
        run(lambda _: self._run(placed(made, self.root), progress, **changes))
        return stream.getvalue().splitlines()

    async def _run(self, made: Plan, progress: LogProgress, **changes: object) -> None:
        settings = config(self.root, **{"retry_base_delay": 0.0, **changes})
        make_state_directory(settings.state_directory)
        journal = Journal(
            MemoryLog(), state_directory=settings.state_directory, run_id="run", seal=SEAL
        )
        release = ReleaseRun(
            made,
            target(self.workspace, self.registry),
            config=settings,
            journal=journal,
            watch=progress.on_event,
            sources=Sources(made, None),
            polling=Polling(first_pause_s=4.0, longest_pause_s=4.0),
        )
        progress.begin(made)
        await release.run()
        told = report(*release.results(), dry_run=not settings.is_uploading)
        progress.end(replace(told, edges=made.edges()))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_whole_log_of_a_small_release_with_a_failure(bench: Bench) -> None:
    """R35: the plan, one line for each package as it ends, what failed, the table, the headline."""
    bench.workspace.broken = {"bad"}
    bench.registry.lag["core"] = 1
    needs_bad = package("held", "bad")
    made = plan(package("old"), CORE, APP, BAD, needs_bad, actions={"old": Action.KEEP})
    assert bench.log(made, build_concurrency=4) == [
        "Plan: 5 packages: 4 to build and publish, 1 already published",
        "package    version  action   why",
        "fake:old   1.0      keep     because",
        "fake:core  1.0      publish",
        "fake:app   1.0      publish",
        "fake:bad   1.0      publish",
        "fake:held  1.0      publish",
        "",
        "publish (4): because",
        "",
        "to: https://registry.example/",
        "",
        "     2.0 s  ✗ fake:bad 1.0  build failed in 2.0 s: bad does not build",
        "     7.0 s  ✓ fake:core 1.0  published in 7.0 s",
        "     8.0 s  ✓ fake:app 1.0  published in 3.0 s",
        "",
        "Last lines of the log of fake:bad",
        "  | error: no",
        "",
        "package    version  outcome            why",
        "fake:old   1.0      already-published  because",
        "fake:core  1.0      published          uploaded, and the registry shows our bytes",
        "fake:app   1.0      published          uploaded, and the registry shows our bytes",
        "fake:held  1.0      blocked            needs fake:bad, which failed",
        "fake:bad   1.0      failed             bad does not build",
        "",
        f"fake:bad: {AGAIN} {Problem.BUILD_FAILED.url}",
        "",
        "2 of 5 packages published, 1 already there, 1 failed, 1 blocked",
    ]


@pytest.mark.parametrize("dry_run", [True, False])
def test_warnings_are_told_once_and_below_the_results(bench: Bench, *, dry_run: bool) -> None:
    warned = PackageWarning(name=WarningName.NEW_NAME, message="nobody has it yet")
    made = plan(CORE)
    made = replace(made, packages=tuple(replace(p, warnings=(warned,)) for p in made.packages))
    lines = bench.log(made, dry_run=dry_run)
    (at,) = (number for number, line in enumerate(lines) if "nobody has it yet" in line)
    assert at > max(number for number, line in enumerate(lines) if line.startswith("fake:core  "))


def test_a_thousand_packages_that_are_there_are_one_line(bench: Bench) -> None:
    kept = [package(f"p{number:03}") for number in range(1_000)]
    made = plan(*kept, actions={each.id.name: Action.KEEP for each in kept})
    assert bench.log(made) == [
        "Plan: 1000 packages: 1000 already published",
        "keep (1000): because",
        "",
        "to: https://registry.example/",
        "",
        "already published (1000): fake:p000, fake:p001, fake:p002 and 997 more",
        "",
        "All 1000 packages are already published, nothing to do",
    ]


def test_the_whole_log_of_everything(bench: Bench) -> None:
    """R35: with `verbose` also what began when, and what waited for what."""
    bench.registry.faults["core"] = [Transient("503", retry_after=3.0)]
    lines = bench.log(plan(CORE, APP), verbose=True, concurrency=1, build_concurrency=2)
    assert lines[lines.index("     0.0 s    fake:core 1.0  build started") : -6] == [
        "     0.0 s    fake:core 1.0  build started",
        "     0.0 s    fake:app 1.0  build started",
        "     2.0 s    fake:core 1.0  build ended in 2.0 s",
        "     2.0 s    fake:app 1.0  build ended in 2.0 s",
        "     2.0 s    fake:app 1.0  waits for fake:core",
        "     2.0 s    fake:core 1.0  upload started",
        "     3.0 s    fake:core 1.0  upload ended in 1.0 s: 503",
        "     3.0 s    fake:core 1.0  upload again in 3.0 s: 503",
        "     6.0 s    fake:core 1.0  upload started (attempt 2)",
        "     7.0 s    fake:core 1.0  upload ended in 1.0 s (attempt 2)",
        "     7.0 s    fake:core 1.0  confirm started (attempt 2)",
        "     7.0 s    fake:core 1.0  confirm ended in 0.0 s (attempt 2)",
        "     7.0 s  ✓ fake:core 1.0  published in 4.0 s, 2 attempts",
        "     7.0 s    fake:app 1.0  upload started: it waited 5.0 s for fake:core",
        "     8.0 s    fake:app 1.0  upload ended in 1.0 s",
        "     8.0 s    fake:app 1.0  confirm started",
        "     8.0 s    fake:app 1.0  confirm ended in 0.0 s",
        "     8.0 s  ✓ fake:app 1.0  published in 3.0 s",
    ]


def test_what_waits_for_a_slot_says_so(bench: Bench) -> None:
    lines = bench.log(
        plan(*(package(name) for name in "ab")), verbose=True, concurrency=1, build_concurrency=2
    )
    assert "     3.0 s    fake:b 1.0  upload started: it waited 1.0 s for a slot" in lines


def test_a_long_pause_is_told_and_a_short_one_is_counted(bench: Bench) -> None:
    """R12"""
    bench.registry.faults["core"] = [Transient("429", retry_after=20.0)]
    bench.registry.faults["lone"] = [Transient("503", retry_after=1.0)]
    lines = bench.log(plan(CORE, LONE), build_concurrency=2)
    told = [line for line in lines if " s  " in line]
    assert told == [
        "     3.0 s    fake:core 1.0  upload again in 20 s: 429",
        "     5.0 s  ✓ fake:lone 1.0  published in 4.0 s, 2 attempts",
        "    24.0 s  ✓ fake:core 1.0  published in 4.0 s, 2 attempts",
    ]


def test_a_dry_run_tells_of_each_build_as_it_ends(bench: Bench) -> None:
    """R25"""
    bench.workspace.takes_s["app"] = 3.0
    lines = bench.log(plan(CORE, APP), dry_run=True)
    assert [line for line in lines if " s  " in line] == [
        "     2.0 s    fake:core 1.0  build ended in 2.0 s",
        "     3.0 s    fake:app 1.0  build ended in 3.0 s",
    ]


def test_of_packages_that_are_built_together_each_says_how_it_went(bench: Bench) -> None:
    bench.workspace.batch = True
    bench.workspace.broken = {"bad"}
    lines = bench.log(plan(LONE, BAD), dry_run=True)
    assert [line for line in lines if " s  " in line] == [
        "     2.0 s    fake:lone 1.0  build ended in 2.0 s",
        "     2.0 s  ✗ fake:bad 1.0  build failed in 2.0 s: bad does not build",
    ]


def test_a_long_silence_is_broken_by_what_is_in_flight(bench: Bench) -> None:
    """R35: ever more rarely, until something ends; a job does not look as if it hung."""
    bench.workspace.takes_s = {"core": 200.0, "lone": 40.0}
    lines = bench.log(plan(CORE, LONE), build_concurrency=2, task_timeout=1_000.0)
    assert [line for line in lines if " s  " in line] == [
        "    30.0 s    still at work: fake:core building for 30 s, fake:lone building for 30 s",
        "    41.0 s  ✓ fake:lone 1.0  published in 41 s",
        "    71.0 s    still at work: fake:core building for 1 min 11 s",
        "   131.0 s    still at work: fake:core building for 2 min 11 s",
        "   201.0 s  ✓ fake:core 1.0  published in 3 min 21 s",
    ]


def test_a_silence_in_which_all_is_put_off_says_until_when(bench: Bench) -> None:
    bench.registry.faults["core"] = [Transient("429", retry_after=40.0)]
    lines = bench.log(plan(CORE))
    assert "    33.0 s    still at work: fake:core upload again in 40 s" in lines


def test_nothing_in_flight_is_no_news() -> None:
    """As while a person has paused the run. The timer goes on, and ends with the run."""

    async def main(loop: VirtualLoop) -> list[str]:
        stream = StringIO()
        progress = LogProgress(stream)
        progress.begin(a_plan())
        await asyncio.sleep(65)
        progress.on_event(event("started", phase="build"))
        await asyncio.sleep(20)
        heard = stream.getvalue().splitlines()
        progress.close()
        progress.close()
        await asyncio.sleep(600)
        assert stream.getvalue().splitlines() == heard
        return heard

    # Nothing was said of the build's beginning, so the silence has lasted since 60 s.
    assert run(main) == ["Plan: No package to publish", ""]


class Details(TypedDict, total=False):
    phase: Phase
    attempt: int
    delay_s: float
    outcome: Outcome
    detail: str


def event(
    state: Literal["started", "ended", "waiting", "retrying", "settled"],
    name: str = "http",
    **details: Unpack[Details],
) -> Event:
    return Event(package=PackageId("pypi", name), state=state, at_s=1.25, **details)


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (event("started", phase="build"), ""),
        (event("ended", phase="upload", detail="503"), ""),
        (event("ended", phase="build", detail="CancelledError"), ""),
        (
            event("ended", phase="follow-up", detail="no"),
            "✗ pypi:http  follow-up failed in 0.0 s: no",
        ),
        (
            event("started", phase="wait", detail="pypi:app needs it"),
            "  pypi:http  waits: pypi:app needs it",
        ),
        (
            event("retrying", phase="wait", delay_s=0.5, detail="no answer"),
            "  pypi:http  not there yet, asked again in 0.5 s: no answer",
        ),
        (event("ended", phase="wait"), "  pypi:http  waited 0.0 s: it is there"),
        (event("ended", phase="wait", detail="not there"), "  pypi:http  waited 0.0 s: not there"),
        (event("ended", phase="approval"), ""),
        (event("started", phase="approval"), "  pypi:http  waiting for a person's approval"),
        (event("settled", outcome=Outcome.BLOCKED, detail="needs x"), ""),
        (event("settled", outcome=Outcome.CANCELLED, detail="the run ended"), ""),
        (event("settled", outcome=Outcome.ALREADY_PUBLISHED), ""),
        (
            event("settled", outcome=Outcome.UNKNOWN, attempt=2, detail="pypi:http: no answer"),
            "? pypi:http  unknown, 2 attempts: no answer",
        ),
        (event("settled"), ""),
        (event("started"), ""),
    ],
)
def test_the_log_has_a_line_for_what_matters(told: Event, line: str) -> None:
    stream = StringIO()
    LogProgress(stream).on_event(told)
    assert stream.getvalue() == (f"     1.2 s  {line}\n" if line else "")


@contextmanager
def folded(stream: StringIO, title: str) -> Iterator[None]:
    print(f"fold({title})", file=stream)
    yield
    print("end of fold", file=stream)


def test_the_plan_is_folded_and_the_logs_of_failures_are_not() -> None:
    """A runner shows nothing of a group but its title, until somebody opens it."""
    stream = StringIO()
    progress = LogProgress(stream, group=lambda title: folded(stream, title))
    progress.begin(mixed_plan())
    progress.end(partial_report())
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("fold(Plan: 4 packages: 1 to build and publish")
    assert lines[lines.index("end of fold") + 1 :][:5] == [
        "",
        "Last lines of the log of pypi:broken",
        "  | Traceback:",
        "  | SyntaxError: invalid syntax",
        "",
    ]
    assert lines.count("end of fold") == 1
    assert lines[-1] == "2 of 5 packages published, 1 already there, 1 failed, 1 blocked"
    assert stream.getvalue().count(lines[-1]) == 1


def test_one_log_is_shown_once_and_many_are_folded() -> None:
    stream = StringIO()
    together = [result(f"t{n}", Outcome.FAILED, log=("the same",)) for n in range(2)]
    alone = [result(f"a{n}", Outcome.FAILED, log=(f"its own {n}",)) for n in range(6)]
    LogProgress(stream, group=lambda title: folded(stream, title)).end(report(*together, *alone))
    lines = stream.getvalue().splitlines()
    assert lines.count("  | the same") == 1
    assert "Last lines of the log of pypi:t0, pypi:t1" in lines
    assert [line for line in lines if line.startswith("fold(")] == [
        "fold(Last lines of the log of pypi:a4)",
        "fold(Last lines of the log of pypi:a5)",
    ]


def test_what_only_waits_is_not_called_an_upload() -> None:
    stream = StringIO()
    progress = LogProgress(stream)
    progress.on_event(event("waiting", "http", phase="build", detail="the lock on Cargo.toml"))
    progress.on_event(event("started", "http", phase="upload"))
    progress.on_event(event("waiting", "http", phase="upload", detail="a rate limit"))
    progress._print_work(45.0)
    progress.on_event(event("waiting", "http", phase="upload"))
    progress._print_work(50.0)
    first, second = stream.getvalue().splitlines()
    assert "still at work: pypi:http waiting for a rate limit for" in first
    assert "still at work: pypi:http uploading for" in second


def test_a_line_of_a_build_is_cut_where_nobody_reads_on() -> None:
    """R51: its log file has all of it."""
    stream = StringIO()
    failed = result("broken", Outcome.FAILED, log=("x" * 2**16,))
    LogProgress(stream).end(report(failed))
    assert max(map(len, stream.getvalue().splitlines())) == len("  | ") + 1_000


@pytest.mark.parametrize("verbose", [False, True])
@given(text=hostile_text)
def test_nothing_in_the_log_is_a_command_to_the_runner(verbose: bool, text: str) -> None:
    """R35"""
    stream = StringIO()
    progress = LogProgress(stream, verbose=verbose)
    progress.begin(a_plan(step(text, Action.PUBLISH, needs=(text,), reason=text)))
    for phase in ("build", "wait", "follow-up"):
        progress.on_event(event("started", text, phase=phase, detail=text))
        progress.on_event(event("waiting", text, phase=phase, detail=text))
        progress._print_work(60.0)
        progress.on_event(event("retrying", text, phase=phase, delay_s=60.0, detail=text))
        progress.on_event(event("ended", text, phase=phase, detail=text))
    progress.on_event(event("settled", text, outcome=Outcome.UNKNOWN, detail=text))
    progress.end(report(result(text, Outcome.FAILED, reason=text, hint=text, log=(text, text))))
    for line in stream.getvalue().splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
    assert "\x1b" not in stream.getvalue()


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
            (
                "cancelling, by the key q: what is in flight is finished, and what is built goes "
                "out next time"
            ),
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
    assert stream.getvalue() == f"     1.2 s    {line}\n"
