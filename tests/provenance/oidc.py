"""The token services of GitHub and GitLab, as far as others see them: tokens of one job, signed.

https://docs.github.com/actions/reference/security/oidc and
https://docs.gitlab.com/ci/secrets/id_token_authentication/#token-payload
"""

from __future__ import annotations

import base64
import binascii
import functools
import itertools
import json
import time
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

ISSUER = "https://token.actions.githubusercontent.com"
GITLAB = "https://gitlab.com"
RUNNER_TOKEN = "runner-token-of-this-job"
SHA = "a" * 40
LIFETIME_S = 300


class BadToken(Exception):
    """Sigstore does not accept it."""


def claims_of(
    repository: str = "acme/widgets", workflow: str = "release.yml", ref: str = "refs/heads/main"
) -> dict[str, str]:
    """What GitHub says about a job of a public repository, on one of its own runners."""
    workflow_ref = f"{repository}/.github/workflows/{workflow}@{ref}"
    return {
        "sub": f"repo:{repository}:ref:{ref}",
        "event_name": "push",
        "sha": SHA,
        "workflow": "release",
        "repository": repository,
        "repository_id": "1",
        "repository_owner": repository.partition("/")[0],
        "repository_owner_id": "2",
        "repository_visibility": "public",
        "ref": ref,
        "run_id": "42",
        "run_attempt": "1",
        "runner_environment": "github-hosted",
        "workflow_ref": workflow_ref,
        "workflow_sha": SHA,
        "job_workflow_ref": workflow_ref,
        "job_workflow_sha": SHA,
    }


def gitlab_claims_of(
    project: str = "acme/tools/widgets", file: str = ".gitlab-ci.yml", branch: str = "main"
) -> dict[str, Any]:
    """What gitlab.com says about a job of a public project, on one of its own runners. Only its
    number of the runner is none that is a text.
    """
    ref = f"refs/heads/{branch}"
    return {
        "iss": GITLAB,
        "sub": f"project_path:{project}:ref_type:branch:ref:{branch}",
        "namespace_id": "72",
        "namespace_path": project.rpartition("/")[0],
        "project_id": "20",
        "project_path": project,
        "user_id": "1",
        "user_login": "sample-user",
        "user_email": "sample-user@example.com",
        "user_access_level": "maintainer",
        "pipeline_id": "574",
        "pipeline_source": "push",
        "job_id": "302",
        "ref": branch,
        "ref_type": "branch",
        "ref_path": ref,
        "ref_protected": "true",
        "runner_id": 12270831,
        "runner_environment": "gitlab-hosted",
        "sha": SHA,
        "project_visibility": "public",
        "ci_config_ref_uri": f"gitlab.com/{project}//{file}@{ref}",
        "ci_config_sha": SHA,
    }


@functools.cache
def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)  # slow; no test is about it


@dataclass
class Issuer:
    """`claims` is what the next tokens say; tests change it."""

    claims: dict[str, Any] = field(default_factory=claims_of)
    audiences: list[str] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def token(self, audience: str) -> str:
        self.audiences.append(audience)
        now = int(time.time())
        times = {"iat": now - 5, "nbf": now - 5, "exp": now + LIFETIME_S}
        claims = {"iss": ISSUER, "aud": audience, "jti": str(next(self._numbers)), **times}
        header = {"alg": "RS256", "typ": "JWT", "kid": "k1"}
        signed = f"{_part(header)}.{_part({**claims, **self.claims})}"
        signature = _key().sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_encoded(signature)}"


def verified(token: str, audience: str = "sigstore") -> dict[str, Any]:
    """The claims of a token that was made for Sigstore, or another, and that still counts."""
    try:
        header, body, signature = token.split(".")
        _key().public_key().verify(
            _decoded(signature), f"{header}.{body}".encode(), padding.PKCS1v15(), hashes.SHA256()
        )
        claims: dict[str, Any] = json.loads(_decoded(body))
    except (ValueError, InvalidSignature) as error:
        raise BadToken("not a token of this issuer") from error
    if claims["aud"] != audience or claims["exp"] < time.time():
        raise BadToken(f"not for {audience}, or too old")
    return claims


def _part(document: object) -> str:
    return _encoded(json.dumps(document).encode())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError(str(error)) from error
