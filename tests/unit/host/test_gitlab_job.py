"""What a job of GitLab sets, as far as builds may see it and logs may not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from releasekit.host.ci import CI
from releasekit.host.scrub import ToolVariables
from releasekit.http.credentials import Credentials, snapshot

if TYPE_CHECKING:
    from pathlib import Path

# Of `export` in a job, as GitLab's page of predefined variables shows it.
# https://docs.gitlab.com/ci/variables/predefined_variables/
PUBLIC = {
    "CI": "true",
    "GITLAB_CI": "true",
    "CI_SERVER_URL": "https://gitlab.com",
    "CI_PROJECT_PATH": "acme/tools/mono",
    "CI_PROJECT_URL": "https://gitlab.com/acme/tools/mono",
    "CI_PROJECT_DIR": "/builds/acme/tools/mono",
    "CI_COMMIT_SHA": "5d41402abc4b2a76b9719d911017c592ae1f3c07",
    "CI_COMMIT_TAG": "v1.0.0",
    "CI_COMMIT_REF_NAME": "v1.0.0",
}
NOT_FOR_BUILDS = {
    "CI_API_V4_URL": "https://gitlab.com/api/v4",
    "CI_BUILDS_DIR": "/builds",
    "CI_JOB_URL": "https://gitlab.com/acme/tools/mono/-/jobs/99",
    "CI_JOB_STARTED_AT": "2026-11-27T15:00:00Z",
    "CI_JOB_TIMEOUT": "3600",
    "CI_RUNNER_TAGS": '["saas-linux-small-amd64"]',
    "GITLAB_USER_EMAIL": "user@example.org",
}
SECRETS = {
    "CI_JOB_TOKEN": "glcbt-64_canary1zzzzzzzzzzzz",
    "CI_JOB_JWT": "canary2.aaaaaaaaaaaa.bbbbbbbb",
    "CI_JOB_JWT_V2": "canary3.aaaaaaaaaaaa.bbbbbbb",
    "CI_REGISTRY_PASSWORD": "canary4zzzzzzzzzzzzzzz",
    "CI_DEPLOY_PASSWORD": "canary5zzzzzzzzzzzzzzz",
    "CI_DEPENDENCY_PROXY_PASSWORD": "canary6zzzzzzzzzzzzzz",
    "CI_FEED_TOKEN": "canary7zzzzzzzzzzzzzzzzz",
    "PYPI_ID_TOKEN": "canary8.aaaaaaaaaaaa.bbbbbbb",
    "PYPI_ID_TOKEN_2": "canary9.aaaaaaaaaaaa.bbbbbbb",
    "SIGSTORE_ID_TOKEN": "canary0.aaaaaaaaaaaa.bbbbb",
    "RELEASEKIT_NPM_TOKEN": "npm_canaryAzzzzzzzzzzz",
}
URL = {"CI_REPOSITORY_URL": "https://gitlab-ci-token:glcbt-64_canaryB@gitlab.com/acme/mono.git"}
ALL = {**PUBLIC, **NOT_FOR_BUILDS, **SECRETS, **URL}


def test_a_build_sees_where_it_is_and_no_more() -> None:
    """R52: neither a token nor what the mail of a user is."""
    credentials = Credentials(snapshot(ALL), mask=lambda _: None)
    assert ToolVariables().scrub(ALL, credentials.values) == PUBLIC


@pytest.mark.parametrize("name", [*SECRETS, *URL])
def test_no_line_shows_a_secret_of_the_job(name: str) -> None:
    """R34"""
    credentials = Credentials(snapshot(ALL), mask=lambda _: None)
    assert "canary" not in credentials.redact(f"it said {ALL[name]}")


def test_the_page_of_an_artifact_is_below_that_of_the_job(tmp_path: Path) -> None:
    ci = CI.of({**ALL, "CI_PROJECT_DIR": str(tmp_path)})
    page = ci.page_of_artifact(tmp_path / "a dir/.releasekit/report.html")
    job = "https://gitlab.com/acme/tools/mono/-/jobs/99"
    assert page == f"{job}/artifacts/file/a%20dir/.releasekit/report.html"


@pytest.mark.parametrize(
    "changes",
    [
        {"CI_PROJECT_DIR": "/elsewhere"},
        {"CI_PROJECT_DIR": ""},
        {"CI_JOB_URL": ""},
        {"CI_JOB_URL": "javascript:alert(1)"},
    ],
)
def test_what_the_job_does_not_keep_has_no_page(tmp_path: Path, changes: dict[str, str]) -> None:
    ci = CI.of({**ALL, "CI_PROJECT_DIR": str(tmp_path), **changes})
    assert ci.page_of_artifact(tmp_path / "report.html") == ""


def test_the_end_of_the_job_counts_from_its_start() -> None:
    at_four = datetime(2026, 11, 27, 16, tzinfo=UTC).timestamp()
    assert CI.of(ALL).job_ends == at_four


@pytest.mark.parametrize("name", ["CI_JOB_STARTED_AT", "CI_JOB_TIMEOUT"])
@pytest.mark.parametrize("value", ["", "soon", "-"])
def test_without_both_nothing_is_known_of_its_end(name: str, value: str) -> None:
    assert CI.of({**ALL, name: value}).job_ends is None
    assert CI.of({**ALL, "CI_JOB_TIMEOUT": "9" * 400}).job_ends is None


def test_only_gitlab_is_asked_for_these() -> None:
    assert CI.of({**ALL, "GITLAB_CI": ""}).job_ends is None
    assert CI.of({**ALL, "GITLAB_CI": ""}).job_page == ""
