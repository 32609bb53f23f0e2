from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.host.ci import CI, Origin

if TYPE_CHECKING:
    from pathlib import Path

REPOSITORY = "https://github.com/acme/widgets"


def job(checkout: Path, **changes: str) -> dict[str, str]:
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "acme/widgets",
        "GITHUB_RUN_ID": "17",
        "GITHUB_WORKSPACE": str(checkout),
        **changes,
    }


def test_a_job_is_of_a_repository_and_a_run(tmp_path: Path) -> None:
    assert CI.of(job(tmp_path)).origin(tmp_path) == Origin(
        project="acme/widgets", repository=REPOSITORY, run_url=f"{REPOSITORY}/actions/runs/17"
    )


def test_a_workspace_below_the_checkout_is_named_with_its_path(tmp_path: Path) -> None:
    inner = tmp_path / "js" / "apps"
    assert CI.of(job(tmp_path)).origin(inner).project == "acme/widgets/js/apps"
    assert CI.of(job(inner)).origin(tmp_path).project == "acme/widgets"
    assert CI.of(job(tmp_path, GITHUB_WORKSPACE="")).origin(inner).project == "acme/widgets"


def test_a_laptop_has_a_directory_only(tmp_path: Path) -> None:
    there = job(tmp_path, GITHUB_ACTIONS="")
    assert CI.of(there).origin(tmp_path / "widgets") == Origin(project="widgets")


@pytest.mark.parametrize(
    ("changes", "repository", "run"),
    [
        ({"GITHUB_SERVER_URL": "javascript:alert(1)//"}, "", ""),
        ({"GITHUB_SERVER_URL": "http://ghe.example"}, "", ""),
        ({"GITHUB_SERVER_URL": "https://user@ghe.example"}, "", ""),
        ({"GITHUB_SERVER_URL": ""}, "", ""),
        ({"GITHUB_RUN_ID": "17/../.."}, REPOSITORY, ""),
        ({"GITHUB_RUN_ID": ""}, REPOSITORY, ""),
        (
            {"GITHUB_SERVER_URL": "http://127.0.0.1:3000"},
            "http://127.0.0.1:3000/acme/widgets",
            "http://127.0.0.1:3000/acme/widgets/actions/runs/17",
        ),
    ],
)
def test_only_addresses_that_are_safe_to_follow_are_taken(
    tmp_path: Path, changes: dict[str, str], repository: str, run: str
) -> None:
    found = CI.of(job(tmp_path, **changes)).origin(tmp_path)
    assert (found.repository, found.run_url) == (repository, run)


def test_a_name_that_is_none_of_a_repository_names_nothing(tmp_path: Path) -> None:
    for name in ("", "acme", "acme/widgets/x", "a b/c", "acme/widgets\n"):
        assert CI.of(job(tmp_path, GITHUB_REPOSITORY=name)).origin(tmp_path) == Origin(
            project=tmp_path.name
        )


def test_a_checkout_that_cannot_be_followed_costs_no_results(tmp_path: Path) -> None:
    """R4: it is looked for once all is uploaded, before the results are written."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert CI.of(job(loop)).origin(tmp_path).project == "acme/widgets"


@pytest.mark.parametrize(
    ("event", "ref", "said"),
    [
        ("pull_request", "refs/pull/7/merge", "pull_request at refs/pull/7/merge"),
        ("pull_request_review", "refs/pull/7/merge", "pull_request_review at refs/pull/7/merge"),
        ("pull_request_target", "refs/heads/main", "pull_request_target at refs/heads/main"),
        (
            "push",
            "refs/heads/gh-readonly-queue/main/pr-7-0a",
            "push at refs/heads/gh-readonly-queue/main/pr-7-0a",
        ),
        (
            "merge_group",
            "refs/heads/gh-readonly-queue/main/pr-7-0a",
            "merge_group at refs/heads/gh-readonly-queue/main/pr-7-0a",
        ),
        ("pull_request", "", "pull_request at no ref"),
        # GitHub gives a pull request that was merged the branch that it was merged into.
        ("pull_request", "refs/heads/main", ""),
        ("push", "refs/heads/main", ""),
        ("workflow_dispatch", "refs/heads/main", ""),
        # What the default branch runs, whoever wrote the comment.
        ("issue_comment", "refs/heads/main", ""),
        ("", "", ""),
    ],
)
def test_a_job_is_of_a_pull_request_until_that_is_merged(event: str, ref: str, said: str) -> None:
    assert CI.of({"GITHUB_EVENT_NAME": event, "GITHUB_REF": ref}).pull_request == said
