"""Packages that another job publishes, waited for on the virtual clock."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pytest

from fakes import (
    FakeRegistry,
    FakeStaging,
    FakeTarget,
    FakeWorkspace,
    config,
    package,
    package_id,
    plan,
)
from releasekit import report
from releasekit.errors import Denied, PlanError, StageOnly, Transient
from releasekit.fields import replace
from releasekit.model import (
    Action,
    Dependency,
    DependencyKind,
    Event,
    Outcome,
    Package,
    Plan,
    Report,
    Result,
)
from releasekit.plan.make import make_plan
from releasekit.release.release import ReleaseRun
from releasekit.release.sibling_jobs import OtherJobs
from releasekit.release.sources import Sources
from releasekit.release.tasks import batches_of
from releasekit.state.directory import make_state_directory
from releasekit.state.journal import History, Journal
from simulation import virtual_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from releasekit.ecosystems.interface import Target
    from releasekit.model import PackageId

CORE = package("core")
APP = package("app", "core")
CLI = package("cli", "app")
LONE = package("lone")
PUBLISHED, BLOCKED, FAILED = Outcome.PUBLISHED, Outcome.BLOCKED, Outcome.FAILED
THERE = {"core-1.0.pkg": "sha256:00"}


@dataclass
class Job:
    """One job of several: `others` publishes, at these seconds, what this one does not."""

    root: Path
    registry: FakeRegistry = field(default_factory=FakeRegistry)
    workspace: FakeWorkspace = field(default_factory=FakeWorkspace)
    staging: FakeStaging | None = None
    others: Mapping[str, float] = field(default_factory=dict)
    builds_on_published: bool = False
    events: list[Event] = field(default_factory=list)
    during: Callable[[ReleaseRun], None] = lambda release: None
    asked: list[tuple[str, float]] = field(default_factory=list)
    ended_s: float = 0.0

    @property
    def target(self) -> Target:
        return FakeTarget(
            self.workspace,
            self.registry,
            staging=self.staging,
            builds_on_published=self.builds_on_published,
        )

    def run(self, made: Plan, **changes: object) -> dict[str, Result]:
        return virtual_loop.run(lambda _: self._run(made, **changes))

    async def _run(self, made: Plan, **changes: object) -> dict[str, Result]:
        loop = asyncio.get_running_loop()
        settings = config(self.root, **{"wait": 600.0, **changes})
        make_state_directory(settings.state_directory)
        for name, at_s in self.others.items():
            _ = loop.call_later(at_s, self.registry.files.__setitem__, name, THERE)
        self.registry.on_lookup = lambda name: self.asked.append((name, loop.time()))
        placed = []
        for step in made.packages:
            manifest = self.root / f"{step.package.id.name}.toml"
            manifest.write_text("")
            placed.append(replace(step, package=replace(step.package, manifest=manifest)))
        made = replace(made, packages=tuple(placed))
        journal = Journal.open(settings.state_directory, run_id="run")
        release = ReleaseRun(
            made,
            {"fake": self.target},
            config=settings,
            journal=journal,
            watch=self.events.append,
            sources=Sources(made, None),
        )
        self.during(release)
        await release.run()
        journal.close()
        self.ended_s = loop.time()
        return {result.package.id.name: result for result in release.results()}

    def times(self, phase: str, state: str = "started") -> dict[str, float]:
        return {
            event.package.name: event.at_s
            for event in self.events
            if event.phase == phase and event.state == state
        }

    def said(self, state: str) -> list[str]:
        return [e.detail for e in self.events if e.phase == "wait" and e.state == state]


def part(*packages: Package, foreign: tuple[Package, ...] = (CORE,)) -> Plan:
    return replace(plan(*packages), foreign=foreign)


@pytest.fixture(name="job")
def _job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_it_builds_at_once_and_uploads_when_the_other_job_has_published(job: Job) -> None:
    """R1, R2: and nobody is asked more often because two wait."""
    job.others = {"core": 42.0}
    tool = package("tool", "core")
    results = job.run(part(APP, tool, LONE), concurrency=1)
    assert {each.outcome for each in results.values()} == {PUBLISHED}
    assert job.times("build", "ended") == {"app": 0, "tool": 0, "lone": 0}
    assert job.times("upload")["lone"] == 0
    assert 42.0 <= min(job.times("upload")["app"], job.times("upload")["tool"]) <= 52.0
    polls = [at_s for name, at_s in job.asked if name == "core"]
    assert polls == sorted(set(polls))
    assert polls[-1] >= 42.0
    assert len(polls) < 20


def test_it_says_whom_it_waits_for_and_for_how_long(job: Job) -> None:
    job.others = {"core": 42.0}
    job.run(part(APP))
    assert job.said("started") == [
        "another job publishes it; fake:app needs it; for up to 10 min 0 s"
    ]
    assert job.said("retrying") == []
    assert job.said("ended") == [""]


def test_every_change_is_one_line(job: Job) -> None:
    failures = [Transient("503"), Transient("503"), None]

    def broken(name: str) -> None:
        if name == "core" and failures and (failure := failures.pop(0)):
            raise failure

    job.others = {"core": 5.0}
    during = job._run

    async def run() -> dict[str, Result]:
        task = asyncio.ensure_future(during(part(APP)))
        await asyncio.sleep(0)
        job.registry.on_lookup = broken
        return await task

    virtual_loop.run(lambda _: run())
    assert job.said("retrying") == ["503", "it is not there yet"]


def test_when_the_time_is_over_what_needs_it_is_blocked(job: Job) -> None:
    """R6, R51: everything else goes on, and the next step is said."""
    results = job.run(part(APP, CLI, LONE), wait=60.0)
    assert {name: result.outcome for name, result in results.items()} == {
        "app": BLOCKED,
        "cli": BLOCKED,
        "lone": PUBLISHED,
    }
    assert results["app"].reason == (
        "needs fake:core, which is not on its registry after 1 min 0 s"
    )
    assert "raise `wait`" in results["app"].hint
    assert results["cli"].reason == "needs fake:app, which is blocked by fake:core"
    assert job.ended_s == 60.0


def test_the_time_begins_anew_when_something_appears(job: Job) -> None:
    """A job that is at work is not given up."""
    second = package("second")
    job.others = {"second": 50.0, "core": 100.0}
    made = part(APP, package("tool", "second"), foreign=(CORE, second))
    assert {r.outcome for r in job.run(made, wait=60.0).values()} == {PUBLISHED}


def test_a_registry_that_refuses_ends_the_waiting(job: Job) -> None:
    job.registry.deaf["core"] = Denied("401: no")
    job.registry.uploads.append("core")
    results = job.run(part(APP))
    assert (results["app"].outcome, job.ended_s) == (BLOCKED, 0.0)
    assert "401: no" in results["app"].reason


def test_what_needs_a_package_of_this_job_is_asked_for_once_that_is_there(job: Job) -> None:
    """R1: back and forth between two jobs."""
    middle = package("middle", "lone")
    job.others = {"middle": 30.0}
    job.registry.lag["lone"] = 5
    results = job.run(part(LONE, package("top", "middle"), foreign=(middle,)))
    assert {each.outcome for each in results.values()} == {PUBLISHED}
    first = min(at_s for name, at_s in job.asked if name == "middle")
    assert first >= job.times("confirm", "ended")["lone"] > 0


def test_what_needs_a_failed_package_of_this_job_is_not_waited_for(job: Job) -> None:
    """R6"""
    middle = package("middle", "tool")
    top = package("top", "middle")
    job.workspace.broken = ("lone",)
    made = part(LONE, package("tool", "lone"), top, foreign=(middle,))
    results = job.run(made)
    assert (results["lone"].outcome, results["top"].outcome) == (FAILED, BLOCKED)
    assert results["top"].reason == (
        "needs fake:middle, which is not going to be published, as it needs fake:lone"
    )
    assert job.ended_s == 0.0


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("needed", ["lone", "tool"])
def test_nobody_waits_for_ever_for_what_this_job_cannot_confirm(
    job: Job, needed: str, *, staged: bool
) -> None:
    """R51: what another job publishes may need it, or what is blocked because of it."""
    if staged:
        job.staging = FakeStaging(job.registry, mode="auto")
        job.registry.faults["lone"] = [StageOnly("only staged")]
    else:
        job.registry.lag["lone"] = 1_000_000
    job.during = lambda release: stops_at(release, 10_000.0)
    other = package("middle", needed)
    top = package("top", "middle")
    made = part(LONE, package("tool", "lone"), top, foreign=(other,))
    results = job.run(made, wait=60.0, task_timeout=30.0)
    doubtful = Outcome.STAGED if staged else Outcome.UNKNOWN
    assert results["lone"].outcome is doubtful
    assert job.ended_s <= 120.0


def test_what_is_staged_in_no_order_keeps_no_job_waiting(job: Job) -> None:
    """R3: the other job stages as well, and nothing shows before a person approves it."""
    job.staging = FakeStaging(job.registry)
    assert job.run(part(APP))["app"].outcome is Outcome.STAGED
    assert (job.ended_s, job.asked) == (0.0, [])


def test_a_run_that_is_stopped_waits_no_longer(job: Job) -> None:
    """R4: what waited is cancelled, not blocked."""
    job.during = lambda release: stops_at(release, 30.0)
    results = job.run(part(APP, LONE))
    assert results["app"].outcome is Outcome.CANCELLED
    assert results["lone"].outcome is PUBLISHED
    assert job.ended_s == 30.0


def stops_at(release: ReleaseRun, at_s: float) -> None:
    asyncio.get_running_loop().call_later(at_s, partial(release.stop, "stopped"))


def test_one_slot_does_not_keep_jobs_waiting_for_each_other(job: Job) -> None:
    """R42: what this one waits for first may wait for what it publishes last."""
    middle, late = package("middle", "zoo"), package("late")
    job.others = {"late": 5.0}
    zoo = package("zoo", "late")

    def answered(name: str) -> None:
        if name == "zoo" and "zoo" in job.registry.files:
            job.registry.files["middle"] = THERE

    job.during = lambda _: setattr(job.registry, "on_lookup", answered)
    made = part(package("top", "middle"), zoo, foreign=(late, middle))
    results = job.run(made, concurrency=1, build_concurrency=1)
    assert {each.outcome for each in results.values()} == {PUBLISHED}


def test_what_the_registry_has_to_show_first_is_waited_for_before_the_build(job: Job) -> None:
    edge = Dependency(on=CORE.id, visible_first=True)
    job.others = {"core": 42.0}
    results = job.run(part(replace(APP, dependencies=(edge,)), LONE))
    assert results["app"].outcome is PUBLISHED
    assert job.times("build")["app"] >= 42.0
    assert job.times("build")["lone"] == 0.0


def test_builds_on_what_is_published_wait_and_keep_nothing_else_back(job: Job) -> None:
    job.builds_on_published = job.workspace.batch = True
    job.others = {"core": 42.0}
    made = part(APP, CLI, LONE, package("tool", "lone"))
    results = job.run(made)
    assert {each.outcome for each in results.values()} == {PUBLISHED}
    assert job.times("build")["lone"] == job.times("build")["tool"] == 0.0
    assert 42.0 <= job.times("build")["app"] == job.times("build")["cli"]


def test_uploads_that_start_once_all_is_built_wait_for_no_build_that_needs_another_job(
    job: Job,
) -> None:
    """That job might wait for this one in the same way."""
    job.builds_on_published = True
    job.others = {"core": 42.0}
    results = job.run(part(APP, LONE), start_uploads="built")
    assert {each.outcome for each in results.values()} == {PUBLISHED}
    assert job.times("upload")["lone"] == 0.0
    assert job.times("build")["app"] >= 42.0


def test_a_batch_waits_for_nothing_but_what_its_packages_need(tmp_path: Path) -> None:
    """Two jobs whose packages need one another's, by turns, would else wait for ever."""
    other = package("other", "app")
    top = package("top", "other")
    target = FakeTarget(FakeWorkspace(batch=True), FakeRegistry(), builds_on_published=True)
    found = batches_of(part(APP, CLI, top, LONE, foreign=(CORE, other)), {"fake": target})
    assert [([p.name for p in b.packages], {p.name for p in b.absent}) for b in found] == [
        (["app", "cli"], {"core"}),
        (["top"], {"other"}),
        (["lone"], set()),
    ]


