"""The job that signs, as its CI says it."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, Self

from msgspec import Struct, field

from releasekit.host.forges import page_of_run
from releasekit.http.identity import read_claims

if TYPE_CHECKING:
    from collections.abc import Mapping

# https://docs.github.com/actions/reference/security/oidc#oidc-token-claims
_WORKFLOW: Final = re.compile(r"(?P<repository>[^/@]+/[^/@]+)/(?P<path>[^@]+)@(?P<ref>.+)")
_REPOSITORY: Final = re.compile(r"[^/\s]+/[^/\s]+")
# https://docs.gitlab.com/ci/secrets/id_token_authentication/#token-payload; the host in front.
_CI_FILE: Final = re.compile(
    r"[^/@]+/(?P<repository>[^/@]+(?:/[^/@]+)+)//(?P<path>[^@]+)@(?P<ref>.+)"
)
# What npm's client tells of a job of GitLab, as far as it says which build it is: no message, title
# or description, no person, and no setting of the server.
# https://github.com/npm/cli/blob/latest/workspaces/libnpmpublish/lib/provenance.js
_VARIABLES: Final = (
    *("CI", "GITLAB_CI", "CI_SERVER_URL", "CI_SERVER_VERSION", "CI_CONFIG_PATH"),
    *("CI_PROJECT_ID", "CI_PROJECT_PATH", "CI_PROJECT_URL", "CI_PROJECT_VISIBILITY"),
    *("CI_COMMIT_SHA", "CI_COMMIT_REF_NAME", "CI_COMMIT_REF_PROTECTED"),
    *("CI_PIPELINE_ID", "CI_PIPELINE_SOURCE", "CI_PIPELINE_URL"),
    *("CI_JOB_ID", "CI_JOB_NAME", "CI_JOB_STAGE", "CI_JOB_URL", "CI_RUNNER_ID"),
    "CI_RUNNER_EXECUTABLE_ARCH",
)


class Job(Struct, frozen=True, kw_only=True):
    """What the claims of its ID token say. `server` is like https://github.com, `repository` may
    have more than two parts at GitLab, `visibility` is that of the repository, `runner_environment`
    "github-hosted", "gitlab-hosted" or "self-hosted", and `environment` is empty for a job that
    deploys to none. `workflow_path` is the file that was triggered, of the ref `workflow_git_ref`,
    and `is_reusable` where another one defines the job. `variables` of its environment say more.
    """

    kind: Literal["github", "gitlab"]
    server: str
    repository: str
    repository_id: str
    repository_owner_id: str
    visibility: str
    ref: str
    sha: str
    event_name: str
    run_id: str
    run_url: str
    runner_environment: str
    workflow_path: str
    workflow_git_ref: str
    is_reusable: bool = False
    environment: str
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_token(
        cls, token: str, *, server: str, environment: Mapping[str, str] = MappingProxyType({})
    ) -> Self:
        """A token that came from the CI need not be verified; one that is received must be.

        Raises ValueError for what is not a token of a job; the message holds no claims.
        """
        claims = read_claims(token)
        server = server.rstrip("/")
        # Of GitLab alone: anybody may have a server of it, so that its issuer may be any.
        if "project_path" in claims:
            return cls._of_gitlab(claims, server, environment)
        return cls._of_github(claims, server)

    @classmethod
    def _of_github(cls, claims: Mapping[str, object], server: str) -> Self:
        repository = _text(claims, "repository")
        run_id, attempt = _text(claims, "run_id"), _text(claims, "run_attempt")
        if not _REPOSITORY.fullmatch(repository):
            raise ValueError("the claim repository is not owner/name")
        workflow = _match(claims, "workflow_ref", _WORKFLOW, "owner/name/path@ref")
        defining = _match(claims, "job_workflow_ref", _WORKFLOW, "owner/name/path@ref")
        return cls(
            kind="github",
            server=server,
            repository=repository,
            repository_id=_text(claims, "repository_id"),
            repository_owner_id=_text(claims, "repository_owner_id"),
            visibility=_text(claims, "repository_visibility"),
            ref=_text(claims, "ref"),
            sha=_text(claims, "sha"),
            event_name=_text(claims, "event_name"),
            run_id=run_id,
            run_url=f"{page_of_run(f'{server}/{repository}', run_id)}/attempts/{attempt}",
            runner_environment=_text(claims, "runner_environment"),
            workflow_path=workflow["path"],
            workflow_git_ref=workflow["ref"],
            is_reusable=workflow[0] != defining[0],
            environment=_text(claims, "environment") if "environment" in claims else "",
        )

    @classmethod
    def _of_gitlab(
        cls, claims: Mapping[str, object], server: str, environment: Mapping[str, str]
    ) -> Self:
        repository, run_id = _text(claims, "project_path"), _text(claims, "job_id")
        file = _match(claims, "ci_config_ref_uri", _CI_FILE, "host/group/project//path@ref")
        if file["repository"].lower() != repository.lower():
            raise ValueError("the claim ci_config_ref_uri is of another project")
        return cls(
            kind="gitlab",
            server=server,
            repository=repository,
            repository_id=_text(claims, "project_id"),
            repository_owner_id=_text(claims, "namespace_id"),
            visibility=_text(claims, "project_visibility"),
            ref=_text(claims, "ref_path"),
            sha=_text(claims, "sha"),
            event_name=_text(claims, "pipeline_source"),
            run_id=run_id,
            run_url=f"{server}/{repository}/-/jobs/{run_id}",
            runner_environment=_text(claims, "runner_environment"),
            workflow_path=file["path"],
            workflow_git_ref=file["ref"],
            environment=_text(claims, "environment") if claims.get("environment") else "",
            variables={name: environment[name] for name in _VARIABLES if name in environment},
        )

    @property
    def repository_url(self) -> str:
        return f"{self.server}/{self.repository}"

    @property
    def workflow_name(self) -> str:
        """Like release.yml, which trusted publishing at GitHub goes by."""
        return self.workflow_path.rpartition("/")[2]


def _match(
    claims: Mapping[str, object], name: str, form: re.Pattern[str], shown: str
) -> re.Match[str]:
    if found := form.fullmatch(_text(claims, name)):
        return found
    raise ValueError(f"the claim {name} is not {shown}")


def _text(claims: Mapping[str, object], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ValueError(f"it has no usable claim {name}")
    return value
