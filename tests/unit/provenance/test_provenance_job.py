from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from releasekit.provenance.job import Job

CLAIMS = {
    "repository": "acme/widgets",
    "repository_id": "1",
    "repository_owner_id": "2",
    "repository_visibility": "public",
    "ref": "refs/heads/main",
    "sha": "a" * 40,
    "event_name": "push",
    "run_id": "42",
    "run_attempt": "3",
    "runner_environment": "github-hosted",
    "workflow_ref": "acme/widgets/.github/workflows/release.yml@refs/heads/main",
    "job_workflow_ref": "acme/widgets/.github/workflows/release.yml@refs/heads/main",
    "environment": "pypi",
}


def encoded(claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"eyJhbGciOiJSUzI1NiJ9.{body}.c2lnbmF0dXJl"


def job(**changes: object) -> Job:
    return Job.from_token(encoded({**CLAIMS, **changes}), server="https://github.com/")


def test_a_job_is_what_its_token_says() -> None:
    found = job()
    assert found.repository_url == "https://github.com/acme/widgets"
    assert found.workflow_path == ".github/workflows/release.yml"
    assert found.workflow_name == "release.yml"
    assert found.workflow_git_ref == "refs/heads/main"
    assert found.run_url == "https://github.com/acme/widgets/actions/runs/42/attempts/3"
    assert found.environment == "pypi"
    assert found.visibility == "public"
    assert not found.is_reusable


def test_a_job_need_not_deploy_anywhere() -> None:
    claims = {name: value for name, value in CLAIMS.items() if name != "environment"}
    assert Job.from_token(encoded(claims), server="https://github.com").environment == ""


def test_a_reusable_workflow_is_another_one() -> None:
    """Trusted publishing goes by the workflow that was triggered, and so does the certificate's
    repository; who signs is the one that defines the job.
    """
    found = job(job_workflow_ref="acme/shared/.github/workflows/publish.yml@refs/tags/v1")
    assert found.is_reusable
    assert found.workflow_name == "release.yml"


@pytest.mark.parametrize("name", [name for name in CLAIMS if name != "environment"])
def test_a_claim_that_is_missing_is_named(name: str) -> None:
    claims = {key: value for key, value in CLAIMS.items() if key != name}
    with pytest.raises(ValueError, match=f"no usable claim {name}$"):
        Job.from_token(encoded(claims), server="https://github.com")


@pytest.mark.parametrize("name", CLAIMS)
@pytest.mark.parametrize("value", ["", 7, None, ["a"], "two\nlines", "\x1b[2J"])
def test_a_claim_that_is_no_text_is_named(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"no usable claim {name}$"):
        job(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("repository", "widgets"),
        ("repository", "a/b/c"),
        ("workflow_ref", "release.yml"),
        ("workflow_ref", "acme/widgets/release.yml"),
        ("job_workflow_ref", "acme/release.yml@main"),
        ("job_workflow_ref", "acme/widgets/@main"),
    ],
)
def test_a_claim_of_another_form_is_named(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"the claim {name} is no"):
        job(**{name: value})


@pytest.mark.parametrize(
    "token",
    ["", "a.b", "a.b.c.d", "a.!!!.c", "a.é.c", f"a.{'A' * 5}.c", encoded([1]), encoded("text")],
)
def test_what_is_no_token_is_told_without_what_it_holds(token: str) -> None:
    with pytest.raises(ValueError, match=r"^it(s| has)") as caught:
        Job.from_token(token, server="https://github.com")
    assert len(str(caught.value)) < 60


@given(st.text() | st.text(st.characters(max_codepoint=127)).map(lambda body: f"a.{body}.c"))
def test_any_text_is_a_token_or_a_value_error(token: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Job.from_token(token, server="https://github.com")