@pytest.mark.parametrize("in_turn", [False, True])
def test_where_batches_take_turns_each_comes_after_what_it_needs(*, in_turn: bool) -> None:
    """Also in a dry run, where no uploads say which of them is urgent."""
    target = FakeTarget(FakeWorkspace(), FakeRegistry(), builds_in_turn=in_turn)
    found = batches_of(plan(CORE, APP, LONE), {"fake": target})
    needs = {each.packages[0].name: {need.name for need in each.needs} for each in found}
    assert needs == {"core": set(), "app": {"core"} if in_turn else set(), "lone": set()}


def test_a_dry_run_waits_for_nobody(job: Job) -> None:
    results = job.run(part(APP), dry_run=True)
    assert (results["app"].outcome, job.ended_s) == (Outcome.WOULD_PUBLISH, 0.0)
    assert job.said("started") == []


def planned(root: Path, *packages: Package, **changes: object) -> Plan:
    placed = [replace(p, manifest=root / p.id.name, directory=root) for p in packages]
    for each in placed:
        each.manifest.write_text("")
    targets = {"fake": FakeTarget(FakeWorkspace(packages=placed), FakeRegistry())}
    settings = config(root, **changes)
    return asyncio.run(make_plan(settings, targets, History(), commit="c0ffee"))


