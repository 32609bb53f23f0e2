"""The CI that a run takes place on, as one value that is made from its environment."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self
from urllib.parse import quote, urlsplit

from msgspec import Struct

from releasekit.fields import replace
from releasekit.host.files import read_head
from releasekit.host.forges import (
    API,
    NESTED_REPOSITORY,
    REPOSITORY,
    SERVER,
    ForgePlace,
    Pages,
    is_repository,
    page_of_run,
    split_remote,
)
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.announced import ForgeKind

CIKind = Literal["github", "forgejo", "gitea", "gitlab", "other"]
_NAMES: Final[dict[CIKind, str]] = {
    "github": "GitHub",
    "forgejo": "Forgejo",
    "gitea": "Gitea",
    "gitlab": "GitLab",
    "other": "the CI",
}
# https://docs.github.com/en/actions/reference/workflows-and-actions/variables
API_URL: Final = "GITHUB_API_URL"
SERVER_URL: Final = "GITHUB_SERVER_URL"
# A directory of the job, in which the runner also keeps the files that it obeys.
TEMPORARY: Final = "RUNNER_TEMP"
OUTPUTS: Final = "GITHUB_OUTPUT"
SUMMARY: Final = "GITHUB_STEP_SUMMARY"
# The files that the runner makes before a step and obeys after it. What follows the script of a job
# of GitLab sources the last one.
# https://gitlab.com/gitlab-org/gitlab-runner/-/blob/v18.6.0/shells/abstract.go (writeExports)
COMMAND_FILES: Final = ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", OUTPUTS, SUMMARY, "GITLAB_ENV")
# Where a job asks for an ID token, and what with.
IDENTITY_URL: Final = "ACTIONS_ID_TOKEN_REQUEST_URL"
IDENTITY_BEARER: Final = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
# The token of a job of GitLab CI/CD. https://docs.gitlab.com/ci/jobs/ci_job_token/
JOB_BEARER: Final = "CI_JOB_TOKEN"
# What every child process may see, as an expression.
HARMLESS: Final = (
    "CI|GITHUB_ACTIONS|GITHUB_(SHA|REF|REF_NAME|REPOSITORY|SERVER_URL|WORKSPACE)"
    "|RUNNER_(OS|ARCH|TEMP|TOOL_CACHE)"
    "|GITLAB_CI|CI_(COMMIT_(SHA|TAG|BRANCH|REF_NAME)|PROJECT_(PATH|URL|DIR)|SERVER_URL)"
)
_HEIRS: Final[tuple[CIKind, ...]] = ("forgejo", "gitea")
# An address that a page may link to; plain HTTP stays on this machine.
_LINKED: Final = re.compile(
    r"https://[A-Za-z0-9.-]+(:[0-9]+)?|http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?"
)

# Events that start a job for a pull request, which any user may open.
# https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows
PULL_REQUEST_EVENTS: Final = frozenset(
    {
        "pull_request",
        "pull_request_target",
        "pull_request_review",
        "pull_request_review_comment",
        "merge_group",
        # https://docs.gitlab.com/ci/jobs/job_rules/#ci_pipeline_source-predefined-variable
        "merge_request_event",
        "external_pull_request_event",
    }
)
# Events whose jobs have the secrets of the repository, and mostly work on what a stranger wrote:
# the commit of a pull request, or of the run that was started by one.
# https://securitylab.github.com/resources/github-actions-preventing-pwn-requests/
FOREIGN_EVENTS: Final = ("pull_request_target", "workflow_run", "issue_comment")
# The refs where a merge queue tries out what waits in it: the event `merge_group`; and those of a
# merge request, which the pipelines that its own one starts have as well, of another event.
MERGE_QUEUE: Final = "refs/heads/gh-readonly-queue/"
_REQUEST_REFS: Final = (MERGE_QUEUE, "refs/merge-requests/")
# What says the branch that a job elsewhere is of, the tag, and the pull request. Of these two, the
# first one may hold that tag, the branch that is to be merged, or the one that it is merged into.
_REFS: Final = (
    # https://circleci.com/docs/reference/variables/: the number is that of a fork's pull request
    ("CIRCLE_BRANCH", "CIRCLE_TAG", "CIRCLE_PR_NUMBER"),
    # https://buildkite.com/docs/pipelines/configure/environment-variables
    ("BUILDKITE_BRANCH", "BUILDKITE_TAG", "BUILDKITE_PULL_REQUEST"),
    # https://learn.microsoft.com/azure/devops/pipelines/build/variables: refs in full
    ("BUILD_SOURCEBRANCH", "", "SYSTEM_PULLREQUEST_PULLREQUESTID"),
    # https://support.atlassian.com/bitbucket-cloud/docs/variables-and-secrets/
    ("BITBUCKET_BRANCH", "BITBUCKET_TAG", "BITBUCKET_PR_ID"),
    # https://docs.travis-ci.com/user/environment-variables/#default-environment-variables
    ("TRAVIS_BRANCH", "TRAVIS_TAG", "TRAVIS_PULL_REQUEST"),
    # https://docs.drone.io/pipeline/environment/reference/
    ("DRONE_BRANCH", "DRONE_TAG", "DRONE_PULL_REQUEST"),
)
# https://woodpecker-ci.org/docs/usage/environment
_REF_OF_WOODPECKER: Final = ("CI_COMMIT_BRANCH", "CI_COMMIT_TAG", "CI_COMMIT_PULL_REQUEST")
# https://plugins.jenkins.io/workflow-multibranch, and https://plugins.jenkins.io/git, which says
# the branch of the remote.
_REFS_OF_JENKINS: Final = (
    ("BRANCH_NAME", "TAG_NAME", "CHANGE_ID"),
    ("GIT_BRANCH", "TAG_NAME", "CHANGE_ID"),
)
_NUMBER: Final = re.compile(r"[0-9]{1,20}")
# What GitLab's runner takes for it. https://pkg.go.dev/strconv#ParseBool
_TRUE: Final = frozenset({"1", "t", "true"})
_MAX_EVENT_BYTES: Final = 32 * 1024 * 1024


class Origin(Struct, frozen=True, kw_only=True):
    """Where a run takes place. `project` is what a heading calls what is released, `repository` the
    page of its sources at a forge of the kind `forge`, and `run_url` that of the workflow run; both
    may be empty.
    """

    project: str = ""
    repository: str = ""
    forge: ForgeKind = "github"
    run_url: str = ""

    @property
    def pages(self) -> Pages:
        return Pages(self.forge, self.repository)


class PullRequest(Struct, frozen=True, kw_only=True):
    """`commit` is the newest of its `branch`, in a `repository` that may be another than the one it
    is to be merged `into`, on top of the commit `base`, the newest of the branch `target`; both are
    OWNER/NAME. All of it may be somebody else's text.
    """

    number: int
    title: str
    commit: str
    branch: str
    repository: str
    into: str
    base: str
    target: str


class CI(Struct, frozen=True, kw_only=True):
    """The CI that this process runs on. `server` and `api` are those of its forge, `repository` is
    OWNER/NAME there, `forge` all of that as one value, and `checkout` the directory of the sources;
    all but `server` and `api` may be empty. A laptop may give the addresses of a GitHub, too.
    `told_forge` is a forge that the user names instead. `is_debugged` where somebody runs the job
    again with debug logging. Only GitLab has a `job_page`, with the artifacts, and says when the
    `job_ends`, and so loses them.
    """

    kind: CIKind
    server: str
    api: str
    repository: str
    forge: ForgePlace | None
    run_url: str
    event: str
    ref: str
    checkout: str
    is_debugged: bool = False
    job_page: str = ""
    job_ends: float | None = None
    told_forge: ForgePlace | None = None
    _event_file: str = ""
    _request: PullRequest | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        is_gitlab = environment.get("GITLAB_CI") == "true"
        # A workflow may set the variables of GitLab, as where it tries out a pipeline.
        if is_gitlab and environment.get("GITHUB_ACTIONS") != "true":
            return cls._of_gitlab(environment)
        return cls._of_actions(environment)

    @classmethod
    def _of_actions(cls, environment: Mapping[str, str]) -> Self:
        """GitHub Actions, and those that have its variables; everything else, too."""
        kind: CIKind = "other"
        if environment.get("GITHUB_ACTIONS") == "true":
            # https://forgejo.org/docs/latest/user/actions/reference/
            told = {name: environment.get(f"{name}_ACTIONS") for name in ("FORGEJO", "GITEA")}
            kind = next((name for name in _HEIRS if told[name.upper()] == "true"), "github")
        server = environment.get(SERVER_URL, SERVER).rstrip("/")
        api = environment.get(API_URL, API)
        named = environment.get("GITHUB_REPOSITORY", "")
        repository = named if REPOSITORY.fullmatch(named) else ""
        forge_kind: ForgeKind = "gitea" if kind in _HEIRS else "github"
        forge = ForgePlace(kind=forge_kind, server=server, repository=repository, api=api)
        # https://codeberg.org/forgejo/forgejo/src/branch/forgejo/models/actions/run.go (HTMLURL)
        number = "GITHUB_RUN_NUMBER" if kind == "forgejo" else "GITHUB_RUN_ID"
        run = environment.get(number, "") if repository and kind != "other" else ""
        return cls(
            kind=kind,
            server=server,
            api=api,
            repository=repository,
            forge=forge if repository else None,
            run_url=page_of_run(forge.page, run) if _NUMBER.fullmatch(run) else "",
            event=environment.get("GITHUB_EVENT_NAME", ""),
            ref=environment.get("GITHUB_REF", "")
            or (_find_ref_elsewhere(environment) if kind == "other" else ""),
            checkout=environment.get("GITHUB_WORKSPACE", ""),
            is_debugged=environment.get("RUNNER_DEBUG") == "1",
            _event_file=environment.get("GITHUB_EVENT_PATH", ""),
        )

    @classmethod
    def _of_gitlab(cls, environment: Mapping[str, str]) -> Self:
        """https://docs.gitlab.com/ci/variables/predefined_variables/"""
        named = environment.get("CI_PROJECT_PATH", "")
        repository = named if NESTED_REPOSITORY.fullmatch(named) else ""
        server = environment.get("CI_SERVER_URL", "").rstrip("/")
        api = environment.get("CI_API_V4_URL", "")
        tag, branch = environment.get("CI_COMMIT_TAG"), environment.get("CI_COMMIT_BRANCH")
        ref = f"refs/tags/{tag}" if tag else f"refs/heads/{branch}" if branch else ""
        return cls(
            kind="gitlab",
            server=server,
            api=api,
            repository=repository,
            forge=ForgePlace(kind="gitlab", server=server, repository=repository, api=api)
            if repository
            else None,
            run_url=environment.get("CI_PIPELINE_URL", ""),
            event=environment.get("CI_PIPELINE_SOURCE", ""),
            ref=environment.get("CI_MERGE_REQUEST_REF_PATH") or ref,
            checkout=environment.get("CI_PROJECT_DIR", ""),
            is_debugged=environment.get("CI_DEBUG_TRACE", "").lower() in _TRUE,
            job_page=environment.get("CI_JOB_URL", ""),
            job_ends=_end_of_gitlab_job(environment),
            _request=_request_of_gitlab(environment),
        )

    def with_inputs(self, forge: ForgePlace | None, run_url: str) -> Self:
        """With what the user says instead."""
        return replace(self, told_forge=forge, run_url=run_url or self.run_url)

    def forge_of(self, remote: str) -> ForgePlace | None:
        """The one with the releases of a git remote, which the URL of that or the user tells; in a
        job, one of the same server alone, as its token is for no other.
        """
        if self.told_forge:
            return self.told_forge
        host, path = split_remote(remote)
        if host != self.host:
            return ForgePlace.of_remote(remote) if self.kind == "other" else None
        # A GitLab may be installed below another server.
        path = path.removeprefix(f"{urlsplit(self.server).path.strip('/')}/")
        kind: ForgeKind = self.forge.kind if self.forge else "github"
        place = ForgePlace(kind=kind, server=self.server, repository=path, api=self.api)
        return place if is_repository(kind, path) else None

    @property
    def name(self) -> str:
        """As sentences call who runs it."""
        return _NAMES[self.kind]

    @property
    def is_actions(self) -> bool:
        """Whether its runner obeys the workflow commands and the command files of GitHub's."""
        return self.kind in {"github", *_HEIRS}

    @property
    def host(self) -> str:
        return urlsplit(self.server).hostname or ""

    @property
    def pull_request(self) -> str:
        """By which event, and at which ref, this is a job of a pull request; empty where it is
        none, or where that was merged.

        https://docs.github.com/en/actions/reference/workflows-and-actions/contexts (`github.ref`)
        """
        merged = self.ref.startswith("refs/heads/") and self.event != "pull_request_target"
        is_of_one = self.ref.startswith(_REQUEST_REFS) or (
            self.event in PULL_REQUEST_EVENTS and not merged
        )
        return f"{self.event} at {self.ref or 'no ref'}" if is_of_one else ""

    def is_from_fork(self) -> bool:
        """Whether the pull request is, which GitHub gives neither secrets nor ID tokens."""
        request = self.read_pull_request()
        return request is not None and request.repository != request.into

    def read_pull_request(self) -> PullRequest | None:
        """None where no event `pull_request` says which it is.

        https://docs.github.com/webhooks/webhook-events-and-payloads#pull_request
        """
        if self._request or self.event != "pull_request":
            return self._request
        try:
            event = parse_json(read_head(Path(self._event_file), _MAX_EVENT_BYTES))
            told = event["pull_request"]
            return PullRequest(
                number=int(told.get("number", 0)),
                title=str(told.get("title", "")),
                commit=str(told["head"].get("sha", "")),
                branch=str(told["head"].get("ref", "")),
                repository=str(told["head"]["repo"]["full_name"]),
                into=str(told["base"]["repo"]["full_name"]),
                base=str(told["base"].get("sha", "")),
                target=str(told["base"].get("ref", "")),
            )
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def page_of_artifact(self, path: Path) -> str:
        """Of a file in the checkout that the job keeps; empty where there is none."""
        inner = _below(path, self.checkout) if self.checkout and is_linked(self.job_page) else ()
        return f"{self.job_page}/artifacts/file/{quote('/'.join(inner))}" if inner else ""

    def origin(self, root: Path) -> Origin:
        """`root` is that of the workspace. Away from a runner, a run has no page but the one
        that the user names, and its project is named after its directory.
        """
        here = self.told_forge or (self.forge if self.kind != "other" else None)
        if here is None:
            return Origin(project=root.name, run_url=_keep_linked(self.run_url))
        shown = self.find_public(here)
        return Origin(
            project="/".join((shown.repository, *_below(root, self.checkout))),
            repository=_keep_linked(shown.page),
            forge=shown.kind,
            run_url=_keep_linked(self.run_url.replace(here.page, shown.page)),
        )

    def find_public(self, place: ForgePlace) -> ForgePlace:
        """At the address that people reach it by."""
        page = self._find_page() if place.server == self.server else ""
        return replace(place, server=page.removesuffix(f"/{self.repository}") or place.server)

    def _find_page(self) -> str:
        """That of the repository, where a runner may reach the server by another address than
        people do, as it does in a network of containers; else empty.
        """
        if self.kind not in _HEIRS or self.told_forge:
            return ""
        try:
            event = parse_json(read_head(Path(self._event_file), _MAX_EVENT_BYTES))
            page = str(event["repository"]["html_url"])
        except (OSError, ValueError, LookupError, TypeError):
            return ""
        return page if page.endswith(f"/{self.repository}") else ""


