"""The one outcome that follows from what is known of a package: a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fakes import artifact, package, package_id, plan
from releasekit.errors import BuildFailed, Denied, DigestMismatch, ReleasekitError
from releasekit.model import Action, Dependency, Outcome, PackageId, Published, Span
from releasekit.release.life import CUT_OFF, Life, companions, result_of, results

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BLOCKED_BY = [(package_id("core"), Outcome.FAILED)]


def life(known: Mapping[str, object] | None = None, action: Action = Action.PUBLISH) -> Life:
    made = Life.of(plan(package("app", "core"), actions={"app": action}).steps[0])
    for name, value in (known or {}).items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("known", "outcome"),
    [
        ({"visible": True, "sent": True}, Outcome.PUBLISHED),
        ({"visible": True, "doubt": "reset"}, Outcome.PUBLISHED),
        ({"visible": True}, Outcome.ALREADY_PUBLISHED),
        ({"sent": True}, Outcome.UNKNOWN),
        ({"doubt": "reset"}, Outcome.UNKNOWN),
        ({"doubt": "reset", "error": Denied("no")}, Outcome.UNKNOWN),
        ({"sent": True, "error": DigestMismatch("other bytes")}, Outcome.FAILED),
        ({"error": Denied("no")}, Outcome.FAILED),
        ({"error": BuildFailed("no")}, Outcome.FAILED),
        ({}, Outcome.CANCELLED),
    ],
)
def test_outcome(known: dict[str, object], outcome: Outcome) -> None:
    """R4, R16"""
    assert result_of(life(known)).outcome is outcome


@pytest.mark.parametrize(
    ("known", "outcome"),
    [
        ({}, Outcome.BLOCKED),
        ({"error": BuildFailed("no")}, Outcome.BLOCKED),
        ({"doubt": "reset"}, Outcome.UNKNOWN),
        ({"visible": True, "sent": True}, Outcome.PUBLISHED),
        ({"error": DigestMismatch("other bytes")}, Outcome.FAILED),
    ],
)
def test_outcome_with_a_failed_dependency(known: dict[str, object], outcome: Outcome) -> None:
    """R5, R16: what a registry has is said, whatever became of the dependency."""
    assert result_of(life(known), BLOCKED_BY).outcome is outcome


@pytest.mark.parametrize("error", [None, Denied("no")])
def test_what_is_kept_stays_so(error: ReleasekitError | None) -> None:
    found = result_of(life({"error": error}, Action.KEEP), BLOCKED_BY)
    assert found.outcome is Outcome.ALREADY_PUBLISHED


def test_what_is_refused_failed_for_its_own_reason() -> None:
    refused = life({"error": Denied("begun elsewhere")}, Action.REFUSE)
    assert result_of(refused, BLOCKED_BY).outcome is Outcome.FAILED


def test_a_blocked_package_names_what_it_needs() -> None:
    found = result_of(life(), BLOCKED_BY)
    assert found.reason == "needs fake:core, which is failed"
    assert found.hint


def test_failure_keeps_hint_and_log() -> None:
    error = BuildFailed("it broke", log=("last line",), hint="look there")
    found = result_of(life({"error": error}))
    assert (found.reason, found.hint, found.log) == ("it broke", "look there", ("last line",))


def test_duration_counts_work_and_not_waiting() -> None:
    spans = [
        Span(phase="build", start_s=0.0, end_s=1.5),
        Span(phase="upload", start_s=60.0, end_s=60.5),
    ]
    assert result_of(life({"spans": spans})).duration_s == 2.0


def test_blocking_goes_all_the_way_down() -> None:
    """R6"""
    made = plan(package("a"), package("b", "a"), package("c", "b"))
    lives = {step.package.id: Life.of(step) for step in made.steps}
    lives[package_id("a")].error = Denied("no")
    found = results(lives, made.edges())
    assert [r.outcome for r in found] == [Outcome.FAILED, Outcome.BLOCKED, Outcome.BLOCKED]


def test_a_cancelled_dependency_cancels_and_does_not_block() -> None:
    made = plan(package("a"), package("b", "a"))
    lives = {step.package.id: Life.of(step) for step in made.steps}
    found = results(lives, made.edges(), (Outcome.CANCELLED, "stopped"))
    assert [(r.outcome, r.reason) for r in found] == [(Outcome.CANCELLED, "stopped")] * 2


def test_the_default_ending_says_that_the_run_was_cut_off() -> None:
    assert (result_of(life()).outcome, result_of(life()).reason) == CUT_OFF


def along(lives: Sequence[Life], first: str) -> list[str]:
    planned = {it.id for it in lives}
    edges = {
        it.id: frozenset({need.on for need in it.step.package.dependencies} & planned)
        for it in lives
    }
    chosen = next(it for it in lives if it.id.name == first)
    return [it.id.name for it in companions(chosen, lives, edges)]


def built(name: str, *needs: str, **known: object) -> Life:
    made = life({"artifacts": (artifact(Path(f"{name}.zip"), b""),), **known})
    return replace(made, step=replace(made.step, package=package(name, *needs)))


def foreign(name: str, **known: object) -> Life:
    made = built(name, **known)
    there = replace(made.step.package, id=PackageId("other", name))
    return replace(made, step=replace(made.step, package=there))


def needing(it: Life, on: Life) -> Life:
    edge = Dependency(on=on.id)
    needy = replace(it.step.package, dependencies=(*it.step.package.dependencies, edge))
    return replace(it, step=replace(it.step, package=needy))


def test_nothing_goes_along_ahead_of_what_it_needs() -> None:
    """R1"""
    wheel, old = foreign("wheel"), foreign("old", visible=True)
    lives = [
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
    assert along(lives, "core") == ["io", "ready"]
    assert along(lives, "waits") == ["core", "io", "later", "ready"]


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
    refused = replace(refused, step=replace(refused.step, action=Action.REFUSE))
    assert along([built("core"), refused], "core") == []
    assert along([built("core"), built("io", "core", doubt="reset")], "core") == ["io"]
