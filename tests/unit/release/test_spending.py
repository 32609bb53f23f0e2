"""What a release over a registry in memory spent, and what is said about it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from jsonschema import Draft202012Validator

from fakes import (
    SEAL,
    FakeRegistry,
    FakeWorkspace,
    config,
    package,
    package_id,
    placed,
    plan,
    target,
)
from memory_log import MemoryLog
from releasekit.errors import CircuitOpen, ConfigError, Denied, PackageError, Transient
from releasekit.fields import replace
from releasekit.http.traffic import Counters, Metrics, pause, wait_for_turn
from releasekit.model import Action, Outcome
from releasekit.release.polling import Polling
from releasekit.release.release import ReleaseRun
from releasekit.release.sources import Sources
from releasekit.report import join, load_results, results_json, results_table, summary
from releasekit.report.spent import spent_line, spent_section
from releasekit.report.text import size
from releasekit.spent import WAITS, WORK, Spent, added
from releasekit.state.directory import make_state_directory
from releasekit.state.journal import Journal
from sample_runs import report, result
from simulation.virtual_loop import VirtualLoop, run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from releasekit.model import Artifact, Package, PackageId, Plan, Published

CORE, APP, CLI = package("core"), package("app", "core"), package("cli", "app")


def limited() -> Transient:
    return Transient("429", retry_after=3.0)


@dataclass
class Building(FakeWorkspace):
    build_s: float = 2.0

    async def build(
        self, packages: Sequence[Package], into: Callable[[Package], Path]
    ) -> Mapping[PackageId, Any]:
        await asyncio.sleep(self.build_s)
        return await super().build(packages, into)


@dataclass
class Timed(FakeRegistry):
    """Takes `upload_s` for an upload, and one at a time where they take `turns`. The first look at
    what is in `limited` has to wait.
    """

    upload_s: float = 1.0
    turns: asyncio.Lock | None = None
    limited: set[str] = field(default_factory=set)

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        async with wait_for_turn(self.turns or contextlib.nullcontext(), "slot"):
            await asyncio.sleep(self.upload_s)
        await super().upload(package, artifacts)

    async def lookup(self, package: Package) -> Published | None:
        if package.id.name in self.limited:
            self.limited.remove(package.id.name)
            await pause(2.0, again=True, limited=True)
        return await super().lookup(package)


@dataclass
class Bench:
    root: Path
    registry: Timed = field(default_factory=Timed)
    workspace: Building = field(default_factory=Building)
    book: Metrics = field(default_factory=Metrics)
    stops_at_s: float | None = None

    def spent(self, made: Plan, **changes: object) -> dict[str, Spent]:
        run(lambda loop: self._run(loop, placed(made, self.root), **changes))
        return {on.name: spent for on, spent in self.spending.packages.items()}

    async def _run(self, loop: VirtualLoop, made: Plan, **changes: object) -> None:
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
            watch=lambda event: None,
            sources=Sources(made, None),
            polling=Polling(first_pause_s=4.0, longest_pause_s=4.0),
        )
        if self.stops_at_s is not None:
            loop.call_later(self.stops_at_s, release.stop, "stopped")
        await release.run()
        self.spending = release.spending(self.book)
        told = report(*release.results())
        told = replace(told, duration_s=loop.time(), edges=made.edges())
        self.report = self.spending.told_in(told)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_package_is_at_work_or_waits_for_one_thing(bench: Bench) -> None:
    bench.registry.lag["core"] = 1
    spent = bench.spent(plan(CORE, APP))
    assert spent["core"].seconds == {"build": 2, "upload": 1, "index-lag": 4}
    assert spent["app"].seconds == {"build": 2, "dependency": 5, "upload": 1}
    assert (spent["app"].waited_for, spent["app"].longest_s) == ("fake:core", 5)
    assert (spent["core"].waited_for, spent["core"].longest_s) == ("", 0)
    assert bench.spending.run.seconds == {
        "build": 4,
        "upload": 2,
        "dependency": 5,
        "index-lag": 4,
    }


def test_one_build_of_several_packages_counts_once(bench: Bench) -> None:
    """R68: a run of mvn for three modules took a third of what was told."""
    bench.workspace.batch = True
    spent = bench.spent(plan(*(package(name) for name in "abc")))
    assert [spent[name].seconds["build"] for name in "abc"] == [2, 2, 2]
    assert bench.spending.run.seconds["build"] == 2
    assert bench.spending.run.seconds["upload"] == 3


def test_a_build_of_several_packages_that_ends_at_once_counts_nothing(bench: Bench) -> None:
    bench.workspace.batch = True
    bench.workspace.build_s = 0.0
    spent = bench.spent(plan(*(package(name) for name in "abc")))
    assert [dict(spent[name].seconds) for name in "abc"] == [{"upload": 1}] * 3
    assert bench.spending.run.seconds == {"upload": 3}


def test_what_waits_for_a_slot_says_so(bench: Bench) -> None:
    made = plan(*(package(name) for name in "abc"))
    spent = bench.spent(made, concurrency=1, build_concurrency=3)
    assert [spent[name].seconds.get("slot", 0) for name in "abc"] == [0, 1, 2]
    spent = bench.spent(made, concurrency=3, build_concurrency=1)
    assert sorted(spent[name].seconds.get("build-slot", 0) for name in "abc") == [0, 2, 4]


def test_pauses_before_another_upload_have_their_own_causes(bench: Bench) -> None:
    bench.registry.faults["core"] = [limited(), Transient("reset", retry_after=None)]
    bench.registry.faults["app"] = [CircuitOpen("down")]
    spent = bench.spent(plan(CORE, package("app")), max_retries=3)
    assert spent["core"].seconds == {"build": 2, "upload": 3, "rate-limit": 3}
    assert spent["core"].retries == 2
    assert spent["app"].retries == 0  # nothing was asked


def test_pauses_of_a_confirmation_are_no_index_lag(bench: Bench) -> None:
    bench.registry.lag["core"] = 1
    bench.registry.limited = {"core"}
    spent = bench.spent(plan(CORE))
    assert spent["core"].seconds == {"build": 2, "upload": 1, "rate-limit": 2, "index-lag": 4}


def test_what_was_there_before_spent_nothing(bench: Bench) -> None:
    spent = bench.spent(plan(CORE, APP, actions={"core": Action.KEEP}))
    assert "core" not in spent
    assert spent["app"].seconds == {"build": 2, "upload": 1}
    assert bench.report.results[0].spent is None


def test_what_failed_and_what_is_blocked_by_it(bench: Bench) -> None:
    bench.registry.faults["core"] = [Denied("no")]
    spent = bench.spent(plan(CORE, APP))
    assert spent["core"].seconds == {"build": 2, "upload": 1}
    assert spent["app"].seconds == {"build": 2, "dependency": 1}


def test_a_run_that_is_stopped_has_spent_what_it_has(bench: Bench) -> None:
    bench.stops_at_s = 2.5
    spent = bench.spent(plan(CORE, APP))
    assert spent["core"].seconds == {"build": 2, "upload": 1}
    assert bench.report.results[1].outcome is Outcome.CANCELLED
    assert sum(spent["app"].seconds.values()) == 3


def test_requests_are_those_of_the_book(bench: Bench) -> None:
    kept = package_id("kept")
    bench.book = Metrics(
        Counters(requests=1, sent_bytes=5),
        {
            CORE.id: Counters(requests=4, sent_bytes=10, received_bytes=20, retries=1),
            kept: Counters(requests=2),
        },
    )
    bench.registry.faults["core"] = [limited()]
    spent = bench.spent(plan(CORE))
    assert (spent["core"].requests, spent["core"].retries) == (4, 2)
    assert spent["kept"] == Spent(requests=2)
    total = bench.spending.run
    assert (total.requests, total.sent_bytes, total.received_bytes, total.retries) == (7, 15, 20, 2)


def test_where_uploads_wait_for_their_turn_they_wait_for_a_slot(bench: Bench) -> None:
    bench.registry.upload_s = 10.0
    bench.registry.turns = asyncio.Lock()
    made = plan(*(package(f"p{number}") for number in range(6)))
    spent = bench.spent(made, concurrency=2, build_concurrency=16)
    assert sorted(each.seconds.get("slot", 0) for each in spent.values()) == [0, 10, 20, 30, 40, 50]


def test_what_is_written_is_read_again(bench: Bench) -> None:
    bench.book.packages[CORE.id] = Counters(requests=3, sent_bytes=2_000, received_bytes=7)
    bench.registry.lag["core"] = 1
    bench.spent(plan(CORE, APP))
    again = load_results(results_json(bench.report))
    assert again.spent == bench.report.spent
    assert [each.spent for each in again.results] == [each.spent for each in bench.report.results]
    document = json.loads(results_json(bench.report))
    row = document["packages"][1]["spent"]
    assert row["waited_for"] == "fake:core"
    assert row["waits_s"]["dependency"] == 5.0
    assert sum(row["work_s"].values()) + sum(row["waits_s"].values()) == 8.0


RUN_SPENT: Final = Spent(
    requests=120,
    sent_bytes=1_200_000,
    received_bytes=310_400,
    retries=2,
    seconds={"build": 28.0, "upload": 13.0, "dependency": 60.0, "slot": 0.04},
)


def test_the_summary_says_what_the_run_spent() -> None:
    text = summary(replace(report(result("core")), spent=RUN_SPENT))
    section = text.partition("### What the run spent\n")[2].splitlines()
    assert section[1] == "120 requests (1.2 MB sent, 310 kB received, 2 retries)."
    assert section[3] == "At work for 41 s: building 28 s, uploading 13 s."
    assert section[5] == "Waited 1 min 0 s: for dependencies 1 min 0 s."
    assert section[7] == "<details open>"


def test_the_log_ends_with_it_in_one_line() -> None:
    run = replace(report(result("core")), spent=RUN_SPENT, duration_s=30.0)
    line = (
        "spent: 30 s in all. 120 requests (1.2 MB sent, 310 kB received, 2 retries). At work for "
        "41 s: building 28 s, uploading 13 s. Waited 1 min 0 s: for dependencies 1 min 0 s."
    )
    assert results_table(run, verbose=True).splitlines()[-2] == line
    assert line not in results_table(run)
    for paused_s, shown in ((3.0, True), (2.9, False)):  # a tenth of the run
        paused = Spent(seconds={"rate-limit": paused_s - 1.0, "retry": 1.0})
        held_up = replace(run, results=(replace(result("core"), spent=paused),))
        assert (line in results_table(held_up)) is shown


def test_nothing_is_said_of_nothing() -> None:
    for spent in (None, Spent()):
        assert spent_section(spent) == []
        assert spent_line(spent, 1.0) == []
    assert "spent" not in summary(report(result("core")))


@pytest.mark.parametrize(
    ("spent", "words"),
    [
        (Spent(requests=1, received_bytes=1), "1 request (0 bytes sent, 1 byte received)."),
        (Spent(seconds={"build": 2.0}), "At work for 2.0 s: building 2.0 s."),
        (Spent(seconds={"approval": 90.0}), "Waited 1 min 30 s: for approval 1 min 30 s."),
    ],
)
def test_what_was_not_spent_is_not_told(spent: Spent, words: str) -> None:
    assert spent_line(spent, 2.0) == [f"spent: 2.0 s in all. {words}"]
    assert spent_section(spent)[2:] == [words, ""]


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (99_499, "99 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (12_000_000, "12 MB"),
        (3_100_000_000, "3.1 GB"),
        (10**18, "1000000 TB"),
    ],
)
def test_sizes_are_as_exact_as_a_reader_needs(count: int, words: str) -> None:
    assert size(count) == words


def test_joined_jobs_have_spent_what_each_of_them_did() -> None:
    first = replace(report(result("core"), run_id="a"), spent=RUN_SPENT)
    later = replace(
        report(result("http"), run_id="b", started_at="2026-11-20T12:01:00+00:00"),
        spent=RUN_SPENT,
    )
    joined = join([later, first, report(result("old"), run_id="c")])
    assert joined.spent is not None
    assert joined.spent == added([RUN_SPENT, RUN_SPENT])
    assert joined.spent.requests == 240
    assert join([report(result("old"))]).spent is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spent": []}, "a.json: spent: must be an object, not []"),
        ({"requests": -1}, "a.json: spent: 'requests' must be a whole number"),
        ({"waits_s": {}}, "a.json: spent: waits_s: 'dependency' is missing"),
        ({"work_s": {"build": "1"}}, "a.json: spent: work_s: 'build' must be a number of seconds"),
    ],
)
def test_a_bad_file_is_named_with_the_key(change: dict[str, Any], message: str) -> None:
    document = json.loads(results_json(replace(report(result("core")), spent=RUN_SPENT)))
    if "spent" in change:
        document |= change
    else:
        document["spent"] |= change
    with pytest.raises(ConfigError) as caught:
        load_results(json.dumps(document), "a.json")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("error", "is_limited"),
    [
        (Transient("503"), False),
        (Transient("503", retry_after=0.0), True),
        (PackageError("no"), False),
    ],
)
def test_a_limit_is_what_names_a_time(error: PackageError, is_limited: bool) -> None:
    assert getattr(error, "limited", False) is is_limited


def test_the_documents_name_everything_that_time_goes_into() -> None:
    root = Path(__file__).parents[3]
    page = (root / "docs/spent.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)
    assert sorted(rows) == sorted([*WORK, *WAITS])
    schema = json.loads((root / "docs/results.schema.json").read_text(encoding="utf-8"))
    assert tuple(schema["$defs"]["work"]["required"]) == WORK
    assert tuple(schema["$defs"]["waits"]["required"]) == WAITS


def test_what_is_written_is_valid_by_the_published_schema(bench: Bench) -> None:
    path = Path(__file__).parents[3] / "docs/results.schema.json"
    bench.registry.lag["core"] = 1
    bench.spent(plan(CORE, APP))
    schema = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(json.loads(results_json(bench.report)))
