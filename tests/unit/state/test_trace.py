"""R30: what `doctor` tells of the last run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memory_log import MemoryLog
from releasekit.model import Outcome, Package, PackageId
from releasekit.state.doctor import describe_run, read_trace
from releasekit.state.history import compact, encode, fold
from releasekit.state.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Mapping

STATE = Path("/state")
CORE, HTTP, CLI, LONE = (PackageId("pypi", name) for name in ("core", "http", "cli", "lone"))
NEEDS: Mapping[PackageId, list[PackageId]] = {CORE: [], HTTP: [CORE], CLI: [CORE, HTTP], LONE: []}
FIRST = "last run: started 2026-11-22T01:00:00+00:00, commit c0ffee, "


class Site:
    """A journal whose time is set by hand; a run starts 3 s after its journal was opened."""

    def __init__(self, data: bytes = b"", run_id: str = "run") -> None:
        self.log = MemoryLog(data)
        self.now_s = 0.0
        self.run_id = run_id
        self.journal = Journal(
            self.log, state_directory=STATE, run_id=run_id, clock=lambda: self.now_s
        )
        self.now_s = 3.0

    def start(
        self, needs: Mapping[PackageId, list[PackageId]] = NEEDS, commit: str = "c0ffee"
    ) -> None:
        self.journal.run_started(
            plan_digest="",
            commit=commit,
            tool="1",
            started_at="2026-11-22T01:00:00+00:00",
            ecosystems=["pypi"],
        )
        self.journal.planned(needs)

    def phase(self, node: str, end_s: float, *, attempt: int = 1, error: str = "") -> None:
        """One that begins now."""
        began_s = self.now_s
        self.journal.phase_started(node, attempt=attempt)
        self.now_s = end_s
        self.journal.phase_ended(
            node, attempt=attempt, duration_s=self.now_s - began_s, error=error
        )

    def end(self, package: PackageId, outcome: Outcome) -> None:
        release = Package(id=package, version="1.0", directory=STATE, manifest=STATE)
        self.journal.outcome(release, outcome, "")

    def told(self, data: bytes | None = None, *, running: bool = False) -> list[str]:
        written = self.log.data if data is None else data
        run = fold(written, state_directory=STATE).last_run()
        assert run is not None
        return describe_run(run, read_trace(written, run.id), running=running)


@pytest.fixture(name="site")
def _site() -> Site:
    """A run that is cut off 312 s after its start."""
    site = Site()
    site.start()
    site.now_s = 10.0
    site.phase("upload pypi:core", 20.0)
    site.phase("confirm pypi:core", 23.1)
    site.end(CORE, Outcome.PUBLISHED)
    site.phase("build pypi:lone", 24.0)
    site.phase("upload pypi:http", 290.0, error="HTTP 503")
    site.now_s = 301.0
    site.journal.phase_started("upload pypi:http", attempt=2)
    site.now_s = 312.0
    site.journal.phase_started("build pypi:cli")
    site.now_s = 315.0
    site.phase("upload pypi:lone", 315.0, error="reset")
    return site


CUT_OFF = [
    f"{FIRST}cut off, last heard of after 5 min 12 s",
    "  at work: upload pypi:http (attempt 2, 14 s), build pypi:cli (3.0 s)",
    "  last finished: build pypi:lone (0.9 s), confirm pypi:core (3.1 s), upload pypi:core (10 s)",
    "  last failed: upload pypi:lone (0.0 s): reset, upload pypi:http (4 min 26 s): HTTP 503",
    "  waiting: pypi:lone (for another attempt at its upload)",
]


def test_a_run_that_was_cut_off_is_told_to_its_end(site: Site) -> None:
    assert site.told() == CUT_OFF
    assert site.told(running=True)[0] == f"{FIRST}still at work, last heard of after 5 min 12 s"


def test_a_shortened_journal_tells_the_same(site: Site) -> None:
    """R40"""
    assert site.told(compact(site.log.data)) == CUT_OFF


def test_a_run_that_ended_in_order_is_one_line(site: Site) -> None:
    journal = site.journal
    site.end(HTTP, Outcome.FAILED)
    step = journal.run_ended("partial")
    with pytest.raises(StopIteration):
        step.send(None)
    line = [f"{FIRST}ended after 5 min 12 s: partial"]
    assert site.told() == line
    shorter = compact(site.log.data)
    assert site.told(shorter) == line
    assert b"needs" not in shorter


def test_who_waits_for_whom() -> None:
    site = Site()
    site.start()
    core, http, cli = (f"pypi:{name} " for name in ("core", "http", "cli"))
    waiting = f"{http}(needs pypi:core), {cli}(needs pypi:core, pypi:http)"
    lone = "pypi:lone (for its turn)"
    assert site.told()[1:] == [f"  waiting: {core}(for its turn), {waiting}, {lone}"]
    site.end(CORE, Outcome.FAILED)
    site.end(HTTP, Outcome.BLOCKED)
    site.phase("build pypi:lone", 4.0)
    assert site.told()[-1] == f"  waiting: {cli}(needs pypi:core, pypi:http), {lone}"


def test_many_are_counted() -> None:
    site = Site()
    site.start({PackageId("pypi", f"p{number}"): [] for number in range(9)}, commit="")
    [first, waiting] = site.told()
    assert first.startswith("last run: started 2026-11-22T01:00:00+00:00, cut off")
    assert waiting.endswith("pypi:p4 (for its turn) and 4 more")


def test_the_records_of_other_runs_are_not_its_own(site: Site) -> None:
    later = Site(site.log.data, run_id="later")
    later.start({CORE: []})
    site.log = later.log
    assert site.told() == [
        f"{FIRST}cut off, last heard of after 0.0 s",
        "  waiting: pypi:core (for its turn)",
    ]


def test_a_journal_of_an_earlier_version_does_not_say_what_there_is_to_do() -> None:
    [line] = Site().told(written(STARTED))
    assert line == "last run: started 2026, commit c0ffee, cut off, last heard of after 0.0 s"


STARTED: dict[str, object] = {
    "event": "run_started",
    "plan": "p",
    "commit": "c0ffee",
    "tool": "1",
    "started_at": "2026",
    "ecosystems": ["pypi"],
}


def written(*records: dict[str, object]) -> bytes:
    return b"".join(
        encode({"v": 1, "run": "r", "seq": number, "at": 0.0, "durable": 0, **record})
        for number, record in enumerate(records)
    )


@pytest.mark.parametrize("at", ["now", float("inf"), -1.0, 10**400])
def test_a_journal_may_hold_anything(at: object) -> None:
    """R35, R40"""
    long = "n" * 999
    data = written(
        {**STARTED, "at": at, "commit": long, "started_at": long},
        {"event": "planned", "needs": {"pypi:core": long, long: [long] * 99}},
        {"event": "step_started", "node": f"upload {long}", "attempt": [long]},
        {"event": "step_ended", "node": long, "duration_s": float("nan"), "error": [long]},
    )
    found = Site().told(data)
    assert len(found) == 4
    assert max(map(len, found)) < 1_000
