"""Packages that wait for a person, over registries in memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import virtual_time
from fakes import (
    SEAL,
    FakeRegistry,
    FakeStaging,
    FakeTarget,
    FakeWorkspace,
    artifact,
    config,
    package,
    package_id,
    plan,
    where_staged,
)
from releasekit.errors import (
    BuildFailed,
    Denied,
    DigestMismatch,
    Rejected,
    StageOnly,
    Transient,
    Undecided,
)
from releasekit.fields import replace
from releasekit.model import (
    Action,
    Dependency,
    Node,
    Outcome,
    Package,
    PackageId,
    Plan,
    Result,
    Staged,
)
from releasekit.problems import Problem
from releasekit.release.package_run import PackageRun, outcome_of, results_of
from releasekit.release.polling import POLLING, Lookups, Polling
from releasekit.release.release import ReleaseRun
from releasekit.release.sources import Sources
from releasekit.report.view import awaiting_approval
from releasekit.state.directory import make_state_directory
from releasekit.state.journal import HistoryEntry, Journal, read_history
from releasekit.text.commands import spell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.values import StageMode
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Artifact

PUBLISHED, STAGED, BLOCKED = Outcome.PUBLISHED, Outcome.STAGED, Outcome.BLOCKED
FAILED = Outcome.FAILED
CORE = package("core")
APP = package("app", "core")
CLI = package("cli", "app")
ALL = (CORE, APP, CLI)
ONLY = StageOnly("this identity may only stage")
LOST = Transient("the connection broke", ambiguous=True)
WAIT_S = 600.0


def elsewhere(name: str, *needs: PackageId, visible_first: bool = False) -> Package:
    return replace(
        package(name),
        id=PackageId("other", name),
        dependencies=tuple(Dependency(on=on, visible_first=visible_first) for on in needs),
    )


class Bench:
    """An ecosystem that stages, one that does not, and the runs over them."""

    def __init__(self, root: Path, mode: StageMode = "always") -> None:
        self.root = root
        self.registry = FakeRegistry()
        self.staging = FakeStaging(self.registry, mode)
        self.workspace = FakeWorkspace()
        self.other = FakeRegistry("https://other.example/")
        self.others = FakeWorkspace()
        self.deployed = False
        self.follow_up: _FollowUp | None = None
        self.attempts = 0

    @property
    def targets(self) -> dict[str, Target]:
        deployment = _Together() if self.deployed else None
        fake = FakeTarget(
            self.workspace,
            self.registry,
            deployment=deployment,
            staging=self.staging,
            due=self.follow_up and self.follow_up.due,
            follow_up=self.follow_up and self.follow_up.follow_up,
        )
        return {"fake": fake, "other": FakeTarget(self.others, self.other)}

    def entry(self, of: Package = CORE) -> HistoryEntry:
        entry = read_history(self.root / ".releasekit", seal=SEAL).entry(of)
        assert entry is not None
        return entry

    def run(
        self,
        *packages: Package,
        made: Plan | None = None,
        during: Callable[[ReleaseRun], None] = lambda release: None,
        **changes: object,
    ) -> dict[str, Result]:
        return virtual_time.run(self.release(made or plan(*packages), during, **changes))

    async def release(
        self, made: Plan, during: Callable[[ReleaseRun], None], **changes: object
    ) -> dict[str, Result]:
        placed = self._placed(made)
        settings = config(self.root, **changes)
        make_state_directory(settings.state_directory)
        self.attempts += 1
        journal = Journal.open(settings.state_directory, run_id=f"run{self.attempts}", seal=SEAL)
        journal.run_started(
            plan_digest="", commit="c0ffee", tool="", started_at="", ecosystems=["fake", "other"]
        )
        release = ReleaseRun(
            placed,
            self.targets,
            config=settings,
            journal=journal,
            watch=lambda _: None,
            sources=Sources(placed, None),
            polling=Polling(),
        )
        during(release)
        await release.run()
        journal.close()
        return {result.package.id.name: result for result in release.results()}

    def _placed(self, made: Plan) -> Plan:
        steps, versions = [], {"fake": {}, "other": {}}  # type: ignore[var-annotated]
        for step in made.packages:
            manifest = self.root / f"{step.package.id.name}.toml"
            manifest.write_text("")
            steps.append(replace(step, package=replace(step.package, manifest=manifest)))
            versions[step.package.id.ecosystem][step.package.id.name] = step.package.version
        return replace(made, packages=tuple(steps), versions=versions)


class _FollowUp:
    def __init__(self, *, broken: bool) -> None:
        self.broken = broken
        self.done: list[str] = []

    def due(self, package: Package) -> str:
        return f"postpublish of {package.id}"

    async def follow_up(self, package: Package) -> None:
        self.done.append(package.id.name)
        if self.broken:
            raise BuildFailed("exit status 1")


class _Together:
    whole = True

    async def deploy(self, release: Mapping[Package, Sequence[Artifact]]) -> None:
        raise AssertionError(f"published: {release}")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def auto(tmp_path: Path) -> Bench:
    return Bench(tmp_path, "auto")


def outcomes(results: Mapping[str, Result]) -> dict[str, Outcome]:
    return {name: result.outcome for name, result in results.items()}


def awaited(*packages: Package, built: Mapping[str, tuple[Artifact, ...]]) -> Plan:
    made = plan(*packages, actions=dict.fromkeys(built, Action.AWAIT))
    steps = [
        replace(step, artifacts=built[name], staged=where_staged(name), reason="staged before")
        if (name := step.package.id.name) in built
        else step
        for step in made.packages
    ]
    return replace(made, packages=tuple(steps))


def test_all_are_staged_in_no_order(bench: Bench) -> None:
    """R4: each of them waits for the two others here."""
    bench.staging.together = asyncio.Barrier(3)
    results = bench.run(*ALL, max_retries=0, task_timeout=20.0)
    assert outcomes(results) == dict.fromkeys(("core", "app", "cli"), STAGED)
    assert bench.registry.uploads == []
    assert results["app"].reason == "accepted; it waits for a person's approval"
    assert results["app"].staged == where_staged("app")
    assert results["app"].hint == ""
    assert bench.entry(APP).staged == where_staged("app")
    assert not bench.entry(APP).uncertain


def test_an_intent_precedes_staging(bench: Bench) -> None:
    """R14"""

    def look(name: str) -> None:
        seen.append((bench.entry().uncertain, bench.entry().intent))

    seen: list[tuple[bool, object]] = []
    bench.staging.on_stage = look
    bench.run(CORE)
    ((uncertain, intent),) = seen
    assert uncertain
    assert intent == bench.entry().intent is not None


def test_whoever_may_only_stage_stages_and_so_do_the_dependents(auto: Bench) -> None:
    """R2: what needs something that waits is never published before it."""
    auto.registry.faults["core"] = [ONLY]
    results = auto.run(*ALL, package("lone"))
    assert outcomes(results) == {
        "core": STAGED, "app": STAGED, "cli": STAGED, "lone": PUBLISHED,
    }  # fmt: skip
    assert sorted(auto.registry.uploads) == ["core", "lone"]
    assert results["core"].reason == (
        "accepted; it waits for a person's approval; this identity may only stage"
    )
    assert results["app"].reason == "accepted; it waits for a person's approval"


def test_the_registrys_words_name_the_package_once(auto: Bench) -> None:
    auto.registry.faults["core"] = [StageOnly(f"{CORE}: HTTP 403 you may only stage")]
    reason = auto.run(CORE)["core"].reason
    assert reason == "accepted; it waits for a person's approval; HTTP 403 you may only stage"


def test_what_nobody_here_can_compare_says_who_does(bench: Bench) -> None:
    """R17: of what a registry calls staged already, and shows to its maintainers only."""
    bench.staging.nameless = True
    first = bench.run(CORE)["core"].reason
    assert first.startswith("accepted; it waits for a person's approval; ")
    assert "compares it" in first
    later = bench.run(made=_with_nameless(awaited(CORE, built={"core": ()})))["core"].reason
    assert later.startswith("staged before; ")
    assert "compares it" in later


def _with_nameless(made: Plan) -> Plan:
    (step,) = made.packages
    return replace(made, packages=(replace(step, staged=Staged()),))


def test_what_may_be_published_is_published(auto: Bench) -> None:
    assert set(outcomes(auto.run(*ALL)).values()) == {PUBLISHED}
    assert auto.staging.calls == []


def test_where_nothing_may_be_staged_that_is_a_failure(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "never")
    bench.registry.faults["core"] = [ONLY]
    results = bench.run(*ALL)
    assert outcomes(results) == {"core": FAILED, "app": BLOCKED, "cli": BLOCKED}
    assert results["core"].reason == "this identity may only stage"
    assert bench.staging.calls == []


@pytest.mark.parametrize("error", [Denied("403"), Rejected("400"), ONLY])
def test_what_is_refused_on_the_stage_is_not_published(auto: Bench, error: Exception) -> None:
    auto.registry.faults["core"] = [ONLY]
    auto.staging.faults["core"] = [error]
    results = auto.run(CORE, APP)
    assert outcomes(results) == {"core": FAILED, "app": BLOCKED}
    assert auto.registry.uploads == ["core"]


def test_another_attempt_stages_again_and_does_not_publish(auto: Bench) -> None:
    """R12, R16"""
    auto.registry.faults["core"] = [ONLY]
    auto.staging.lost["core"] = LOST
    assert outcomes(auto.run(CORE)) == {"core": STAGED}
    assert auto.staging.calls == [["core"], ["core"]]
    assert auto.registry.uploads == ["core"]


def test_a_lost_answer_without_another_attempt_is_unknown(bench: Bench) -> None:
    """R16"""
    bench.staging.lost["core"] = LOST
    assert outcomes(bench.run(CORE, max_retries=0)) == {"core": Outcome.UNKNOWN}
    assert bench.entry().uncertain


def test_other_bytes_on_the_stage_are_a_failure(auto: Bench, tmp_path: Path) -> None:
    auto.registry.faults["core"] = [ONLY]
    auto.staging.waiting["core"] = (artifact(tmp_path / "core-1.0.pkg", b"forged"),)
    results = auto.run(CORE, APP)
    assert outcomes(results) == {"core": FAILED, "app": BLOCKED}
    assert results["core"].reason == "core is staged with other bytes"


def test_what_cannot_wait_beside_it_is_blocked(bench: Bench) -> None:
    """R2, R4"""
    results = bench.run(
        CORE, elsewhere("tool", CORE.id), elsewhere("gui", PackageId("other", "tool"))
    )
    assert outcomes(results) == {"core": STAGED, "tool": BLOCKED, "gui": BLOCKED}
    assert results["tool"].reason == "needs fake:core, which is staged"
    assert results["gui"].reason == "needs other:tool, which is blocked by fake:core"
    for name in ("tool", "gui"):
        assert results[name].hint == (
            f"Approve what is staged, with {spell('approve')}, then run the same command again."
        )
    assert bench.other.uploads == []


@pytest.mark.parametrize("gate", ["visible", "accepted"])
def test_accepted_is_not_enough_where_it_waits(bench: Bench, gate: str) -> None:
    results = bench.run(CORE, elsewhere("tool", CORE.id), gate=gate)
    assert outcomes(results) == {"core": STAGED, "tool": BLOCKED}


def test_what_also_needs_what_failed_is_blocked_by_that(bench: Bench) -> None:
    bench.others.broken = ["bad"]
    results = bench.run(
        CORE, elsewhere("bad"), elsewhere("tool", CORE.id, PackageId("other", "bad"))
    )
    assert outcomes(results) == {"core": STAGED, "bad": FAILED, "tool": BLOCKED}
    assert results["tool"].hint == "Fix what it needs, then run the same command again."


def test_what_failed_by_itself_is_not_told_as_waiting(bench: Bench) -> None:
    """R4: nor does a run in which a build failed end as one that was only staged."""
    bench.others.broken = ["gui"]
    results = bench.run(
        CORE,
        elsewhere("tool", CORE.id),
        elsewhere("gui", PackageId("other", "tool")),
        elsewhere("bin", PackageId("other", "gui")),
    )
    assert outcomes(results) == {"core": STAGED, "tool": BLOCKED, "gui": FAILED, "bin": BLOCKED}
    assert results["bin"].hint == "Fix what it needs, then run the same command again."


def test_what_the_registry_has_to_show_first_is_not_even_built(bench: Bench) -> None:
    results = bench.run(CORE, elsewhere("tool", CORE.id, visible_first=True))
    assert outcomes(results) == {"core": STAGED, "tool": BLOCKED}
    assert bench.others.built == []


def test_a_failure_does_not_keep_others_from_being_staged(bench: Bench) -> None:
    bench.workspace.broken = ["core"]
    assert outcomes(bench.run(CORE, APP)) == {"core": FAILED, "app": STAGED}


class Approvals:
    """A maintainer who approves what waits, once the public registry was asked `number` times."""

    def __init__(self, bench: Bench, number: int, *names: str) -> None:
        self.bench, self.number, self.names, self.asked = bench, number, names, 0
        bench.registry.on_lookup = self

    def __call__(self, name: str) -> None:
        self.asked += 1
        waiting = self.bench.staging.waiting
        if self.asked >= self.number and waiting.keys() >= set(self.names):
            for each in self.names:
                self.bench.staging.approve(each)


@pytest.mark.parametrize("mode", ["auto", "always"])
@pytest.mark.parametrize("limit", [1, 3])
def test_whoever_waits_for_the_approval_goes_on_with_the_rest(
    tmp_path: Path, mode: StageMode, limit: int
) -> None:
    """R42: all is staged before anybody is waited for, with one slot for everything, too."""
    bench = Bench(tmp_path, mode)
    bench.registry.faults["core"] = [ONLY]
    approvals = Approvals(bench, 3, "core", "app")
    results = bench.run(
        CORE,
        elsewhere("tool", CORE.id),
        APP,
        concurrency=limit,
        build_concurrency=limit,
        wait_for_approval=WAIT_S,
    )
    assert approvals.asked >= 3
    assert outcomes(results) == dict.fromkeys(("core", "tool", "app"), PUBLISHED)
    assert results["app"].reason == "approved, and the registry shows our bytes"
    assert results["app"].staged is None
    assert sorted(bench.staging.calls) == [["app"], ["core"]]
    assert bench.other.uploads == ["tool"]
    assert bench.entry().staged is None
    assert bench.entry().outcome is PUBLISHED


@pytest.mark.parametrize("broken", [False, True])
def test_what_follows_publishing_follows_the_approval(bench: Bench, broken: bool) -> None:
    bench.follow_up = _FollowUp(broken=broken)
    Approvals(bench, 2, "core")
    result = bench.run(CORE, wait_for_approval=WAIT_S)["core"]
    assert result.outcome is PUBLISHED
    assert bool(result.hint) is broken
    assert bench.follow_up.done == ["core"]


def test_what_follows_publishing_does_not_follow_staging(bench: Bench) -> None:
    bench.follow_up = _FollowUp(broken=False)
    assert outcomes(bench.run(CORE)) == {"core": STAGED}
    assert bench.follow_up.done == []


def test_nobody_waits_for_the_approval_of_what_is_published(auto: Bench) -> None:
    results = auto.run(CORE, elsewhere("tool", CORE.id), wait_for_approval=WAIT_S)
    assert outcomes(results) == {"core": PUBLISHED, "tool": PUBLISHED}
    assert "approval" not in {span.phase for span in results["core"].spans}


def test_nobody_waits_longer_than_asked_for(bench: Bench) -> None:
    """R51"""
    results = bench.run(CORE, elsewhere("tool", CORE.id), wait_for_approval=0.001)
    assert outcomes(results) == {"core": STAGED, "tool": BLOCKED}


def test_one_after_another_they_are_waited_for_no_longer(bench: Bench) -> None:
    """R42: with one slot for everything, the time passes for all that is staged."""

    async def main() -> list[float]:
        lookups = Lookups(bench.targets, polling=POLLING, patience_s=1.0, now_s=virtual_time.now)
        ended = []
        for step in plan(*ALL).packages:
            run = PackageRun.from_plan(replace(step, staged=where_staged(step.package.id.name)))
            await lookups.poll_until_approved(run, WAIT_S, asyncio.Event())
            ended.append(virtual_time.now())
        return ended

    assert virtual_time.run(main()) == [WAIT_S] * 3


@pytest.mark.parametrize(("shows_within_s", "asked_for_s"), [(0.0, 60.0), (300.0, 300.0)])
def test_a_registry_that_is_known_to_take_longer_is_asked_for_longer(
    bench: Bench, shows_within_s: float, asked_for_s: float
) -> None:
    """R16: unless the answer to the upload was lost, which the next run looks into."""

    async def main(ambiguity: str) -> float:
        target = bench.targets["fake"]
        target.preflight = replace(target.preflight, shows_within_s=shows_within_s)
        lookups = Lookups(
            {"fake": target},
            polling=POLLING,
            patience_s=60.0,
            now_s=virtual_time.now,
        )
        (step,) = awaited(CORE, built={"core": (artifact(bench.root / "core", b"core"),)}).packages
        run = PackageRun.from_plan(replace(step, staged=None))
        run.ambiguity = ambiguity
        with pytest.raises(Undecided):
            await lookups.poll_until_shown(run)
        return virtual_time.now()

    longest = POLLING.longest_pause_s
    assert asked_for_s - longest < virtual_time.run(main("")) <= asked_for_s
    assert virtual_time.run(main("lost")) <= POLLING.ambiguity_window_s


def test_what_may_not_be_staged_waits_for_what_is(tmp_path: Path) -> None:
    """R1: it is published after the approval."""
    bench = Bench(tmp_path, "never")
    built = (artifact(tmp_path / "core-1.0.pkg", b"core"),)
    bench.staging.waiting["core"] = built
    looks = 0

    def look(name: str) -> None:
        nonlocal looks
        looks += "app" in bench.workspace.built
        if looks == 30:
            bench.staging.approve("core")

    bench.registry.on_lookup = look
    results = bench.run(made=awaited(CORE, APP, built={"core": built}), wait_for_approval=WAIT_S)
    assert outcomes(results) == {"core": PUBLISHED, "app": PUBLISHED}
    assert bench.registry.uploads == ["app"]


def test_what_is_staged_is_on_record_while_it_is_waited_for(bench: Bench) -> None:
    """R17"""
    seen: list[object] = []

    def look(name: str) -> None:
        seen.append((bench.entry().outcome, bench.entry().staged))

    bench.registry.on_lookup = look
    bench.run(CORE, wait_for_approval=0.001)
    assert seen[0] == (STAGED, where_staged("core"))


@pytest.mark.parametrize("trouble", [Transient("503"), Denied("403"), Rejected("410")])
def test_a_registry_that_cannot_be_asked_fails_nothing(bench: Bench, trouble: Exception) -> None:
    def ask(name: str) -> None:
        raise trouble

    bench.registry.on_lookup = ask
    assert outcomes(bench.run(CORE, wait_for_approval=0.001)) == {"core": STAGED}


def test_other_bytes_that_were_approved_are_a_failure(bench: Bench, tmp_path: Path) -> None:
    def forge(name: str) -> None:
        bench.registry.store("core", [artifact(tmp_path / "core-1.0.pkg", b"forged")])

    bench.registry.on_lookup = forge
    results = bench.run(CORE, elsewhere("tool", CORE.id), wait_for_approval=WAIT_S)
    assert outcomes(results) == {"core": FAILED, "tool": BLOCKED}
    assert "the registry holds core-1.0.pkg with sha256:" in results["core"].reason


@pytest.mark.parametrize("grace_s", [None, 1.0])
def test_a_run_that_is_ended_waits_for_nobody(bench: Bench, grace_s: float | None) -> None:
    """R28: what is staged stays so."""

    def during(release: ReleaseRun) -> None:
        bench.registry.on_lookup = lambda name: release.stop("stopped", grace_s=grace_s)

    results = bench.run(CORE, elsewhere("tool", CORE.id), during=during, wait_for_approval=WAIT_S)
    assert outcomes(results) == {"core": STAGED, "tool": Outcome.CANCELLED}
    assert bench.entry().staged == where_staged("core")


def test_what_was_staged_before_is_neither_built_nor_sent(bench: Bench, tmp_path: Path) -> None:
    """R17"""
    bench.run(CORE)
    made = awaited(*ALL, elsewhere("tool", CORE.id), built={"core": bench.entry().artifacts})
    results = bench.run(made=made)
    assert outcomes(results) == {"core": STAGED, "app": STAGED, "cli": STAGED, "tool": BLOCKED}
    assert results["core"].reason == "staged before"
    assert results["core"].staged == where_staged("core")
    assert results["core"].artifacts == bench.entry().artifacts
    assert bench.staging.calls[0] == ["core"]
    assert sorted(bench.staging.calls[1:]) == [["app"], ["cli"]]
    assert bench.workspace.built.count("core") == 1
    assert bench.registry.uploads == []


def test_dependents_wait_beside_what_was_staged_before(auto: Bench) -> None:
    built = (artifact(auto.root / "core-1.0.pkg", b"core"),)
    results = auto.run(made=awaited(CORE, APP, built={"core": built}))
    assert outcomes(results) == {"core": STAGED, "app": STAGED}
    assert auto.registry.uploads == []


def test_they_are_blocked_where_nothing_may_be_staged_any_more(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "never")
    built = (artifact(tmp_path / "core-1.0.pkg", b"core"),)
    results = bench.run(made=awaited(CORE, APP, built={"core": built}))
    assert outcomes(results) == {"core": STAGED, "app": BLOCKED}
    assert (bench.registry.uploads, bench.staging.calls) == ([], [])


def test_what_was_staged_before_is_waited_for(bench: Bench) -> None:
    bench.run(CORE)
    Approvals(bench, 2, "core")
    made = awaited(CORE, elsewhere("tool", CORE.id), built={"core": bench.entry().artifacts})
    results = bench.run(made=made, wait_for_approval=WAIT_S)
    assert outcomes(results) == {"core": PUBLISHED, "tool": PUBLISHED}
    assert bench.entry().staged is None


def test_what_nothing_vouches_for_is_not_called_ours(bench: Bench) -> None:
    """R21: without files of an earlier run, none is missing either."""
    bench.run(CORE)
    made = awaited(CORE, built={"core": ()})
    assert outcomes(bench.run(made=made, wait_for_approval=0.001)) == {"core": STAGED}
    Approvals(bench, 2, "core")
    results = bench.run(made=made, wait_for_approval=WAIT_S)
    assert outcomes(results) == {"core": Outcome.ALREADY_PUBLISHED}
    assert results["core"].reason == "approved, and on the registry"


def test_a_deployment_is_staged_at_once(bench: Bench) -> None:
    bench.deployed = True
    results = bench.run(*ALL)
    assert bench.staging.calls == [["core", "app", "cli"]]
    assert set(outcomes(results).values()) == {STAGED}
    made = awaited(
        *ALL, package("new"), built={each.id.name: bench.entry(each).artifacts for each in ALL}
    )
    assert set(outcomes(bench.run(made=made)).values()) == {STAGED}
    assert bench.staging.calls[1:] == [["new"]]


def test_a_deployment_that_needs_what_waits_elsewhere_is_blocked_as_a_whole(bench: Bench) -> None:
    """R4"""
    bench.deployed = True
    lib = replace(package("lib"), id=PackageId("other", "lib"))
    app = replace(APP, dependencies=(*APP.dependencies, Dependency(on=lib.id)))
    made = plan(CORE, lib, app, actions={"lib": Action.AWAIT})
    steps = [
        replace(step, staged=where_staged("lib")) if step.package == lib else step
        for step in made.packages
    ]
    made = replace(made, packages=tuple(steps))
    results = bench.run(made=made)
    assert outcomes(results) == {"core": BLOCKED, "lib": STAGED, "app": BLOCKED}
    assert results["core"].reason == "needs other:lib, which is staged"
    assert bench.staging.calls == []
    waiting = awaiting_approval(tuple(results.values()), made.edges())
    assert waiting == {CORE.id, lib.id, app.id}


def test_a_deployment_does_not_go_out_before_what_waits(tmp_path: Path) -> None:
    """R2: an earlier run has staged what it needs, and this one may not stage."""
    bench = Bench(tmp_path, "never")
    bench.deployed = True
    built = (artifact(tmp_path / "core-1.0.pkg", b"core"),)
    results = bench.run(made=awaited(CORE, APP, built={"core": built}))
    assert outcomes(results) == {"core": STAGED, "app": BLOCKED}


def test_a_dry_run_says_what_would_be_staged(bench: Bench, tmp_path: Path) -> None:
    results = bench.run(CORE, elsewhere("tool", CORE.id), dry_run=True)
    assert outcomes(results) == dict.fromkeys(("core", "tool"), Outcome.WOULD_PUBLISH)
    assert results["core"].reason == "built; it would be staged, for a person to approve"
    assert results["tool"].reason == "built, and not uploaded: a dry run"
    bench.staging.mode = "auto"
    assert bench.run(CORE, dry_run=True)["core"].reason == "built, and not uploaded: a dry run"


def test_a_dry_run_forgets_nothing_that_is_staged(bench: Bench) -> None:
    bench.run(CORE)
    made = awaited(CORE, built={"core": bench.entry().artifacts})
    assert outcomes(bench.run(made=made, dry_run=True)) == {"core": STAGED}
    assert bench.entry().staged == where_staged("core")


@pytest.mark.parametrize(
    "ending", [(Outcome.CANCELLED, "cut off"), (Outcome.WOULD_PUBLISH, "dry run")]
)
@pytest.mark.parametrize("error", [None, Rejected("no")])
def test_what_waits_is_staged_however_the_run_ends(
    ending: tuple[Outcome, str], error: Rejected | None
) -> None:
    """R5: also where something that it needs has failed meanwhile."""
    (step,) = awaited(CORE, built={"core": ()}).packages
    run = PackageRun.from_plan(step)
    run.error, run.sent, run.ambiguity = error, True, "lost"
    assert outcome_of(run, [(APP.id, FAILED)], ending)[0] is STAGED
    assert not run.unconfirmed
    run.error = DigestMismatch("other bytes")
    assert outcome_of(run, (), ending)[0] is FAILED


def test_results_say_so_of_every_package_once() -> None:
    """R4, R5"""
    runs = {
        step.package.id: PackageRun.from_plan(step)
        for step in awaited(*ALL, built={"core": ()}).packages
    }
    runs[APP.id].held_by = frozenset({CORE.id})
    edges = {CORE.id: [], APP.id: [CORE.id], CLI.id: [APP.id]}
    results = results_of(runs, edges)
    assert [result.outcome for result in results] == [STAGED, BLOCKED, BLOCKED]
    assert {result.hint for result in results[1:]} == {results[1].hint}


@pytest.mark.parametrize("beside", [False, True])
def test_what_is_blocked_by_a_deployment_names_its_page(*, beside: bool) -> None:
    """R4: no command approves it."""
    page = Staged(url="https://central.sonatype.com/publishing/deployments")
    core, app = PackageId("maven", "g:core"), PackageId("npm", "app")
    others = [PackageId("npm", "web")] if beside else []
    edges: dict[PackageId, list[PackageId]] = {core: [], app: [core], **{on: [] for on in others}}
    made = plan(*(replace(package("x"), id=each) for each in (core, *others, app)))
    runs = {each.package.id: PackageRun.from_plan(each) for each in made.packages}
    for each in (core, *others):
        runs[each].staged = page
    runs[app].held_by = frozenset({core})
    *_, blocked = results_of(runs, edges)
    press = f"Press Publish or Drop at {page.url} for maven:g:core. "
    approve = f"Approve what is staged, with {spell('approve')}, then"
    assert blocked.hint == f"{press}{approve if beside else 'Then'} run the same command again."
    assert blocked.problem is Problem.WAITS_FOR_APPROVAL


def test_nothing_waits_for_itself(bench: Bench) -> None:
    """What is built and sent is timed by phases; waiting for a person is one of its own."""
    Approvals(bench, 1, "core")
    results = bench.run(CORE, wait_for_approval=WAIT_S)
    spans = results["core"].spans
    assert [span.phase for span in spans] == ["build", "upload", "approval"]
    assert results["core"].duration_s == sum(span.end_s - span.start_s for span in spans[:2])
    durations = read_history(bench.root / ".releasekit").durations
    assert str(Node("approval", package_id("core"))) in durations