def _request_of_gitlab(environment: Mapping[str, str]) -> PullRequest | None:
    """https://docs.gitlab.com/ci/variables/predefined_variables/#predefined-variables-for-merge-request-pipelines"""
    number = environment.get("CI_MERGE_REQUEST_IID", "")
    if not _NUMBER.fullmatch(number):
        return None
    return PullRequest(
        number=int(number),
        title=environment.get("CI_MERGE_REQUEST_TITLE", ""),
        # Of a pipeline for the merged result, the commit is the merge.
        commit=environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA")
        or environment.get("CI_COMMIT_SHA", ""),
        branch=environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", ""),
        repository=environment.get("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", ""),
        into=environment.get("CI_MERGE_REQUEST_PROJECT_PATH", ""),
        base=environment.get("CI_MERGE_REQUEST_DIFF_BASE_SHA", ""),
        target=environment.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", ""),
    )


def _find_ref_elsewhere(environment: Mapping[str, str]) -> str:
    """What the job was started for, as GitHub calls it; empty where nothing says it, or not one
    alone.
    """
    asked = [*_REFS]
    if "woodpecker" in {environment.get("CI"), environment.get("CI_SYSTEM_NAME")}:
        asked.append(_REF_OF_WOODPECKER)
    if environment.get("JENKINS_URL") or environment.get("JENKINS_HOME"):
        asked += _REFS_OF_JENKINS
    found = set()
    for name, tag_name, request_name in asked:
        tag, request = (environment.get(each, "") for each in (tag_name, request_name))
        branch = environment.get(name, "")
        if name == "GIT_BRANCH":
            # Of a remote by another name, where that ends and the branch begins is unknown.
            told = "" if environment.get("BRANCH_NAME") else branch
            remote, _, branch = told.partition("/")
            branch = branch if remote == "origin" else ""
        if tag:
            found.add(f"refs/tags/{tag}")
        elif request not in {"", "false"}:
            found.add(f"refs/pull/{request}")
        elif branch:
            found.add(branch if branch.startswith("refs/") else f"refs/heads/{branch}")
    return found.pop() if len(found) == 1 else ""


def _end_of_gitlab_job(environment: Mapping[str, str]) -> float | None:
    """In seconds since the epoch: the time that the image and the checkout took counts, too."""
    try:
        started = datetime.fromisoformat(environment["CI_JOB_STARTED_AT"])
        return started.timestamp() + int(environment["CI_JOB_TIMEOUT"])
    except (LookupError, ValueError, OverflowError):
        return None


def is_linked(url: str) -> bool:
    """Whether a page may link to it."""
    scheme, _, rest = url.partition("://")
    return _LINKED.fullmatch(f"{scheme}://{rest.partition('/')[0]}") is not None


def _keep_linked(url: str) -> str:
    """It; empty where no page may link to it."""
    return url if is_linked(url) else ""


def _below(root: Path, checkout: str) -> tuple[str, ...]:
    """The parts of the path from one to the other; none where it leads elsewhere."""
    try:
        top = Path(checkout).resolve() if checkout else root
    except (RuntimeError, OSError):  # a loop of links, before Python 3.13 and since
        return ()
    return root.relative_to(top).parts if root.is_relative_to(top) else ()
