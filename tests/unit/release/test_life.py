"""The one outcome that follows from what is known of a package: a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fakes import artifact, package, package_id, plan
from releasekit.errors import (
    BuildFailed,
    Denied,
    DigestMismatch,
    PackageError,
    Rejected,
    ReleasekitError,
    Transient,
)
from releasekit.fields import replace
from releasekit.model import Action, Dependency, Outcome, PackageId, Published, Span
from releasekit.problems import Problem
from releasekit.release.package_run import CUT_OFF, PackageRun, companions, result_of, results_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BLOCKED_BY = [(package_id("core"), Outcome.FAILED)]


def run(known: Mapping[str, object] | None = None, action: Action = Action.PUBLISH) -> PackageRun:
    made = PackageRun.from_plan(plan(package("app", "core"), actions={"app": action}).packages[0])
    for name, value in (known or {}).items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("known", "outcome"),
    [
        ({"visible": True, "sent": True}, Outcome.PUBLISHED),
        ({"visible": True, "ambiguity": "reset"}, Outcome.PUBLISHED),
        ({"visible": True}, Outcome.ALREADY_PUBLISHED),
        ({"sent": True}, Outcome.UNKNOWN),
        ({"ambiguity": "reset"}, Outcome.UNKNOWN),
        ({"ambiguity": "reset", "error": Denied("no")}, Outcome.UNKNOWN),
        ({"sent": True, "error": DigestMismatch("other bytes")}, Outcome.FAILED),
        ({"error": Denied("no")}, Outcome.FAILED),
        ({"error": BuildFailed("no")}, Outcome.FAILED),
        ({}, Outcome.CANCELLED),
    ],
)
def test_outcome(known: dict[str, object], outcome: Outcome) -> None:
    """R4, R16"""
    assert result_of(run(known)).outcome is outcome


@pytest.mark.parametrize(
    ("known", "outcome"),
    [
        ({}, Outcome.BLOCKED),
        ({"error": BuildFailed("no")}, Outcome.BLOCKED),
        ({"ambiguity": "reset"}, Outcome.UNKNOWN),
        ({"visible": True, "sent": True}, Outcome.PUBLISHED),
        ({"error": DigestMismatch("other bytes")}, Outcome.FAILED),
    ],
)
def test_outcome_with_a_failed_dependency(known: dict[str, object], outcome: Outcome) -> None:
    """R5, R16: what a registry has is said, whatever became of the dependency."""
    assert result_of(run(known), BLOCKED_BY).outcome is outcome


@pytest.mark.parametrize("error", [None, Denied("no")])
def test_what_is_kept_stays_so(error: ReleasekitError | None) -> None:
    found = result_of(run({"error": error}, Action.KEEP), BLOCKED_BY)
    assert found.outcome is Outcome.ALREADY_PUBLISHED


def test_what_is_refused_failed_for_its_own_reason() -> None:
    refused = run({"error": Denied("begun elsewhere")}, Action.REFUSE)
    assert result_of(refused, BLOCKED_BY).outcome is Outcome.FAILED


def test_a_blocked_package_names_what_failed_at_the_bottom_of_it() -> None:
    """R4, R47"""
    made = plan(
        package("core"),
        package("other"),
        package("app", "core"),
        package("cli", "app", "other"),
        package("web", "cli"),
    )
    runs = {each.package.id: PackageRun.from_plan(each) for each in made.packages}
    for name in ("core", "other"):
        runs[package_id(name)].error = BuildFailed("no")
    found = {result.package.id.name: result for result in results_of(runs, made.edges())}
    assert found["app"].reason == "needs fake:core, which failed"
    assert found["cli"].reason == (
        "needs fake:app, which is blocked by fake:core, needs fake:other, which failed"
    )
    assert found["web"].reason == "needs fake:cli, which is blocked by fake:core, fake:other"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (BuildFailed("it does not compile"), Outcome.FAILED),
        (PackageError("other bytes", problem=Problem.UNRESOLVABLE), Outcome.FAILED),
        (BuildFailed("needs core, which could not be built", premature=True), Outcome.BLOCKED),
        (PackageError("it needs core", problem=Problem.GOES_TOGETHER), Outcome.BLOCKED),
        (None, Outcome.BLOCKED),
    ],
)
def test_what_fails_by_itself_has_failed(error: PackageError | None, outcome: Outcome) -> None:
    """R4, R47: its build ran, though something that it needs had failed before."""
    made = plan(package("core"), package("app", "core"), package("cli", "app"))
    runs = {each.package.id: PackageRun.from_plan(each) for each in made.packages}
    runs[package_id("core")].error = BuildFailed("no")
    runs[package_id("app")].error = error
    found = {result.package.id.name: result for result in results_of(runs, made.edges())}
    assert found["app"].outcome is outcome
    assert found["cli"].outcome is Outcome.BLOCKED


def test_an_error_of_a_whole_batch_is_of_the_first_of_it() -> None:
    made = plan(package("core"), package("app", "core"))
    runs = {each.package.id: PackageRun.from_plan(each) for each in made.packages}
    timed_out = BuildFailed("the build did not end within 60 s")
    for each in runs.values():
        each.error = timed_out
    found = [result.outcome for result in results_of(runs, made.edges())]
    assert found == [Outcome.FAILED, Outcome.BLOCKED]


def test_what_failed_shares_a_clause() -> None:
    """R47: one row may need many of them."""
    needs = [(package_id(name), "failed") for name in "abcdefg"]
    reason = result_of(run(), needs).reason
    assert reason == "needs fake:a, fake:b, fake:c, fake:d, fake:e and 2 more, which failed"


def test_a_blocked_package_names_what_it_needs() -> None:
    found = result_of(run(), BLOCKED_BY)
    assert found.reason == "needs fake:core, which failed"
    assert found.hint


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("failed", "needs fake:core, which failed"),
        ("failed in another job: no", "needs fake:core, which failed in another job: no"),
        ("cancelled", "needs fake:core, which was cancelled"),
        ("removed", "needs fake:core, which was left out"),
        ("unknown", "needs fake:core, which is unknown"),
        ("staged", "needs fake:core, which is staged"),
        ("blocked by fake:lib", "needs fake:core, which is blocked by fake:lib"),
    ],
)
def test_what_became_of_a_dependency_is_told_in_plain_words(how: str, told: str) -> None:
    assert result_of(run(), [(package_id("core"), how)]).reason == told


def test_a_failure_says_what_of_it_is_out_already() -> None:
    """R5: a source distribution that is there stays there when the wheel after it is refused."""
    files = [artifact(Path(name), name.encode()) for name in ("app-1.0.tar.gz", "app-1.0.whl")]
    known = {
        "artifacts": tuple(files),
        "published": Published(files={"app-1.0.tar.gz": "sha256:00"}, complete=False),
        "error": Rejected("app-1.0.whl: HTTP 400"),
    }
    said = result_of(run(known)).reason
    assert said == "app-1.0.whl: HTTP 400; app-1.0.tar.gz of it is on the registry"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("fake:app 1.0: app.whl: HTTP 400", "app.whl: HTTP 400"),
        ("fake:app: it could not be packed", "it could not be packed"),
        ("fake:app could not be packaged", "could not be packaged"),
        ("fake:application: no", "fake:application: no"),
        ("fake:core 1.0: no", "fake:core 1.0: no"),
    ],
)
def test_a_row_does_not_name_its_package_twice(said: str, reason: str) -> None:
    """R47"""
    assert result_of(run({"error": BuildFailed(said)})).reason == reason


def test_no_failure_is_without_something_to_do() -> None:
    """R47: even where whoever raised the error had nothing to add."""
    for error in (PackageError("no"), BuildFailed("it broke"), Transient("no answer")):
        assert result_of(run({"error": error})).hint
        assert result_of(run({"error": error, "ambiguity": "cut off"})).hint


def test_failure_keeps_hint_and_log() -> None:
    error = BuildFailed("it broke", log=("last line",), hint="Look there")
    found = result_of(run({"error": error}))
    assert (found.reason, found.hint, found.log) == ("it broke", "Look there", ("last line",))


def test_duration_counts_work_and_not_waiting() -> None:
    spans = [
        Span(phase="build", start_s=0.0, end_s=1.5),
        Span(phase="upload", start_s=60.0, end_s=60.5),
    ]
    assert result_of(run({"spans": spans})).duration_s == 2.0


def test_blocking_goes_all_the_way_down() -> None:
    """R6"""
    made = plan(package("a"), package("b", "a"), package("c", "b"))
    runs = {planned.package.id: PackageRun.from_plan(planned) for planned in made.packages}
    runs[package_id("a")].error = Denied("no")
    found = results_of(runs, made.edges())
    assert [r.outcome for r in found] == [Outcome.FAILED, Outcome.BLOCKED, Outcome.BLOCKED]


def test_a_cancelled_dependency_cancels_and_does_not_block() -> None:
    made = plan(package("a"), package("b", "a"))
    runs = {planned.package.id: PackageRun.from_plan(planned) for planned in made.packages}
    found = results_of(runs, made.edges(), (Outcome.CANCELLED, "stopped"))
    assert [(r.outcome, r.reason) for r in found] == [(Outcome.CANCELLED, "stopped")] * 2


def test_the_default_ending_says_that_the_run_was_cut_off() -> None:
    assert (result_of(run()).outcome, result_of(run()).reason) == CUT_OFF


def along(runs: Sequence[PackageRun], first: str) -> list[str]:
    planned = {known.id for known in runs}
    edges = {
        known.id: frozenset({need.on for need in known.planned.package.dependencies} & planned)
        for known in runs
    }
    chosen = next(known for known in runs if known.id.name == first)
    return [known.id.name for known in companions(chosen, runs, edges)]


def built(name: str, *needs: str, **known: object) -> PackageRun:
    made = run({"artifacts": (artifact(Path(f"{name}.zip"), b""),), **known})
    return replace(made, planned=replace(made.planned, package=package(name, *needs)))


def foreign(name: str, **known: object) -> PackageRun:
    made = built(name, **known)
    there = replace(made.planned.package, id=PackageId("other", name))
    return replace(made, planned=replace(made.planned, package=there))


def needing(known: PackageRun, on: PackageRun) -> PackageRun:
    edge = Dependency(on=on.id)
    needy = replace(known.planned.package, dependencies=(*known.planned.package.dependencies, edge))
    return replace(known, planned=replace(known.planned, package=needy))


def test_nothing_goes_along_ahead_of_what_it_needs() -> None:
    """R1"""
    wheel, old = foreign("wheel"), foreign("old", visible=True)
    runs = [
        wheel,
        old,
        built("core"),
        built("io", "core"),
        needing(built("waits", "core"), wheel),
        built("later", "waits"),
        needing(built("ready", "io"), old),
        built("broken", "core", artifacts=()),
        built("after", "broken"),
    ]
    assert along(runs, "core") == ["io", "ready"]
    assert along(runs, "waits") == ["core", "io", "later", "ready"]


@pytest.mark.parametrize(
    "known",
    [
        {"artifacts": ()},
        {"published": Published(files={}, complete=False)},
        {"sent": True},
        {"error": Denied("no")},
        {"visible": True},
    ],
)
def test_only_what_waits_for_its_first_upload_goes_along(known: dict[str, object]) -> None:
    assert along([built("core"), built("io", "core", **known)], "core") == []
    refused = built("io", "core")
    refused = replace(refused, planned=replace(refused.planned, action=Action.REFUSE))
    assert along([built("core"), refused], "core") == []
    assert along([built("core"), built("io", "core", ambiguity="reset")], "core") == ["io"]
