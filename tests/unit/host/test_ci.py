from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.host.ci import CI, Origin
from releasekit.host.forges import ForgePlace
from releasekit.http.credentials import snapshot

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


GITLAB = {
    "GITLAB_CI": "true",
    "CI_SERVER_URL": "https://git.acme.example",
    "CI_API_V4_URL": "https://git.acme.example/api/v4",
    "CI_PROJECT_PATH": "acme/tools/mono",
    "CI_PIPELINE_URL": "https://git.acme.example/acme/tools/mono/-/pipelines/17",
    "CI_PIPELINE_SOURCE": "push",
    "CI_COMMIT_SHA": "5d41402abc4b2a76b9719d911017c592ae1f3c07",
    "CI_COMMIT_TAG": "v1.0",
}


def test_a_job_of_gitlab_is_of_a_project_in_groups(tmp_path: Path) -> None:
    found = CI.of({**GITLAB, "CI_PROJECT_DIR": str(tmp_path)})
    assert (found.kind, found.name, found.ref) == ("gitlab", "GitLab", "refs/tags/v1.0")
    assert not found.is_actions
    assert found.origin(tmp_path / "js") == Origin(
        project="acme/tools/mono/js",
        repository="https://git.acme.example/acme/tools/mono",
        forge="gitlab",
        run_url="https://git.acme.example/acme/tools/mono/-/pipelines/17",
    )


def test_a_workflow_that_sets_variables_of_gitlab_is_a_job_of_github_all_the_same(
    tmp_path: Path,
) -> None:
    found = CI.of({**GITLAB, **job(tmp_path)})
    assert (found.kind, found.origin(tmp_path).repository) == ("github", REPOSITORY)


