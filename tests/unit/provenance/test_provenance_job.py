from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance.oidc import GITLAB, gitlab_claims_of
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


def gitlab(**changes: object) -> Job:
    return Job.from_token(encoded({**gitlab_claims_of(), **changes}), server=GITLAB)


def test_a_job_of_gitlab_is_what_its_token_says() -> None:
    found = gitlab()
    assert found.repository_url == "https://gitlab.com/acme/tools/widgets"
    assert found.workflow_path == ".gitlab-ci.yml"
    assert (found.workflow_git_ref, found.ref) == ("refs/heads/main", "refs/heads/main")
    assert found.run_url == "https://gitlab.com/acme/tools/widgets/-/jobs/302"
    assert (found.environment, found.is_reusable) == ("", False)
    assert gitlab(environment="").environment == ""
    assert gitlab(environment="release").environment == "release"


def test_a_ci_file_lies_where_its_project_says() -> None:
    """https://docs.gitlab.com/ci/pipelines/settings/#specify-a-custom-cicd-configuration-file"""
    uri = "gitlab.com/acme/tools/widgets//ci//release.yml@refs/tags/@acme/core@1.0.0"
    found = gitlab(ci_config_ref_uri=uri)
    assert found.workflow_path == "ci//release.yml"
    assert found.workflow_git_ref == "refs/tags/@acme/core@1.0.0"


@pytest.mark.parametrize(
    "uri",
    [
        "gitlab.com/acme/other//.gitlab-ci.yml@refs/heads/main",
        "gitlab.com/acme/tools/widgets/.gitlab-ci.yml@refs/heads/main",
        "gitlab.com/acme/tools/widgets//.gitlab-ci.yml",
        f"gitlab.com/{'a//' * 5_000}",
    ],
)
def test_a_ci_file_of_another_project_makes_no_job(uri: str) -> None:
    """GitLab names none of those so; what a registry compares would not fit."""
    with pytest.raises(ValueError, match="claim ci_config_ref_uri is "):
        gitlab(ci_config_ref_uri=uri)


@pytest.mark.parametrize(
    "name", ["ci_config_ref_uri", "job_id", "sha", "ref_path", "runner_environment"]
)
@pytest.mark.parametrize("value", [None, "", 7])
def test_a_claim_of_gitlab_that_is_no_text_is_named(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"no usable claim {name}$"):
        gitlab(**{name: value})


def test_of_the_variables_those_that_name_the_build_are_kept() -> None:
    """R14: they are signed, and shown to everybody."""
    written = {"CI_COMMIT_MESSAGE": "x", "CI_COMMIT_TITLE": "x", "CI_PROJECT_DESCRIPTION": "x"}
    people = {"GITLAB_USER_EMAIL": "x", "GITLAB_USER_LOGIN": "x", "CI_RUNNER_DESCRIPTION": "x"}
    secret = {"CI_JOB_TOKEN": "x", "PYPI_ID_TOKEN": "x"}
    environment = {"CI_JOB_NAME": "publish", **written, **people, **secret}
    token = encoded(gitlab_claims_of())
    found = Job.from_token(token, server=GITLAB, environment=environment)
    assert found.variables == {"CI_JOB_NAME": "publish"}