def test_what_is_left_out_is_refused_or_waited_for(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="app needs core, which is left out") as caught:
        planned(tmp_path, APP, CORE, packages=("app",))
    assert "`wait`" in caught.value.hint
    made = planned(tmp_path, APP, CORE, packages=("app",), wait=1.0)
    assert [each.id for each in made.foreign] == [CORE.id]
    assert "waits for what other jobs publish: fake:core" in made.notes


@pytest.mark.parametrize("only", ["app", "core"])
def test_no_part_of_a_cycle_waits_for_the_others(tmp_path: Path, only: str) -> None:
    """One of them goes out first, and is of no use alone: nobody may send it for nothing."""
    ring = [
        replace(made, dependencies=(replace(made.dependencies[0], soft=True),))
        for made in (APP, package("core", "app"))
    ]
    first = planned(tmp_path, *ring).packages[0].package.id.name
    if only == first:
        with pytest.raises(PlanError, match=f"{only} needs .*, which is left out"):
            planned(tmp_path, *ring, packages=(only,), wait=1.0)
    else:
        assert planned(tmp_path, *ring, packages=(only,), wait=1.0).foreign


def test_nobody_waits_for_what_only_developers_need(tmp_path: Path) -> None:
    made = planned(
        tmp_path,
        package("app", "core", kind=DependencyKind.DEV),
        CORE,
        packages=("app",),
        wait=1.0,
    )
    assert made.foreign == ()


