"""What a plan warns of before anything is sent: a run or a token that ends before the release."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from fakes import FakeRegistry, FakeTarget, FakeWorkspace, package, package_id, plan
from releasekit.model import Action, PackageWarning, WarningName
from releasekit.plan.forecast import GITHUB, JobEnd, with_limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.model import Package, PackageId, Plan, PlannedPackage

A, B, C = package("a"), package("b", "a"), package("c")
LARGE = PackageWarning(name=WarningName.OVER_LIMIT, message="there are too many")


def forecast(
    *packages: Package,
    takes_s: Mapping[str, float],
    deadline_s: float | None = None,
    job: JobEnd | None = None,
    actions: Mapping[str, Action] | None = None,
    **given: object,
) -> dict[str, list[str]]:
    """The messages for each package, where the registry takes some only after a while."""

    def find_earliest(planned: Sequence[PlannedPackage]) -> dict[PackageId, float]:
        names = [each.package.id for each in planned]
        return {each: takes_s[each.name] for each in names if each.name in takes_s}

    target = FakeTarget(
        FakeWorkspace(packages), FakeRegistry(), find_earliest=find_earliest, **given
    )
    made = plan(*packages, actions=actions)
    return messages(with_limits(made, {"fake": target}, deadline_s=deadline_s, job=job))


def messages(made: Plan) -> dict[str, list[str]]:
    return {
        each.package.id.name: [warning.message for warning in each.warnings]
        for each in made.packages
        if each.warnings
    }


def test_what_comes_after_the_deadline_is_named_and_nothing_else() -> None:
    """R49: at the deadline nothing starts any more."""
    found = forecast(A, C, takes_s={"a": 599.0, "c": 600.0}, deadline_s=600.0)
    assert found.keys() == {"c"}
    assert "takes at least 10 min, and its `deadline` is 600 s" in found["c"][0]
    assert forecast(A, C, takes_s={"a": 599.0, "c": 600.0}) == {}


def test_all_that_comes_too_late_shares_a_line() -> None:
    found = forecast(A, B, C, takes_s={"a": 600.0, "c": 33_000.0}, deadline_s=600.0)
    assert found.keys() == {"a", "b", "c"}
    (line,) = {message for messages in found.values() for message in messages}
    assert "takes at least 9 h 10 min" in line


def test_what_needs_a_late_package_is_late() -> None:
    """R1: in whichever ecosystem; what is there already waits for nothing."""
    assert forecast(A, B, takes_s={"a": 600.0}, deadline_s=600.0).keys() == {"a", "b"}
    kept = {"a": Action.KEEP}
    assert forecast(A, B, takes_s={"a": 600.0}, deadline_s=600.0, actions=kept) == {}


def test_a_dependent_waits_until_the_registry_shows_what_it_needs() -> None:
    found = forecast(A, B, takes_s={}, shows_after_s=300.0, deadline_s=300.0)
    assert found.keys() == {"b"}
    assert forecast(A, B, takes_s={}, shows_after_s=299.0, deadline_s=300.0) == {}


@pytest.mark.parametrize(("takes_s", "named"), [(GITHUB.left_s - 1, False), (GITHUB.left_s, True)])
def test_a_job_of_github_ends(takes_s: float, named: bool) -> None:
    """R49: a run elsewhere does not."""
    assert bool(forecast(A, takes_s={"a": takes_s}, job=GITHUB)) is named
    assert forecast(A, takes_s={"a": takes_s}) == {}


def test_a_job_of_another_ci_ends_as_it_says() -> None:
    found = forecast(A, takes_s={"a": 3_600.0}, job=JobEnd(3_480.0, "GitLab"))
    assert "GitLab ends its job after 58 min: run it again" in found["a"][0]
    assert forecast(A, takes_s={"a": 3_400.0}, job=JobEnd(3_480.0, "GitLab")) == {}


def test_of_what_ends_the_first_is_said() -> None:
    takes_s = {"a": 2 * GITHUB.left_s}
    (job,) = forecast(A, takes_s=takes_s, job=GITHUB, deadline_s=GITHUB.left_s + 1)["a"]
    assert "GitHub ends its job after 6 h" in job
    (deadline,) = forecast(A, takes_s=takes_s, job=GITHUB, deadline_s=GITHUB.left_s - 1)["a"]
    assert "its `deadline` is 21599 s" in deadline


@pytest.mark.parametrize(("left_s", "named"), [(3_500.0, True), (3_700.0, False)])
def test_a_token_that_ends_before_is_said(left_s: float, named: bool) -> None:
    """R49"""
    found = forecast(A, takes_s={"a": 3_600.0}, token_ends=time.time() + left_s)
    assert bool(found) is named
    said = "takes at least 1 h 0 min, and the token for https://registry.example/ ends in 58 min: "
    assert all(said in message for message in found.get("a", []))


def test_what_a_registry_would_not_take_of_it_is_said_beside() -> None:
    found = forecast(
        A,
        C,
        takes_s={"c": 60.0},
        deadline_s=60.0,
        find_excess=lambda _: {package_id("c"): LARGE},
    )
    assert found.keys() == {"c"}
    assert found["c"][0] == "there are too many"
    assert len(found["c"]) == 2
