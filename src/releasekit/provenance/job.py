"""The workflow job that signs, as GitHub says it."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from releasekit.host.forges import page_of_run
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

# https://docs.github.com/actions/reference/security/oidc#oidc-token-claims
_WORKFLOW: Final = re.compile(r"(?P<repository>[^/@]+/[^/@]+)/(?P<path>[^@]+)@(?P<ref>.+)")
_REPOSITORY: Final = re.compile(r"[^/\s]+/[^/\s]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the claims of its ID token say. `server` is like https://github.com, `visibility` that
    of the repository, `runner_environment` "github-hosted" or "self-hosted", and `environment` is
    empty for a job that deploys to none.
    """

    server: str
    repository: str
    repository_id: str
    repository_owner_id: str
    visibility: str
    ref: str
    sha: str
    event_name: str
    run_id: str
    run_attempt: str
    runner_environment: str
    workflow_ref: str
    job_workflow_ref: str
    environment: str

    @classmethod
    def from_token(cls, token: str, *, server: str) -> Self:
        """A token that was fetched from GitHub need not be verified; one that is received must be.

        Raises ValueError for what is not a token of a GitHub job; the message holds no claims.
        """
        claims = _claims(token)
        job = cls(
            server=server.rstrip("/"),
            repository=_text(claims, "repository"),
            repository_id=_text(claims, "repository_id"),
            repository_owner_id=_text(claims, "repository_owner_id"),
            visibility=_text(claims, "repository_visibility"),
            ref=_text(claims, "ref"),
            sha=_text(claims, "sha"),
            event_name=_text(claims, "event_name"),
            run_id=_text(claims, "run_id"),
            run_attempt=_text(claims, "run_attempt"),
            runner_environment=_text(claims, "runner_environment"),
            workflow_ref=_text(claims, "workflow_ref"),
            job_workflow_ref=_text(claims, "job_workflow_ref"),
            environment=_text(claims, "environment") if "environment" in claims else "",
        )
        if not _REPOSITORY.fullmatch(job.repository):
            raise ValueError("the claim repository is not owner/name")
        for name, value in (
            ("workflow_ref", job.workflow_ref),
            ("job_workflow_ref", job.job_workflow_ref),
        ):
            if not _WORKFLOW.fullmatch(value):
                raise ValueError(f"the claim {name} is not owner/name/path@ref")
        return job

    @property
    def repository_url(self) -> str:
        return f"{self.server}/{self.repository}"

    @property
    def workflow_path(self) -> str:
        """Like .github/workflows/release.yml, of the workflow that was triggered."""
        return self._part("path")

    @property
    def workflow_name(self) -> str:
        """Like release.yml, which trusted publishing goes by."""
        return self.workflow_path.rpartition("/")[2]

    @property
    def workflow_git_ref(self) -> str:
        """Like refs/heads/main: where the triggered workflow is from."""
        return self._part("ref")

    @property
    def is_reusable(self) -> bool:
        """Whether the job is defined by another workflow than the one that was triggered."""
        return self.workflow_ref != self.job_workflow_ref

    @property
    def run_url(self) -> str:
        return f"{page_of_run(self.repository_url, self.run_id)}/attempts/{self.run_attempt}"

    def _part(self, name: str) -> str:
        found = _WORKFLOW.fullmatch(self.workflow_ref)
        return found[name] if found else ""


def _claims(token: str) -> Mapping[str, object]:
    """https://www.rfc-editor.org/rfc/rfc7519#section-3"""
    parts = token.split(".")
    if len(parts) != 3:
        raise ValueError("it has not three parts")
    try:
        body = parts[1].encode("ascii")
        data = base64.b64decode(body + b"=" * (-len(body) % 4), altchars=b"-_", validate=True)
        claims = parse_json(data)
    except (binascii.Error, ValueError) as error:
        raise ValueError("its claims are not readable") from error
    if not isinstance(claims, dict):
        raise ValueError("its claims are no object")  # noqa: TRY004 - of what was parsed
    return claims


def _text(claims: Mapping[str, object], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ValueError(f"it has no usable claim {name}")
    return value