def test_a_merge_request_of_gitlab_is_a_pull_request() -> None:
    """R47: `preview`, `change` and snapshots work there as well."""
    request = {
        "CI_COMMIT_TAG": "",
        "CI_PIPELINE_SOURCE": "merge_request_event",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_MERGE_REQUEST_TITLE": "Mend",
        "CI_MERGE_REQUEST_REF_PATH": "refs/merge-requests/7/head",
        "CI_MERGE_REQUEST_PROJECT_PATH": "acme/tools/mono",
        "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "acme/tools/mono",
        "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "mend",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "c0ffee",
    }
    job = CI.of({**GITLAB, **request})
    assert job.pull_request == "merge_request_event at refs/merge-requests/7/head"
    assert not job.is_from_fork()
    told = job.read_pull_request()
    assert told is not None
    assert (told.number, told.branch, told.target, told.base) == (7, "mend", "main", "c0ffee")
    assert told.commit == GITLAB["CI_COMMIT_SHA"]
    child = {"CI_PIPELINE_SOURCE": "parent_pipeline"}
    assert CI.of({**GITLAB, **request, **child}).pull_request == (
        "parent_pipeline at refs/merge-requests/7/head"
    )
    fork = {"CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "mallory/mono"}
    assert CI.of({**GITLAB, **request, **fork}).is_from_fork()


# What the runner 1.0.8 of Gitea 1.26.0 has set, as it is.
GITEA = {
    "ACT": "true",
    "ACTIONS_RESULTS_URL": "http://gitea:3000",
    "ACTIONS_RUNTIME_TOKEN": "of-artifacts",
    "ACTIONS_RUNTIME_URL": "http://gitea:3000/api/actions_pipeline/",
    "CI": "true",
    "GITEA_ACTIONS": "true",
    "GITEA_ACTIONS_RUNNER_VERSION": "v1.0.8",
    "GITHUB_ACTION": "release",
    "GITHUB_ACTIONS": "true",
    "GITHUB_ACTION_PATH": "",
    "GITHUB_ACTION_REF": "",
    "GITHUB_ACTION_REPOSITORY": "",
    "GITHUB_ACTOR": "ada",
    "GITHUB_API_URL": "http://gitea:3000/api/v1",
    "GITHUB_BASE_REF": "",
    "GITHUB_EVENT_NAME": "push",
    "GITHUB_GRAPHQL_URL": "",
    "GITHUB_HEAD_REF": "",
    "GITHUB_JOB": "publish",
    "GITHUB_REF": "refs/tags/v1",
    "GITHUB_REF_NAME": "v1",
    "GITHUB_REF_TYPE": "tag",
    "GITHUB_REPOSITORY": "acme/mono",
    "GITHUB_REPOSITORY_OWNER": "acme",
    "GITHUB_RETENTION_DAYS": "",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_RUN_ID": "17",
    "GITHUB_RUN_NUMBER": "3",
    "GITHUB_SERVER_URL": "http://gitea:3000",
    "GITHUB_SHA": "5d41402abc4b2a76b9719d911017c592ae1f3c07",
    "GITHUB_WORKFLOW": "",
    "RUNNER_ARCH": "amd64",
    "RUNNER_OS": "linux",
    "RUNNER_PERFLOG": "/dev/null",
    "RUNNER_TRACKING_ID": "",
}
# Each of GITHUB_… is there as FORGEJO_…, too, and so is the token of the job.
# https://code.forgejo.org/forgejo/runner/src/branch/main/act/runner/run_context.go (withGithubEnv)
FORGEJO = {
    **GITEA,
    **{
        name.replace("GITHUB_", "FORGEJO_"): value
        for name, value in GITEA.items()
        if name.startswith("GITHUB_")
    },
    "FORGEJO_ACTIONS_RUNNER_VERSION": "v12.0.0",
    "FORGEJO_TOKEN": "of-the-job",
    "GITHUB_TOKEN": "of-the-job",
}


@pytest.mark.parametrize(
    ("environment", "kind", "run"), [(GITEA, "gitea", 17), (FORGEJO, "forgejo", 3)], ids=str
)
def test_heirs_of_gitea_run_actions_and_are_no_github(
    tmp_path: Path, environment: dict[str, str], kind: str, run: int
) -> None:
    """Their runner may know the server by a name in a network of containers, and the event has the
    address for people.
    """
    event = tmp_path / "event.json"
    event.write_text('{"repository": {"html_url": "https://git.acme.example/sub/acme/mono"}}')
    job = {**environment, "GITHUB_WORKSPACE": str(tmp_path), "GITHUB_EVENT_PATH": str(event)}
    found = CI.of(job)
    assert (found.kind, found.is_actions) == (kind, True)
    assert str(found.forge) == "gitea:http://gitea:3000/acme/mono"
    assert found.forge
    assert found.forge.api == "http://gitea:3000/api/v1"
    page = "https://git.acme.example/sub/acme/mono"
    assert found.origin(tmp_path / "js") == Origin(
        project="acme/mono/js",
        repository=page,
        forge="gitea",
        run_url=f"{page}/actions/runs/{run}",
    )


@pytest.mark.parametrize(
    "event",
    [
        None,
        "[",
        "[]",
        '{"repository": 7}',
        '{"repository": {"html_url": "https://evil.example/"}}',
        '{"repository": {"html_url": "javascript:alert(1)//acme/mono"}}',
    ],
)
def test_an_event_that_tells_no_page_leaves_a_job_of_gitea_with_the_servers(
    tmp_path: Path, event: str | None
) -> None:
    file = tmp_path / "event.json"
    if event is not None:
        file.write_text(event)
    job = {**GITEA, "GITHUB_SERVER_URL": "https://git.acme.example", "GITHUB_EVENT_PATH": str(file)}
    found = CI.of(job).origin(tmp_path)
    script = event is not None and "javascript" in event
    assert found.repository == ("" if script else "https://git.acme.example/acme/mono")
    assert found.run_url == ("" if script else f"{found.repository}/actions/runs/17")


# https://docs.gitlab.com/install/relative_url/
BELOW = {**GITLAB, "CI_SERVER_URL": "https://acme.example/gitlab"}
CODEBERG = ForgePlace.at("gitea", "https://codeberg.org", "acme/mono")


@pytest.mark.parametrize(
    ("environment", "told", "remote", "found"),
    [
        ({}, None, "git@codeberg.org:acme/mono.git", "gitea:https://codeberg.org/acme/mono"),
        ({}, None, "https://gitlab.com/a/b/c.git", "gitlab:https://gitlab.com/a/b/c"),
        ({}, None, "https://github.com/a/b.git", "github:https://github.com/a/b"),
        ({}, None, "https://github.com/a/b/c.git", None),
        ({}, None, "https://git.acme.example/a/b.git", None),
        ({}, None, "/srv/git/mono.git", None),
        ({}, CODEBERG, "https://github.com/a/b.git", "gitea:https://codeberg.org/acme/mono"),
        (GITLAB, None, "https://git.acme.example/x/y.git", "gitlab:https://git.acme.example/x/y"),
        # A GitLab may be installed below another server; ssh leads to the project without that.
        (
            BELOW,
            None,
            "https://acme.example/gitlab/x/y.git",
            "gitlab:https://acme.example/gitlab/x/y",
        ),
        (BELOW, None, "git@acme.example:x/y.git", "gitlab:https://acme.example/gitlab/x/y"),
        # A token of this job is not for another server, whatever a remote says.
        (GITLAB, None, "https://gitlab.com/x/y.git", None),
        (GITLAB, CODEBERG, "/srv/git", "gitea:https://codeberg.org/acme/mono"),
    ],
)
def test_the_forge_of_a_remote_is_known_by_its_host_or_told(
    environment: dict[str, str], told: ForgePlace | None, remote: str, found: str | None
) -> None:
    place = CI.of(environment).with_inputs(told, "").forge_of(remote)
    assert (str(place) if place else None) == found


def test_what_the_user_names_comes_before_what_the_ci_tells(tmp_path: Path) -> None:
    told = CI.of({}).with_inputs(CODEBERG, "https://ci.example/9")
    assert told.origin(tmp_path) == Origin(
        project="acme/mono",
        repository="https://codeberg.org/acme/mono",
        forge="gitea",
        run_url="https://ci.example/9",
    )


# What these give to a job of the tag v1.0, with the names of what it must not show.
# https://www.jenkins.io/doc/book/pipeline/jenkinsfile/#using-environment-variables
JENKINS = {
    "BRANCH_NAME": "v1.0",
    "BUILD_NUMBER": "17",
    "BUILD_URL": "http://jenkins:8080/job/mono/17/",
    "CI": "true",
    "GIT_COMMIT": "5d41402abc4b2a76b9719d911017c592ae1f3c07",
    "GIT_URL": "git@git.acme.example:acme/mono.git",
    "JENKINS_URL": "http://jenkins:8080/",
    "TAG_NAME": "v1.0",
    "WORKSPACE": "/var/lib/jenkins/workspace/mono",
}
# https://circleci.com/docs/reference/variables/
CIRCLECI = {
    "CI": "true",
    "CIRCLECI": "true",
    "CIRCLE_BUILD_URL": "https://circleci.com/gh/acme/mono/17",
    "CIRCLE_OIDC_TOKEN": "of-the-job",
    "CIRCLE_OIDC_TOKEN_V2": "of-the-job",
    "CIRCLE_PROJECT_REPONAME": "mono",
    "CIRCLE_PROJECT_USERNAME": "acme",
    "CIRCLE_TAG": "v1.0",
}
# https://buildkite.com/docs/pipelines/configure/environment-variables
BUILDKITE = {
    "BUILDKITE": "true",
    "BUILDKITE_AGENT_ACCESS_TOKEN": "of-the-agent",
    "BUILDKITE_BUILD_URL": "https://buildkite.com/acme/mono/builds/17",
    "BUILDKITE_PULL_REQUEST": "false",
    "BUILDKITE_REPO": "https://github.com/acme/mono.git",
    "BUILDKITE_TAG": "v1.0",
    "CI": "true",
}
# https://learn.microsoft.com/azure/devops/pipelines/build/variables
AZURE = {
    "BUILD_BUILDID": "17",
    "BUILD_REPOSITORY_URI": "https://dev.azure.com/acme/_git/mono",
    "BUILD_SOURCEBRANCH": "refs/tags/v1.0",
    "SYSTEM_ACCESSTOKEN": "of-the-job",
    "TF_BUILD": "True",
}


@pytest.mark.parametrize(
    ("environment", "hidden"),
    [
        (JENKINS, set()),
        (CIRCLECI, {"CIRCLE_OIDC_TOKEN", "CIRCLE_OIDC_TOKEN_V2"}),
        (BUILDKITE, {"BUILDKITE_AGENT_ACCESS_TOKEN"}),
        (AZURE, {"SYSTEM_ACCESSTOKEN"}),
    ],
    ids=["jenkins", "circleci", "buildkite", "azure"],
)
def test_of_any_other_ci_nothing_is_taken_but_its_secrets_away(
    tmp_path: Path, environment: dict[str, str], hidden: set[str]
) -> None:
    """Its user says what there is to know: docs/other-ci.md."""
    taken = snapshot(environment)
    assert taken.secrets.keys() == hidden
    found = CI.of(taken.environment)
    assert (found.kind, found.forge, found.pull_request) == ("other", None, "")
    assert not found.is_actions
    assert found.origin(tmp_path / "mono") == Origin(project="mono")


@pytest.mark.parametrize(
    ("environment", "ref"),
    [
        ({"CIRCLE_BRANCH": "beta/2"}, "refs/heads/beta/2"),
        ({"CIRCLE_TAG": "v1"}, "refs/tags/v1"),
        ({"CIRCLE_BRANCH": "pull/12", "CIRCLE_PR_NUMBER": "12"}, "refs/pull/12"),
        ({"BUILDKITE_BRANCH": "next", "BUILDKITE_PULL_REQUEST": "false"}, "refs/heads/next"),
        ({"BUILDKITE_BRANCH": "next", "BUILDKITE_PULL_REQUEST": "12"}, "refs/pull/12"),
        ({"BUILDKITE_BRANCH": "v1", "BUILDKITE_TAG": "v1"}, "refs/tags/v1"),
        ({"BUILD_SOURCEBRANCH": "refs/heads/next"}, "refs/heads/next"),
        ({"BUILD_SOURCEBRANCH": "refs/pull/12/merge"}, "refs/pull/12/merge"),
        ({"BUILD_SOURCEBRANCH": "refs/tags/v1"}, "refs/tags/v1"),
        ({"BITBUCKET_BRANCH": "next"}, "refs/heads/next"),
        ({"BITBUCKET_BRANCH": "topic", "BITBUCKET_PR_ID": "12"}, "refs/pull/12"),
        ({"TRAVIS_BRANCH": "next", "TRAVIS_PULL_REQUEST": "false"}, "refs/heads/next"),
        ({"TRAVIS_BRANCH": "v1", "TRAVIS_TAG": "v1"}, "refs/tags/v1"),
        ({"DRONE_BRANCH": "main", "DRONE_PULL_REQUEST": "12"}, "refs/pull/12"),
        ({"DRONE_BRANCH": "next"}, "refs/heads/next"),
        ({"CI": "woodpecker", "CI_COMMIT_BRANCH": "next"}, "refs/heads/next"),
        ({"CI": "woodpecker", "CI_COMMIT_TAG": "v1"}, "refs/tags/v1"),
        ({"JENKINS_HOME": "/j", "BRANCH_NAME": "next", "GIT_BRANCH": "x"}, "refs/heads/next"),
        ({"JENKINS_URL": "j", "BRANCH_NAME": "PR-12", "CHANGE_ID": "12"}, "refs/pull/12"),
        ({"JENKINS_URL": "j", "BRANCH_NAME": "v1", "TAG_NAME": "v1"}, "refs/tags/v1"),
        ({"JENKINS_URL": "j", "GIT_BRANCH": "origin/beta/2"}, "refs/heads/beta/2"),
        # Where the name of the remote ends is unknown, and a commit has none.
        ({"JENKINS_URL": "j", "GIT_BRANCH": "upstream/next"}, ""),
        ({"JENKINS_URL": "j", "GIT_BRANCH": "detached"}, ""),
        # Anybody may call a variable so.
        ({"GIT_BRANCH": "origin/next", "BRANCH_NAME": "next", "CI_COMMIT_BRANCH": "next"}, ""),
        ({"CIRCLE_BRANCH": "next", "DRONE_BRANCH": "main"}, ""),
        ({"GITHUB_ACTIONS": "true", "CIRCLE_BRANCH": "next"}, ""),
        ({"GITLAB_CI": "true", "CIRCLE_BRANCH": "next"}, ""),
    ],
    ids=str,
)
def test_a_branch_is_what_the_variables_of_each_ci_say(
    environment: dict[str, str], ref: str
) -> None:
    """R68: of a tag or a pull request, they name something else."""
    assert CI.of(environment).ref == ref
