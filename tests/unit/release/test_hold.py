"""Uploads that start once everything is built, with `start-uploads: built`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest

from attesting import FakeAttesting, FakeSigning
from fakes import (
    FakeRegistry,
    FakeStaging,
    FakeTarget,
    FakeWorkspace,
    package,
    package_id,
    plan,
    released,
)
from releasekit.errors import Denied
from releasekit.fields import replace
from releasekit.model import Action, Dependency, DependencyKind, Outcome
from releasekit.problems import Problem
from releasekit.release.tasks import batches_of, describe_late, find_late
from releasekit.scheduler.controls import CANCEL_GRACE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from releasekit.model import Package, Plan, Result
    from releasekit.release.release import ReleaseRun

CORE, APP, LONE = package("core"), package("app", "core"), package("lone")
ALL: Final = (CORE, APP, LONE)
PUBLISHED, FAILED, BLOCKED = Outcome.PUBLISHED, Outcome.FAILED, Outcome.BLOCKED
CANCELLED = Outcome.CANCELLED


def after_its_release(name: str, *needs: str) -> Package:
    """A package that can be built once the registry shows what it needs."""
    edges = (Dependency(on=package_id(need), visible_first=True) for need in needs)
    return replace(package(name), dependencies=tuple(edges))


@dataclass
class Bench:
    """`at_upload` has what was built and signed when each upload began."""

    root: Path
    registry: FakeRegistry = field(default_factory=FakeRegistry)
    workspace: FakeWorkspace = field(default_factory=FakeWorkspace)
    signing: FakeSigning = field(default_factory=FakeSigning)
    staging: FakeStaging | None = None
    at_upload: dict[str, set[str]] = field(default_factory=dict)

    def run(
        self,
        made: Plan,
        during: Callable[[ReleaseRun], None] = lambda _: None,
        **changes: object,
    ) -> dict[str, Result]:
        def note(name: str) -> None:
            self.at_upload[name] = {
                *self.workspace.built,
                *(f"signed {x}" for x in self.signing.log),
            }

        self.registry.on_upload = note
        target = FakeTarget(
            self.workspace, self.registry, staging=self.staging, attesting=FakeAttesting()
        )
        changes = {"start_uploads": "built", **changes}
        return released(self.root, target, made, during, self.signing, **changes)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def attested(made: Plan) -> Plan:
    return replace(made, packages=tuple(replace(each, attest=True) for each in made.packages))


def outcomes(results: dict[str, Result]) -> dict[str, Outcome]:
    return {name: each.outcome for name, each in results.items()}


@pytest.mark.parametrize("slots", [1, 8])
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("gate", ["visible", "accepted"])
def test_nothing_is_uploaded_before_everything_is_built(
    bench: Bench, slots: int, gate: str, *, batch: bool
) -> None:
    bench.workspace.batch, bench.workspace.slow = batch, {"lone"}
    results = bench.run(plan(*ALL), concurrency=slots, build_concurrency=slots, gate=gate)
    assert set(outcomes(results).values()) == {PUBLISHED}
    everything = {"core", "app", "lone"}
    assert bench.at_upload == dict.fromkeys(everything, everything)


def test_without_it_a_package_is_uploaded_as_soon_as_its_turn_comes(bench: Bench) -> None:
    bench.workspace.slow = {"lone"}
    bench.run(plan(*ALL), build_concurrency=1, start_uploads="ready")
    assert "lone" not in bench.at_upload["core"]


def test_nothing_is_uploaded_before_everything_is_signed(bench: Bench) -> None:
    results = bench.run(attested(plan(*ALL)))
    assert set(outcomes(results).values()) == {PUBLISHED}
    signed = {f"signed {name}-1.0.pkg" for name in ["core", "app", "lone"]}
    assert all(signed <= there for there in bench.at_upload.values()), bench.at_upload


@pytest.mark.parametrize("batch", [False, True])
def test_a_package_that_does_not_build_keeps_all_others_back(bench: Bench, *, batch: bool) -> None:
    """The rest is built, and the next run uploads that."""
    bench.workspace.batch, bench.workspace.broken = batch, {"core"}
    results = bench.run(plan(*ALL, package("top", "lone")))
    assert not bench.registry.uploads
    assert sorted(bench.workspace.built) == ["app", "lone", "top"]
    assert outcomes(results) == {"core": FAILED, "app": BLOCKED, "lone": BLOCKED, "top": BLOCKED}
    assert results["app"].reason == "needs fake:core, which failed"
    held = "not uploaded: fake:core failed, and `start-uploads` is `built`"
    for name in ("lone", "top"):
        assert results[name].reason == f"{held}; it is built, and the next run uploads it"
        assert results[name].problem is Problem.BLOCKED
        assert results[name].hint == "Fix what failed, then run the same command again."


def test_every_failure_is_named(bench: Bench) -> None:
    bench.workspace.broken = {"core", "other"}
    results = bench.run(plan(*ALL, package("other")), build_concurrency=1)
    assert "not uploaded: fake:core, fake:other failed" in results["lone"].reason


def test_a_package_that_cannot_be_signed_keeps_all_others_back(bench: Bench) -> None:
    bench.signing.faults = {"lone-1.0.pkg": [Denied("no")]}
    results = bench.run(attested(plan(*ALL)))
    assert not bench.registry.uploads
    assert outcomes(results) == {"core": BLOCKED, "app": BLOCKED, "lone": FAILED}


def test_what_was_built_before_a_failure_is_uploaded_by_the_next_run(bench: Bench) -> None:
    bench.workspace.broken = {"core"}
    files = {name: each.artifacts for name, each in bench.run(plan(*ALL)).items()}
    bench.workspace.broken, bench.workspace.built = (), []
    steps = [
        replace(each, action=Action.UPLOAD, artifacts=files[each.package.id.name])
        if files[each.package.id.name]
        else each
        for each in plan(*ALL).packages
    ]
    results = bench.run(replace(plan(*ALL), packages=tuple(steps)))
    assert set(outcomes(results).values()) == {PUBLISHED}
    assert bench.workspace.built == ["core"]
    assert all("core" in there for there in bench.at_upload.values())


def test_a_failed_upload_keeps_only_its_dependents_back(bench: Bench) -> None:
    bench.registry.faults = {"core": [Denied("no")]}
    results = bench.run(plan(*ALL), max_retries=0)
    assert outcomes(results) == {"core": FAILED, "app": BLOCKED, "lone": PUBLISHED}


def test_a_run_that_is_stopped_while_it_builds_uploads_nothing(bench: Bench) -> None:
    def stop(release: ReleaseRun) -> None:
        release.stop("cancelled by SIGINT", grace_s=CANCEL_GRACE_S)

    bench.workspace.hang = True
    results = bench.run(plan(*ALL), stop)
    assert not bench.registry.uploads
    assert set(outcomes(results).values()) == {CANCELLED}


def test_failure_policy_stop_cancels_what_has_not_failed(bench: Bench) -> None:
    bench.workspace.broken = {"core"}
    results = bench.run(plan(*ALL), failure_policy="stop", concurrency=1, build_concurrency=1)
    assert not bench.registry.uploads
    assert outcomes(results) == {"core": FAILED, "app": BLOCKED, "lone": CANCELLED}


def test_what_the_plan_refuses_keeps_nothing_else_back(bench: Bench) -> None:
    made = plan(*ALL, actions={"core": Action.REFUSE})
    assert outcomes(bench.run(made)) == {"core": FAILED, "app": BLOCKED, "lone": PUBLISHED}
    bench.workspace.broken = {"lone"}
    bench.registry.uploads.clear()
    results = bench.run(plan(CORE, LONE, package("other"), actions={"core": Action.REFUSE}))
    assert outcomes(results) == {"core": FAILED, "lone": FAILED, "other": BLOCKED}
    assert results["core"].reason == "because"
    assert not bench.registry.uploads


def test_a_dry_run_tells_what_a_failure_keeps_back(bench: Bench) -> None:
    bench.workspace.broken = {"core"}
    results = bench.run(plan(*ALL), dry_run=True)
    assert outcomes(results) == {"core": FAILED, "app": BLOCKED, "lone": BLOCKED}
    bench.workspace.broken = ()
    assert set(outcomes(bench.run(plan(*ALL), dry_run=True)).values()) == {Outcome.WOULD_PUBLISH}


def test_nothing_is_staged_after_a_failure(bench: Bench) -> None:
    bench.staging = FakeStaging(bench.registry, "always")
    bench.workspace.broken = {"core"}
    results = bench.run(plan(*ALL))
    assert outcomes(results) == {"core": FAILED, "app": BLOCKED, "lone": BLOCKED}
    assert not bench.staging.calls


def test_builds_that_need_the_registry_are_not_waited_for(bench: Bench) -> None:
    """Nor are those that need such a build."""
    late = after_its_release("late", "core")
    later = package("later", "late", kind=DependencyKind.BUILD)
    results = bench.run(plan(*ALL, late, later))
    assert set(outcomes(results).values()) == {PUBLISHED}
    assert bench.at_upload["core"] == {"core", "app", "lone"}
    assert bench.at_upload["late"] >= {"late"}


def test_a_late_build_that_fails_keeps_only_its_dependents_back(bench: Bench) -> None:
    bench.workspace.broken = {"late"}
    results = bench.run(plan(*ALL, after_its_release("late", "core")))
    assert outcomes(results) == {
        **dict.fromkeys(["core", "app", "lone"], PUBLISHED),
        "late": FAILED,
    }


def test_late_builds_are_counted_in_a_note(bench: Bench) -> None:
    late = after_its_release("late", "core")
    later = package("later", "late", kind=DependencyKind.BUILD)
    target = {"fake": FakeTarget(bench.workspace, bench.registry)}
    made = plan(*ALL, late, later)
    assert find_late(batches_of(made, target)) == {late.id, later.id}
    assert describe_late(made, target) == (
        "`start-uploads: built` does not wait for 2 packages that can be built only once the "
        "registry shows others of this release: fake:late, fake:later"
    )
    assert not describe_late(plan(*ALL), target)