def results_of(outcomes: Mapping[PackageId, Outcome], commit: str = "c0ffee") -> str:
    results = tuple(
        Result(package=package(name.name), outcome=outcome, reason="it broke")
        for name, outcome in outcomes.items()
    )
    return report.results_json(
        Report(
            run_id="other",
            plan_digest="",
            commit=commit,
            started_at="2026-01-01T00:00:00+00:00",
            duration_s=1.0,
            results=results,
        )
    )


def test_what_another_job_has_ended_without_is_not_waited_for(job: Job, tmp_path: Path) -> None:
    place = tmp_path / "shared/row-1"
    place.mkdir(parents=True)

    def ends(_: ReleaseRun) -> None:
        text = results_of({CORE.id: FAILED})
        asyncio.get_running_loop().call_later(20.0, (place / "results.json").write_text, text)

    job.during = ends
    results = job.run(part(APP), results_directory=tmp_path / "shared")
    assert results["app"].outcome is BLOCKED
    assert results["app"].reason == ("needs fake:core, which failed in another job: it broke")
    assert 20.0 <= job.ended_s <= 45.0


def test_the_registry_knows_better_than_a_job_that_ended(job: Job, tmp_path: Path) -> None:
    """R16: "unknown" may well be there."""
    job.others = {"core": 20.0}

    def ends(_: ReleaseRun) -> None:
        text = results_of({CORE.id: Outcome.UNKNOWN})
        asyncio.get_running_loop().call_later(20.0, (tmp_path / "results.json").write_text, text)

    job.during = ends
    assert job.run(part(APP), results_directory=tmp_path)["app"].outcome is PUBLISHED


