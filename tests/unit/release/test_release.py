"""The release line over a workspace and a registry in memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import virtual_time
from fakes import (
    FakeRegistry,
    FakeTarget,
    FakeWorkspace,
    artifact,
    config,
    package,
    package_id,
    plan,
    released,
)
from releasekit.aio import uncancellable
from releasekit.errors import CircuitOpen, Denied, Transient
from releasekit.fields import replace
from releasekit.model import (
    UNKNOWN,
    Action,
    Course,
    Dependency,
    DependencyKind,
    Event,
    Outcome,
    Package,
    Plan,
    Result,
)
from releasekit.release.polling import Polling
from releasekit.release.release import ReleaseRun
from releasekit.release.sources import Sources
from releasekit.scheduler.controls import CANCEL_GRACE_S
from releasekit.state.directory import make_state_directory
from releasekit.state.journal import HistoryEntry, Journal, read_history
from simulation.virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from releasekit.errors import BuildFailed
    from releasekit.model import Artifact, PackageId, PackageWarning

CORE = package("core")
APP = package("app", "core")
CLI = package("cli", "app")
LONE = package("lone")

LOST = Transient("the connection broke", ambiguous=True)
BUSY = Transient("503", retry_after=0.0)

UNDECIDED = Polling(ambiguity_window_s=0.0)


@dataclass
class Rereading(FakeWorkspace):
    """Looks at `shared` before and after each build."""

    shared: Path = Path()
    read: list[str] = field(default_factory=list)

    async def build(
        self, packages: Sequence[Package], into: Callable[[Package], Path]
    ) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        self.read.append(self.shared.read_text())
        built = await super().build(packages, into)
        self.read.append(self.shared.read_text())
        return built


class Tidying(FakeWorkspace):
    """Takes two minutes to remove what its builds have left, and then has nothing more to do."""

    async def build(
        self, packages: Sequence[Package], into: Callable[[Package], Path]
    ) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        built = await super().build(packages, into)
        await uncancellable(asyncio.sleep(120))
        return built


@dataclass
class Timed(FakeWorkspace):
    """Builds take so many seconds each; what is not named takes none."""

    lasts_s: Mapping[str, float] = field(default_factory=dict)

    async def build(
        self, packages: Sequence[Package], into: Callable[[Package], Path]
    ) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        await asyncio.sleep(sum(self.lasts_s.get(each.id.name, 0.0) for each in packages))
        return await super().build(packages, into)


@dataclass
class Line:
    """One run after another over the same state directory."""

    root: Path
    registry: FakeRegistry = field(default_factory=FakeRegistry)
    workspace: FakeWorkspace = field(default_factory=FakeWorkspace)
    events: list[Event] = field(default_factory=list)
    courses: list[Course] = field(default_factory=list)
    during: Callable[[ReleaseRun], None] = lambda release: None
    polling: Polling = field(default_factory=Polling)
    differing: Callable[[Package, Artifact], Awaitable[list[str]]] | None = None

    def run(self, made: Plan, **changes: object) -> dict[str, Result]:
        return virtual_time.run(self._run(made, **changes))

    def placed(self, made: Plan) -> Plan:
        """With manifests that are there."""
        steps = []
        for step in made.packages:
            manifest = self.root / f"{step.package.id.name}.toml"
            if not manifest.exists():
                manifest.write_text("")
            steps.append(replace(step, package=replace(step.package, manifest=manifest)))
        return replace(made, packages=tuple(steps))

    async def _run(self, made: Plan, **changes: object) -> dict[str, Result]:
        made = self.placed(made)
        settings = config(self.root, **changes)
        make_state_directory(settings.state_directory)
        journal = Journal.open(settings.state_directory, run_id="run")
        journal.run_started(
            plan_digest=made.digest, commit="", tool="", started_at="", ecosystems=["fake"]
        )
        release = ReleaseRun(
            made,
            {"fake": FakeTarget(self.workspace, self.registry, differing=self.differing)},
            config=settings,
            journal=journal,
            watch=self.events.append,
            sources=Sources(made, None),
            polling=self.polling,
            on_course=self.courses.append,
        )
        self.during(release)
        await release.run()
        journal.close()
        return {result.package.id.name: result for result in release.results()}

    def outcomes(self, *packages: Package, **changes: object) -> dict[str, Outcome]:
        return {n: r.outcome for n, r in self.run(plan(*packages), **changes).items()}


@pytest.fixture
def line(tmp_path: Path) -> Line:
    return Line(tmp_path)


def test_everything_is_published_in_order(line: Line) -> None:
    """R1"""
    assert set(line.outcomes(CORE, APP, CLI, LONE).values()) == {Outcome.PUBLISHED}
    assert sorted(line.registry.uploads) == ["app", "cli", "core", "lone"]
    uploads = [name for name in line.registry.uploads if name != "lone"]
    assert uploads == ["core", "app", "cli"]


def test_a_dependent_waits_until_its_dependency_is_visible(line: Line) -> None:
    """R1"""
    line.registry.lag["core"] = 3
    line.registry.on_upload = lambda name: seen.append((name, line.registry.lag.get("core", 0)))
    seen: list[tuple[str, int]] = []
    line.outcomes(CORE, APP)
    assert seen == [("core", 3), ("app", 0)]


def test_gate_accepted_does_not_wait_for_visibility(line: Line) -> None:
    """R1"""
    line.registry.lag["core"] = 10**9
    seen: list[str] = []

    def show_core_once_app_is_sent(name: str) -> None:
        seen.append(name)
        if name == "app":
            line.registry.lag["core"] = 0

    line.registry.on_upload = show_core_once_app_is_sent
    found = line.outcomes(CORE, APP, gate="accepted", task_timeout=60.0)
    assert found["core"] is Outcome.PUBLISHED
    assert seen == ["core", "app"]


def test_uploads_stay_within_their_limit(line: Line) -> None:
    """R2"""
    line.registry.together = asyncio.Barrier(3)
    line.outcomes(*(package(f"p{n}") for n in range(9)), concurrency=3)
    assert line.registry.peak == 3


def test_the_packages_of_a_batch_go_on_record_together(tmp_path: Path) -> None:
    """R1: a reactor, or all modules of a repository, wait for the disk once."""
    together = asyncio.Barrier(3)

    async def examine(_package: Package, _artifacts: Sequence[Artifact]) -> list[PackageWarning]:
        await together.wait()
        return []

    target = FakeTarget(FakeWorkspace(batch=True), FakeRegistry(), find_warnings=examine)
    results = released(tmp_path, target, plan(CORE, APP, CLI))
    assert {each.outcome for each in results.values()} == {Outcome.PUBLISHED}


def test_kept_packages_are_not_touched(line: Line) -> None:
    """R19"""
    results = line.run(plan(CORE, APP, actions={"core": Action.KEEP}))
    assert results["core"].outcome is Outcome.ALREADY_PUBLISHED
    assert results["core"].reason == "because"
    assert results["app"].outcome is Outcome.PUBLISHED
    assert line.registry.uploads == ["app"]


def test_a_failure_blocks_its_dependents_only(line: Line) -> None:
    """R6"""
    line.registry.faults["app"] = [Denied("403: not yours", hint="ask the owner")]
    results = line.run(plan(CORE, APP, CLI, LONE))
    assert {n: r.outcome for n, r in results.items()} == {
        "core": Outcome.PUBLISHED,
        "app": Outcome.FAILED,
        "cli": Outcome.BLOCKED,
        "lone": Outcome.PUBLISHED,
    }
    assert (results["app"].reason, results["app"].hint) == ("403: not yours", "ask the owner")
    assert results["cli"].reason == "needs fake:app, which failed"


def test_a_build_that_fails_shows_its_log(line: Line) -> None:
    line.workspace.broken = {"app"}
    results = line.run(plan(CORE, APP, CLI))
    assert results["app"].outcome is Outcome.FAILED
    assert results["app"].log == ("error: no",)
    assert results["cli"].outcome is Outcome.BLOCKED
    assert line.registry.uploads == ["core"]


@pytest.mark.parametrize("slow", ["core", "app"])
def test_an_own_failure_wins_over_a_blocked_one(line: Line, slow: str) -> None:
    """R5: app fails to build before or after its dependency fails, the outcome is the same."""
    line.workspace.broken, line.workspace.slow = {"app"}, {slow}
    line.registry.faults["core"] = [Denied("no")]
    found = line.outcomes(CORE, APP, CLI)
    assert found == {"core": Outcome.FAILED, "app": Outcome.FAILED, "cli": Outcome.BLOCKED}


@pytest.mark.parametrize("broken", [(), ("core",)])
def test_one_build_may_serve_many_packages(line: Line, broken: tuple[str, ...]) -> None:
    line.workspace.batch = True
    line.workspace.broken = broken
    found = line.outcomes(CORE, APP, LONE)
    assert found["lone"] is Outcome.PUBLISHED
    assert found["core"] is (Outcome.FAILED if broken else Outcome.PUBLISHED)
    assert found["app"] is (Outcome.BLOCKED if broken else Outcome.PUBLISHED)


def test_build_dependencies_are_built_first(line: Line) -> None:
    plugin = package("plugin", "zlib", kind=DependencyKind.BUILD)
    app = package("app", "plugin", kind=DependencyKind.BUILD)
    line.workspace.slow = {"zlib"}
    line.outcomes(package("zlib"), plugin, app, build_concurrency=4)
    assert line.workspace.built == ["zlib", "plugin", "app"]


def after_its_release(name: str, *needs: str) -> Package:
    """A package that can be built once what it needs is on the registry."""
    edges = (Dependency(on=package_id(need), visible_first=True) for need in needs)
    return replace(package(name), dependencies=tuple(edges))


@pytest.mark.parametrize("gate", ["visible", "accepted"])
def test_some_are_built_once_their_dependencies_are_visible(line: Line, gate: str) -> None:
    """R1"""
    line.registry.lag["core"] = 2
    found = line.outcomes(CORE, after_its_release("late", "core"), gate=gate)
    assert set(found.values()) == {Outcome.PUBLISHED}
    confirmed = [(e.package.name, e.phase, e.state) for e in line.events].index(
        ("core", "confirm", "ended")
    )
    assert ("late", "build") not in {(e.package.name, e.phase) for e in line.events[:confirmed]}


def test_what_cannot_be_built_before_a_failed_release_is_blocked(line: Line) -> None:
    """R6"""
    line.registry.faults["core"] = [Denied("no")]
    found = line.outcomes(CORE, LONE, after_its_release("late", "core"))
    assert found["late"] is Outcome.BLOCKED
    assert found["lone"] is Outcome.PUBLISHED
    assert "late" not in line.workspace.built


def test_a_dry_run_leaves_out_builds_that_need_a_release(line: Line) -> None:
    """And says so. What can be built is built, and what fails for another reason has failed."""
    line.workspace.premature = {"late"}
    line.workspace.broken = {"broken"}
    made = plan(
        CORE,
        LONE,
        after_its_release("ready", "lone"),
        after_its_release("late", "core", "lone"),
        after_its_release("broken", "lone"),
        actions={"core": Action.KEEP},
    )
    results = line.run(made, dry_run=True)
    assert sorted(line.workspace.built) == ["lone", "ready"]
    assert {name: each.outcome for name, each in results.items()} == {
        "core": Outcome.ALREADY_PUBLISHED,
        "lone": Outcome.WOULD_PUBLISH,
        "ready": Outcome.WOULD_PUBLISH,
        "late": Outcome.WOULD_PUBLISH,
        "broken": Outcome.FAILED,
    }
    assert results["ready"].reason == "built, and not uploaded: a dry run"
    unknown = replace(made, packages=(replace(made.packages[1], reason=UNKNOWN),))
    assert line.run(unknown, dry_run=True)["lone"].reason.endswith(f"a dry run; {UNKNOWN}")
    assert results["late"].reason == (
        "not built in a dry run, as it can be only once the registry has lone"
    )


def test_what_packages_share_is_pinned_by_one_build_at_a_time(line: Line, tmp_path: Path) -> None:
    """R22: the second one would find the pins of the first, and lose them in the middle."""
    shared = tmp_path / "shared.toml"
    shared.write_text("@one @two")
    packages = [replace(package(name), inherits=(shared,)) for name in ("one", "two")]
    workspace = Rereading(packages, slow={"one", "two"}, shared=shared)
    line.workspace = workspace
    line.outcomes(*packages)
    assert workspace.read == ["one==1.0 two==1.0"] * 4
    assert shared.read_text() == "@one @two"


def test_what_a_batch_shares_is_pinned_in_the_order_of_locks(line: Line, tmp_path: Path) -> None:
    """R22: `a-b` goes before `a/b` as a name, and behind it as a path."""
    (tmp_path / "a").mkdir()
    shared = (tmp_path / "a" / "b", tmp_path / "a-b")
    for path in shared:
        path.write_text("@one")
    line.workspace = FakeWorkspace([replace(package("one"), inherits=shared)])
    assert line.outcomes(*line.workspace.packages) == {"one": Outcome.PUBLISHED}


def test_a_passing_fault_is_tried_again(line: Line) -> None:
    """R12"""
    line.registry.faults["core"] = [BUSY, BUSY]
    result = line.run(plan(CORE))["core"]
    assert (result.outcome, result.attempts) == (Outcome.PUBLISHED, 3)
    assert [span.phase for span in result.spans] == [
        "build",
        "upload",
        "upload",
        "upload",
        "confirm",
    ]


def test_a_crowd_costs_no_attempt(line: Line) -> None:
    """R12: whoever was turned away because of others comes again, alone."""
    line.workspace.batch = True
    names = [f"p{number}" for number in range(5)]
    for name in names[1:]:
        line.registry.faults[name] = [Transient("cannot lock ref", contended=True)]
    results = line.run(plan(*map(package, names)), max_retries=0, concurrency=5)
    assert {each.outcome for each in results.values()} == {Outcome.PUBLISHED}
    line.registry.faults["core"] = [Transient("cannot lock ref", contended=True)] * 2
    assert line.outcomes(CORE, max_retries=0)["core"] is Outcome.FAILED


def test_the_watcher_hears_when_a_step_is_tried_again(line: Line) -> None:
    line.registry.faults["core"] = [BUSY]
    line.run(plan(CORE))
    (event,) = [event for event in line.events if event.state == "retrying"]
    assert (event.package.name, event.phase, event.attempt) == ("core", "upload", 1)
    assert event.detail == "503"


def test_passing_faults_without_end_are_a_failure(line: Line) -> None:
    line.registry.faults["core"] = [BUSY] * 9
    result = line.run(plan(CORE))["core"]
    assert (result.outcome, result.attempts) == (Outcome.FAILED, 3)
    assert result.reason == "503"


def test_waiting_for_a_registry_to_come_back_is_no_attempt(line: Line) -> None:
    """R16: nothing was asked of it meanwhile."""
    resting = CircuitOpen("it is down", retry_after=0.0)
    line.registry.faults["core"] = [BUSY, *[resting] * 9, BUSY]
    result = line.run(plan(CORE), max_retries=2)["core"]
    assert (result.outcome, result.attempts) == (Outcome.PUBLISHED, 3)
    line.registry.faults["app"] = [BUSY, resting, BUSY, resting, BUSY]
    result = line.run(plan(APP), max_retries=2)["app"]
    assert (result.outcome, result.attempts, result.reason) == (Outcome.FAILED, 3, "503")


def test_what_was_sent_before_a_registry_went_down_is_not_sent_again(line: Line) -> None:
    """R15: of a package of several files, some may be there by then."""
    line.registry.lost["core"] = CircuitOpen("it is down", retry_after=0.0)
    result = line.run(plan(CORE))["core"]
    assert (result.outcome, result.attempts) == (Outcome.ALREADY_PUBLISHED, 1)
    assert line.registry.uploads == ["core"]


@pytest.mark.parametrize(
    ("names", "words"), [(["a", "b", "c", "d"], "a, b, c and 1 more"), ([], "")]
)
def test_what_differs_in_other_bytes_is_named(line: Line, names: list[str], words: str) -> None:
    async def differing(_: Package, ours: Artifact) -> list[str]:
        assert ours.filename == "core-1.0.pkg"
        return names

    line.differing = differing
    line.registry.on_upload = lambda name: line.registry.files.update(
        {name: {"core-1.0.pkg": "sha256:00"}}
    )
    result = line.run(plan(CORE))["core"]
    assert result.outcome is Outcome.FAILED
    assert "the registry holds core-1.0.pkg with sha256:00" in result.reason
    assert result.reason.partition("They differ in ")[2] == words


def test_a_run_that_ends_waits_for_no_registry(line: Line) -> None:
    """R28"""
    line.registry.faults["core"] = [CircuitOpen("it is down", retry_after=3600.0)] * 2
    line.registry.on_upload = lambda _: release.stop("enough")
    release: ReleaseRun

    def during(made: ReleaseRun) -> None:
        nonlocal release
        release = made

    line.during = during
    assert line.run(plan(CORE))["core"].outcome is Outcome.FAILED


def test_a_lost_answer_is_not_an_error(line: Line) -> None:
    """R15, R16"""
    line.registry.lost["core"] = LOST
    result = line.run(plan(CORE, APP))["core"]
    assert result.outcome is Outcome.PUBLISHED
    assert line.registry.uploads == ["core", "app"]


def test_the_last_attempts_lost_answer_is_looked_up(line: Line) -> None:
    """R15, R16"""
    line.registry.lost["core"] = LOST
    results = line.run(plan(CORE, APP), max_retries=0)
    assert {r.outcome for r in results.values()} == {Outcome.PUBLISHED}


def test_an_upload_nobody_can_decide_is_unknown(line: Line) -> None:
    """R16"""
    line.polling = UNDECIDED
    line.registry.lost["core"] = LOST
    line.registry.deaf["core"] = Transient("the index does not answer")
    results = line.run(plan(CORE, APP), max_retries=0)
    assert results["core"].outcome is Outcome.UNKNOWN
    assert "the index does not answer" in results["core"].reason
    assert "the connection broke" in results["core"].reason
    assert "again" in results["core"].hint
    assert results["app"].outcome is Outcome.BLOCKED


@pytest.mark.parametrize(("begun", "outcome"), [(True, Outcome.UNKNOWN), (False, Outcome.FAILED)])
def test_what_an_earlier_run_began_is_not_failed_without_an_answer(
    line: Line, begun: bool, outcome: Outcome
) -> None:
    """R16: bytes of a run that was killed may have arrived."""
    line.polling = UNDECIDED
    line.registry.faults["core"] = [Denied("403: not yours")]
    line.registry.deaf["core"] = Transient("the index does not answer")
    made = plan(CORE)
    result = line.run(replace(made, packages=(replace(made.packages[0], begun=begun),)))["core"]
    assert result.outcome is outcome


def test_a_refused_upload_may_be_there_all_the_same(line: Line) -> None:
    """R16: a registry that stores, and answers 403; what it says is not lost."""
    line.registry.lost["core"] = Denied("403: the tag is not yours")
    results = line.run(plan(CORE, APP))
    assert {name: result.outcome for name, result in results.items()} == {
        "core": Outcome.PUBLISHED,
        "app": Outcome.PUBLISHED,
    }
    (warning,) = results["core"].warnings
    assert warning.name == "refused-but-there"
    assert "403: the tag is not yours" in warning.message
    assert results["app"].warnings == ()
    failed = [event.phase for event in line.events if event.state == "ended" and event.detail]
    assert failed == ["upload"]  # and nothing that follows


def test_what_is_missing_beside_the_files_is_made_by_another_attempt(line: Line) -> None:
    """R57"""
    line.registry.lacks["core"] = "no list names it"
    line.registry.lost["core"] = Transient("503")
    result = line.run(plan(CORE))["core"]
    assert (result.outcome, result.warnings) == (Outcome.PUBLISHED, ())
    assert line.registry.uploads == ["core", "core"]
    assert not line.registry.lacks


def test_what_stays_missing_beside_the_files_is_told(line: Line) -> None:
    """R57"""
    line.registry.lacks["core"] = "no list names it"
    line.registry.lost["core"] = Denied("403: the list is not yours")
    result = line.run(plan(CORE))["core"]
    assert result.outcome is Outcome.PUBLISHED
    (warning,) = result.warnings
    assert warning.message == "no list names it: 403: the list is not yours"


def test_a_refused_upload_may_be_somebody_elses(line: Line) -> None:
    """R17"""
    line.registry.faults["core"] = [Denied("403: cannot publish over 1.0")]
    line.registry.on_upload = lambda name: line.registry.files.update(
        core={"core-1.0.pkg": "sha256:beef"}
    )
    result = line.run(plan(CORE))["core"]
    assert result.outcome is Outcome.FAILED
    assert "sha256:beef" in result.reason


def test_a_lost_answer_is_remembered_by_later_attempts(line: Line) -> None:
    """R16"""
    line.polling = UNDECIDED
    line.registry.faults["core"] = [None, BUSY, BUSY]
    line.registry.lost["core"] = LOST
    line.registry.lag["core"] = 10_000
    result = line.run(plan(CORE))["core"]
    assert (result.outcome, result.attempts) == (Outcome.UNKNOWN, 3)


def test_an_end_is_on_record_only_when_it_is_final(line: Line) -> None:
    """R4: the last look of a run that is ending finds what had been given up."""
    line.polling = UNDECIDED
    line.registry.lost["core"] = LOST
    line.registry.lag["core"] = 2
    result = line.run(plan(CORE), max_retries=0, failure_policy="stop")["core"]
    entry = read_history(line.root / ".releasekit").entry(CORE)
    assert entry is not None
    assert (result.outcome, entry.outcome) == (Outcome.PUBLISHED, Outcome.PUBLISHED)


def test_gate_accepted_does_not_build_on_doubt(line: Line) -> None:
    """R16"""
    line.registry.faults["core"] = [LOST]
    found = line.outcomes(CORE, APP, max_retries=0, gate="accepted")
    assert found == {"core": Outcome.UNKNOWN, "app": Outcome.BLOCKED}


def test_other_bytes_end_the_package_without_another_attempt(line: Line) -> None:
    """R17"""
    line.registry.files["core"] = {"core-1.0.pkg": "sha256:beef"}
    result = line.run(plan(CORE))["core"]
    assert (result.outcome, result.attempts) == (Outcome.FAILED, 1)
    assert "sha256:beef" in result.reason


def test_a_partly_uploaded_version_is_completed(line: Line, tmp_path: Path) -> None:
    """R18, R21"""
    files = []
    for name in ("core-1.0.a", "core-1.0.b"):
        (tmp_path / name).write_bytes(name.encode())
        files.append(artifact(tmp_path / name, name.encode()))
    line.registry.store("core", files[:1])
    made = plan(CORE, actions={"core": Action.UPLOAD})
    step = replace(made.packages[0], artifacts=tuple(files))
    result = line.run(replace(made, packages=(step,)))["core"]
    assert result.outcome is Outcome.PUBLISHED
    assert line.workspace.built == []
    assert set(line.registry.files["core"]) == {"core-1.0.a", "core-1.0.b"}


def test_refused_packages_fail_with_the_plans_reason(line: Line) -> None:
    """R17, R20"""
    results = line.run(plan(CORE, APP, actions={"core": Action.REFUSE}))
    assert (results["core"].outcome, results["core"].reason) == (Outcome.FAILED, "because")
    assert results["app"].outcome is Outcome.BLOCKED
    assert line.registry.uploads == []


def test_a_dry_run_builds_and_uploads_nothing(line: Line) -> None:
    line.workspace.broken = {"app"}
    found = line.outcomes(CORE, APP, CLI, dry_run=True)
    assert found["core"] is Outcome.WOULD_PUBLISH
    assert found["app"] is Outcome.FAILED
    assert line.registry.uploads == []
    assert sorted(line.workspace.built) == ["cli", "core"]


def test_manifests_are_pinned_for_the_build_only(line: Line, tmp_path: Path) -> None:
    """R22"""
    manifest = tmp_path / "app.toml"
    manifest.write_bytes(b"needs @core\r\n")
    line.outcomes(CORE, APP)
    assert line.workspace.seen["app"] == "needs core==1.0\n"
    assert manifest.read_bytes() == b"needs @core\r\n"


def test_failure_policy_stop_takes_on_nothing_new(line: Line) -> None:
    names = [f"p{n}" for n in range(6)]
    line.registry.faults["p0"] = [Denied("no")]
    made = plan(*(package(name) for name in names))
    results = line.run(made, concurrency=1, build_concurrency=1, failure_policy="stop")
    assert results["p0"].outcome is Outcome.FAILED
    assert {results[name].outcome for name in names[1:]} == {Outcome.CANCELLED}
    assert "failure-policy" in results["p5"].reason


def test_a_stop_lets_uploads_in_flight_end(line: Line) -> None:
    """R28, R29"""
    releases: list[ReleaseRun] = []
    line.during = releases.append
    line.registry.on_upload = lambda name: releases[0].stop(
        "cancelled by SIGINT", grace_s=CANCEL_GRACE_S
    )
    results = line.run(plan(CORE, APP))
    assert results["core"].outcome is Outcome.PUBLISHED
    assert (results["app"].outcome, results["app"].reason) == (
        Outcome.CANCELLED,
        "cancelled by SIGINT; it is built, and the next run uploads it",
    )


def test_a_stop_without_a_limit_publishes_what_is_in_flight(line: Line) -> None:
    """R10, R41: uploaded, confirmed, and nothing after it."""
    releases: list[ReleaseRun] = []
    line.during = releases.append
    line.registry.lag = {"core": 10, "lone": 10}
    line.registry.on_upload = lambda name: releases[0].stop("cancelled by the key q")
    results = line.run(plan(CORE, APP, LONE), concurrency=1)
    (sent,) = line.registry.uploads
    assert results.pop(sent).outcome is Outcome.PUBLISHED
    assert {(result.outcome, result.reason) for result in results.values()} == {
        (Outcome.CANCELLED, "cancelled by the key q; it is built, and the next run uploads it")
    }


def test_a_stop_makes_a_failure_in_flight_the_last_one(line: Line) -> None:
    """R41"""
    releases: list[ReleaseRun] = []
    line.during = releases.append
    line.registry.faults["core"] = [BUSY]
    line.registry.on_upload = lambda name: releases[0].stop("cancelled by the key q")
    result = line.run(plan(CORE))["core"]
    assert (result.outcome, result.reason, result.attempts) == (Outcome.FAILED, "503", 1)


def test_what_backs_off_when_the_run_is_stopped_never_starts_again(line: Line) -> None:
    """R41"""
    releases: list[ReleaseRun] = []
    line.during = releases.append

    def trouble(name: str) -> None:
        if len(line.registry.uploads) == 1:
            line.registry.faults[name] = [Transient("503", retry_after=3600.0)]
        else:
            releases[0].stop("cancelled by the key q")

    line.registry.on_upload = trouble
    results = line.run(plan(CORE, LONE), concurrency=1)
    first, second = line.registry.uploads
    assert (results[first].outcome, results[first].attempts) == (Outcome.CANCELLED, 1)
    assert results[second].outcome is Outcome.PUBLISHED


def test_a_run_that_is_cancelled_from_outside_says_so(line: Line) -> None:
    """R29"""
    line.workspace.hang = True
    releases: list[ReleaseRun] = []

    def cancel_soon(release: ReleaseRun) -> None:
        releases.append(release)
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)

    line.during = cancel_soon
    with pytest.raises(asyncio.CancelledError):
        line.run(plan(CORE))
    (result,) = releases[0].results()
    assert (result.outcome, result.reason) == (Outcome.CANCELLED, "cancelled by the caller")


@pytest.mark.parametrize("builds", [1, 2])
@pytest.mark.parametrize("uploads", [1, 5])
def test_what_can_still_go_out_is_built_before_what_is_blocked(
    line: Line, builds: int, uploads: int
) -> None:
    """R9: a blocked package is built all the same, for the next run, but keeps nobody waiting."""
    blocked = [package(f"a{at}", "bad") for at in range(4)]
    free = [package(f"z{at}") for at in range(4)]
    lasts_s = {each.id.name: 10.0 for each in (*blocked, *free)} | {"bad": 1.0}
    line.workspace = Timed(broken={"bad"}, lasts_s=lasts_s)
    results = line.run(
        plan(package("bad"), *blocked, *free), build_concurrency=builds, concurrency=uploads
    )
    assert {results[each.id.name].outcome for each in free} == {Outcome.PUBLISHED}
    assert {results[each.id.name].outcome for each in blocked} == {Outcome.BLOCKED}
    assert all(results[each.id.name].artifacts for each in blocked)
    out_s = max(e.at_s for e in line.events if e.package.name[0] == "z" and e.state == "settled")
    # One of the blocked has begun beside `bad`, where there is a second slot.
    assert out_s == pytest.approx({1: 41.0, 2: 30.0}[builds], abs=0.1)


@pytest.mark.parametrize("turn", range(2))
def test_one_slot_in_every_lane_is_one_thing_at_a_time_in_plan_order(line: Line, turn: int) -> None:
    """R13, R42: each package with all its phases; a retry comes before anything else."""
    leaf, long = package("a-leaf"), [package("b"), package("c", "b"), package("d", "c")]
    line.registry.lag["b"] = 2
    line.registry.faults["c"] = [Transient("503", retry_after=0.02)]
    results = line.run(plan(leaf, *long), concurrency=1, build_concurrency=1)
    assert {result.outcome for result in results.values()} == {Outcome.PUBLISHED}
    seen = [event for event in line.events if event.state in {"started", "ended"}]
    once = [(e.package.name, e.phase) for e in seen]
    assert once[::2] == once[1::2]  # nothing starts before the last thing has ended
    phases = ("build", "upload", "confirm")
    expected = [(name, phase) for name in ("a-leaf", "b", "c", "d") for phase in phases]
    expected.insert(expected.index(("c", "upload")), ("c", "upload"))
    assert once[::2] == expected


def test_a_stop_at_once_leaves_the_upload_unknown(line: Line) -> None:
    """R16, R28"""
    releases: list[ReleaseRun] = []
    line.during = releases.append
    line.registry.hang = {"core"}
    line.registry.on_upload = lambda name: releases[0].stop("SIGTERM", grace_s=0.0)
    results = line.run(plan(CORE, APP))
    assert results["core"].outcome is Outcome.UNKNOWN
    assert "interrupted" in results["core"].reason


def test_an_upload_without_an_answer_times_out(line: Line) -> None:
    """R15"""
    line.registry.hang = {"core"}
    result = line.run(plan(CORE), max_retries=0, task_timeout=60.0)["core"]
    assert result.outcome is Outcome.UNKNOWN
    assert "within 60 s" in result.reason


def test_a_build_without_an_end_times_out(line: Line) -> None:
    line.workspace.hang = True
    result = line.run(plan(CORE), task_timeout=60.0)["core"]
    assert result.outcome is Outcome.FAILED
    assert "task-timeout" in result.hint


def test_a_build_that_ends_too_late_cancels_nothing_else(line: Line) -> None:
    """R6: its time was over while it could not be interrupted."""
    line.workspace = Tidying()
    results = line.run(plan(CORE, LONE, APP), task_timeout=60.0)
    assert results["core"].reason == "the build did not end within 60 s"
    assert {each.outcome for each in results.values()} == {Outcome.FAILED}


def test_the_deadline_ends_the_run(line: Line) -> None:
    line.workspace.hang = True
    results = line.run(plan(CORE, APP), deadline=60.0)
    assert {r.outcome for r in results.values()} == {Outcome.CANCELLED}
    assert "the deadline of 60 s passed" in results["core"].reason


@pytest.mark.parametrize(
    ("settings", "limit"),
    [({}, "`max-wait` is 1 h"), ({"max_wait": 1e10, "deadline": 900.0}, "the `deadline`")],
)
def test_a_registry_that_asks_for_too_long_a_pause_is_not_waited_for(
    line: Line, settings: dict[str, float], limit: str
) -> None:
    """R51, R6"""
    line.registry.faults["core"] = [Transient("HTTP 429", retry_after=1e9)] * 9
    results = line.run(plan(CORE, APP, LONE), **settings)
    assert results["core"].outcome is Outcome.FAILED
    assert "HTTP 429; come back in 277777 h" in results["core"].reason
    assert limit in results["core"].reason
    assert "Run the same command again then, or raise `" in results["core"].hint
    assert results["app"].outcome is Outcome.BLOCKED
    assert results["lone"].outcome is Outcome.PUBLISHED


@pytest.mark.parametrize("looks", range(6))
def test_a_failure_is_judged_once(line: Line, monkeypatch: pytest.MonkeyPatch, looks: int) -> None:
    """R4: whoever keeps the error and whoever starts another attempt agree, even if the clock moves
    whenever it is looked at, and a few looks later the pause is too long.
    """
    step_s = 0.0

    def look(loop: VirtualLoop) -> float:
        loop._jumps.now_s += step_s
        return loop._jumps.now_s

    def moving(name: str) -> None:
        nonlocal step_s
        if not step_s:
            step_s = 1.0
            left_s = 900.0 - virtual_time.now() - looks + 0.5
            line.registry.faults[name] = [Transient("HTTP 429", retry_after=left_s)]

    monkeypatch.setattr(VirtualLoop, "time", look)
    line.registry.on_upload = moving
    result = line.run(plan(CORE), deadline=900.0)["core"]
    waited = any(event.state == "retrying" for event in line.events)
    assert waited is not ("HTTP 429; come back in" in result.reason)


def test_every_package_is_settled_once_for_the_watcher(line: Line) -> None:
    """R4"""
    line.registry.faults["app"] = [BUSY, Denied("no")]
    line.run(plan(CORE, APP, CLI, LONE, actions={"lone": Action.KEEP}))
    settled = [event.package.name for event in line.events if event.state == "settled"]
    assert sorted(settled) == ["app", "cli", "core", "lone"]


def test_intent_and_bytes_are_journalled_before_the_upload(line: Line) -> None:
    """R14"""
    remembered: list[HistoryEntry | None] = []
    line.registry.on_upload = lambda name: remembered.append(
        read_history(line.root / ".releasekit").entry(CORE)
    )
    line.outcomes(CORE)
    (entry,) = remembered
    assert entry is not None
    assert entry.intent is not None
    assert entry.intent.digests == {a.filename: a.sha256 for a in entry.artifacts} != {}


def test_a_second_run_sends_the_first_ones_bytes(line: Line) -> None:
    """R18: builds are not reproducible here, so a rebuild would be seen."""
    line.registry.faults["core"] = [Denied("not yet")]
    first = line.run(plan(CORE))["core"]
    made = plan(CORE, actions={"core": Action.UPLOAD})
    step = replace(made.packages[0], artifacts=first.artifacts)
    line.run(replace(made, packages=(step,)))
    assert line.registry.files["core"] == {"core-1.0.pkg": f"sha256:{first.artifacts[0].sha256}"}


def test_sources_that_changed_since_the_plan_are_not_sent(tmp_path: Path) -> None:
    """R45: the package fails with the file, its dependents are blocked, the others go out."""
    line = Line(tmp_path, workspace=FakeWorkspace(touching={"app": tmp_path / "app.toml"}))
    results = line.run(plan(CORE, APP, CLI, LONE))
    assert {name: result.outcome for name, result in results.items()} == {
        "core": Outcome.PUBLISHED,
        "app": Outcome.FAILED,
        "cli": Outcome.BLOCKED,
        "lone": Outcome.PUBLISHED,
    }
    assert sorted(line.registry.uploads) == ["core", "lone"]
    assert results["app"].reason == (
        f"{tmp_path}/app.toml is not what it was when it was planned; nothing of it was sent"
    )
    assert "plans anew" in results["app"].hint
    [(_, entry)] = [
        item
        for item in read_history(tmp_path / ".releasekit").entries.items()
        if item[0][0].name == "app"
    ]
    assert entry.intent is None


def test_sources_are_not_looked_at_again_once_something_was_sent(tmp_path: Path) -> None:
    """R45, R18: another attempt completes what the first one began."""
    line = Line(tmp_path)
    line.registry.faults["core"] = [Transient("503")]
    line.registry.on_upload = lambda name: _change(tmp_path / "core.toml")
    assert line.outcomes(CORE, max_retries=1) == {"core": Outcome.PUBLISHED}
    assert line.registry.uploads == ["core", "core"]


def _change(path: Path) -> None:
    path.write_text("changed")


@pytest.mark.parametrize("arrived", [True, False])
def test_changed_sources_of_what_has_arrived_meanwhile_are_no_failure(
    tmp_path: Path, arrived: bool
) -> None:
    """R16, R45: an earlier run had begun to send it."""
    line = Line(tmp_path)
    line.registry.faults["core"] = [Transient("503")]
    assert line.outcomes(CORE, max_retries=0) == {"core": Outcome.FAILED}
    stored = read_history(tmp_path / ".releasekit").entries[CORE.id, CORE.version].artifacts
    [step] = plan(CORE, actions={"core": Action.UPLOAD}).packages
    made = replace(plan(CORE), packages=(replace(step, artifacts=tuple(stored), begun=True),))

    def late(release: ReleaseRun) -> None:
        (tmp_path / "core.toml").unlink()
        if arrived:
            line.registry.store("core", stored)

    line.during = late
    line.registry.uploads.clear()
    (result,) = line.run(made).values()
    assert result.outcome is (Outcome.ALREADY_PUBLISHED if arrived else Outcome.FAILED)
    assert line.registry.uploads == []


def test_a_pause_its_end_and_each_stricter_end_of_the_run_are_told(line: Line) -> None:
    """R10: once each, and what would make it milder again is not."""

    def turn(name: str) -> None:
        (release,) = releases
        release.resume()  # it is not paused
        release.pause()
        release.pause()
        release.resume()
        release.stop("core failed")
        release.pause()  # would keep it from ending
        release.resume()
        release.stop("cancelled by SIGINT", grace_s=60.0)
        release.stop("app failed")
        release.stop("the deadline passed", grace_s=3_600.0)
        release.stop("cancelled by SIGTERM", grace_s=0.0)

    releases: list[ReleaseRun] = []
    line.during = releases.append
    line.registry.on_upload = turn
    line.outcomes(CORE, APP)
    assert [(each.name, each.reason) for each in line.courses] == [
        ("paused", ""),
        ("running", ""),
        ("cancelling", "core failed"),
        ("cancelling", "cancelled by SIGINT"),
        ("cancelling", "cancelled by SIGTERM"),
    ]
    mild, strict, strictest = (each.until_s for each in line.courses[2:])
    assert mild is None
    assert strict is not None
    assert strictest is not None
    assert strict - line.courses[3].at_s == pytest.approx(60.0)
    assert strictest == line.courses[4].at_s


def test_a_failure_that_ends_the_run_is_told_as_such(line: Line) -> None:
    """R10"""
    line.registry.faults["core"] = [Denied("no")]
    line.outcomes(CORE, LONE, failure_policy="stop", concurrency=1)
    (course,) = line.courses
    assert course.name == "cancelling"
    assert "core failed, and `failure-policy` is `stop`" in course.reason
