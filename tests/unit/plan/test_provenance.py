"""What a plan says about attestations: what is signed, and what keeps the rest from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from attesting import FakeAttesting
from fakes import FakeRegistry, FakeTarget, FakeWorkspace, config, package, plan
from raising import raises
from releasekit.attested import Obstacle
from releasekit.fields import replace
from releasekit.http.identity import NO_PERMISSION
from releasekit.model import Action
from releasekit.plan.provenance import with_provenance
from releasekit.problems import Problem
from releasekit.provenance.conditions import NO_JOB
from releasekit.provenance.job import Job

if TYPE_CHECKING:
    from releasekit.model import Plan

TOKEN = Obstacle(condition="uploads use a token", cure="Use trusted publishing.")
URL = Obstacle(condition="it names no repository", cure="Write `repository.url`.")
JOB = Job(
    kind="github",
    server="https://github.com",
    repository="acme/widgets",
    repository_id="1",
    repository_owner_id="2",
    visibility="public",
    ref="refs/heads/main",
    sha="a" * 40,
    event_name="push",
    run_id="42",
    run_url="https://github.com/acme/widgets/actions/runs/42/attempts/1",
    runner_environment="github-hosted",
    workflow_path=".github/workflows/release.yml",
    workflow_git_ref="refs/heads/main",
    environment="",
)


def planned(
    *,
    obstacles: dict[str, Obstacle] | None = None,
    wishes: dict[str, bool] | None = None,
    attestations: Literal["auto", "required", "off"] = "auto",
    job: Job | Obstacle = JOB,
    takes: bool = True,
    made: Plan | None = None,
    **changes: object,
) -> Plan:
    attesting = FakeAttesting(obstacles, wishes) if takes else None
    targets = {"fake": FakeTarget(FakeWorkspace(), FakeRegistry(), attesting=attesting)}
    settings = config(Path("/workspace"), **{"mode": "publish", **changes})
    return with_provenance(
        made or plan(package("a"), package("b")),
        attestations,
        targets,
        job,
        uploading=settings.is_uploading,
    )


def attested(made: Plan) -> list[str]:
    return [each.package.id.name for each in made.packages if each.attest]


def test_everything_that_can_be_is_attested() -> None:
    made = planned()
    assert attested(made) == ["a", "b"]
    assert made.provenance == "2 packages to attest, all files in the release statement"


def test_what_keeps_a_package_from_it_is_told_once_with_its_cure() -> None:
    made = planned(obstacles={"a": URL})
    assert attested(made) == ["b"]
    assert made.provenance == (
        "1 package to attest, all files in the release statement; not attested: fake:a: it names "
        "no repository. Write `repository.url`."
    )


def test_packages_of_a_registry_that_takes_none_are_in_the_release_statement() -> None:
    made = planned(takes=False)
    assert attested(made) == []
    assert made.provenance == "all files in the release statement"


def test_without_an_identity_nothing_is() -> None:
    made = planned(job=NO_PERMISSION)
    assert attested(made) == []
    assert made.provenance == f"nothing is attested: {NO_PERMISSION}"


def test_where_nobody_expects_any_nobody_is_told() -> None:
    """On a laptop, that is."""
    assert planned(job=NO_JOB).provenance == ""


def test_a_wish_is_never_dropped_in_silence() -> None:
    assert "fake:a" in planned(job=NO_JOB, wishes={"a": True}).provenance
    off = planned(attestations="off", wishes={"a": True})
    assert attested(off) == []
    assert off.provenance == "off, and fake:a asks for it (`publishConfig.provenance`)"
    both = planned(attestations="off", wishes={"a": True, "b": True})
    assert both.provenance.startswith("off, and fake:a, fake:b ask for it")


def test_what_declines_is_left_alone() -> None:
    made = planned(wishes={"a": False}, attestations="required")
    assert attested(made) == ["b"]


def test_off_is_off() -> None:
    made = planned(attestations="off")
    assert attested(made) == []
    assert made.provenance == ""


@pytest.mark.parametrize(
    ("job", "obstacles", "message", "cures"),
    [
        (NO_JOB, {}, NO_JOB.condition, [NO_JOB.cure]),
        (NO_PERMISSION, {}, NO_PERMISSION.condition, [NO_PERMISSION.cure]),
        (JOB, {"a": URL}, f"fake:a: {URL.condition}", [URL.cure]),
        (
            JOB,
            {"a": URL, "b": TOKEN},
            f"fake:a: {URL.condition}; fake:b: {TOKEN.condition}",
            [URL.cure, TOKEN.cure],
        ),
    ],
    ids=["a laptop", "no permission", "one package", "two causes"],
)
def test_what_is_required_and_cannot_be_ends_the_run_before_anything_is_built(
    job: Job | Obstacle, obstacles: dict[str, Obstacle], message: str, cures: list[str]
) -> None:
    with raises(Problem.CANNOT_ATTEST) as error:
        planned(attestations="required", job=job, obstacles=obstacles)
    assert str(error.value) == f"attestations are required, and cannot be made: {message}"
    assert error.value.hint == " ".join(cures)


def test_a_plan_and_a_dry_run_only_say_so() -> None:
    """They run where nothing may be signed: for pull requests, for instance."""
    made = planned(attestations="required", job=NO_PERMISSION, dry_run=True)
    assert made.provenance == f"nothing is attested: {NO_PERMISSION}"


def test_only_what_is_sent_counts() -> None:
    there = plan(package("a"), package("b"), actions={"a": Action.KEEP})
    made = planned(made=there, obstacles={"a": URL}, attestations="required")
    assert attested(made) == ["b"]
    kept = replace(there, packages=(there.packages[0],))
    assert planned(made=kept, job=NO_PERMISSION, attestations="required").provenance == ""