class Watching:
    """What a run makes of the results of others."""

    def __init__(self, root: Path) -> None:
        self.file = root / "row-1/results.json"
        self.file.parent.mkdir(exist_ok=True)
        self.root = root

    def asked(self, during: Callable[[OtherJobs], object], before: str = "") -> str:
        async def main() -> str:
            if before:
                self.file.write_text(before)
            others = OtherJobs(self.root, commit="c0ffee", own=self.root / "own")
            await others.ended_without(CORE.id)
            during(others)
            await asyncio.sleep(5.0)
            return await others.ended_without(CORE.id)

        return virtual_loop.run(lambda _: main())


def test_results_from_before_say_nothing(tmp_path: Path) -> None:
    """Their job may have been started again, as this one was."""
    watching, failed = Watching(tmp_path), results_of({CORE.id: FAILED})
    assert watching.asked(lambda _: None, failed) == ""

    def again(_: OtherJobs) -> None:
        watching.file.write_text(failed)
        os.utime(watching.file, ns=(1, 1))

    assert watching.asked(again, failed) == "failed in another job: it broke"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        results_of({CORE.id: FAILED}, commit="other"),
        results_of({CORE.id: PUBLISHED}),
        results_of({CORE.id: Outcome.STAGED}),
        results_of({LONE.id: FAILED}),
    ],
)
def test_results_that_are_of_no_use_say_nothing(tmp_path: Path, text: str) -> None:
    watching = Watching(tmp_path)
    assert watching.asked(lambda _: watching.file.write_text(text)) == ""


def test_a_job_that_begins_again_takes_back_what_it_said(tmp_path: Path) -> None:
    watching = Watching(tmp_path)

    async def main() -> list[str]:
        others = OtherJobs(tmp_path, commit="c0ffee", own=tmp_path / "own")
        said = []
        for step in (
            lambda: watching.file.write_text(results_of({CORE.id: FAILED})),
            watching.file.unlink,
        ):
            step()
            await asyncio.sleep(5.0)
            said.append(await others.ended_without(CORE.id))
        return said

    assert virtual_loop.run(lambda _: main()) == ["failed in another job: it broke", ""]


def test_a_directory_that_is_removed_meanwhile_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R16: nor do results from before count for new ones, because they were not seen at once."""
    watching = Watching(tmp_path)
    watching.file.write_text(results_of({CORE.id: FAILED}))

    def failing(self: Path, pattern: str) -> Iterator[Path]:
        raise FileNotFoundError(pattern)
        yield self

    async def main() -> list[str]:
        said = []
        for broken in ([True, False], [False, True, False]):
            others = None
            for each in broken:
                with monkeypatch.context() as patch:
                    if each:
                        patch.setattr(type(tmp_path), "glob", failing)
                    others = others or OtherJobs(tmp_path, commit="c0ffee", own=tmp_path / "own")
                    said.append(await others.ended_without(CORE.id))
                await asyncio.sleep(5.0)
        return said

    assert virtual_loop.run(lambda _: main()) == [""] * 5


def test_its_own_results_are_not_those_of_another_job(tmp_path: Path) -> None:
    watching = Watching(tmp_path)
    watching.file = tmp_path / "own/results.json"
    watching.file.parent.mkdir()
    text = results_of({CORE.id: FAILED})
    assert watching.asked(lambda _: watching.file.write_text(text)) == ""


def test_without_a_directory_nothing_is_known() -> None:
    others = OtherJobs(None, commit="", own=package("x").directory)
    assert virtual_loop.run(lambda _: others.ended_without(CORE.id)) == ""


def test_what_is_published_keeps_nobody_waiting(job: Job) -> None:
    kept = part(CORE, APP, foreign=())
    kept = replace(kept, packages=(replace(kept.packages[0], action=Action.KEEP), kept.packages[1]))
    assert job.run(kept)["app"].outcome is PUBLISHED
    assert package_id("core") not in {event.package for event in job.events if event.phase}


def test_what_other_jobs_wait_for_goes_first(job: Job, tmp_path: Path) -> None:
    """R9: the longest path may lead through them."""
    zoo = package("zoo")
    made = planned(
        tmp_path,
        *(APP, CORE, LONE, zoo, package("far", "zoo"), package("farther", "far")),
        packages=("core", "app", "lone", "zoo"),
        wait=1.0,
    )
    assert made.behind == {zoo.id: 2}
    job.run(replace(made, packages=plan(CORE, APP, LONE, zoo).packages), build_concurrency=1)
    assert job.registry.uploads[0] == "zoo"
