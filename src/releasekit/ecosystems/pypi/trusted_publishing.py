"""Trusted publishing: this job's identity, exchanged for a token of the package index.

https://docs.pypi.org/trusted-publishers/internals/
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.errors import Denied, MissingCredentials, Transient
from releasekit.http.client import check, message_of, one_line, retry, send
from releasekit.http.identity import Minted, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from releasekit.ecosystems.interface import Services
    from releasekit.http.client import RetryPolicy
    from releasekit.http.credentials import Secret
    from releasekit.http.identity import IdTokens

LIFETIME_S: Final = 900.0
_MAX_EVENT_BYTES: Final = 32 * 1024 * 1024

_PERMISSION: Final = (
    "Give the job that publishes this permission:\n"
    "    permissions:\n"
    "      contents: read\n"
    "      id-token: write\n"
    "or set RELEASEKIT_PYPI_TOKEN (input `pypi-token`)."
)
_FORK: Final = (
    "GitHub gives a pull request from a fork neither secrets nor ID tokens. Publish from a push, a "
    "tag or a release:\n"
    "    on:\n"
    "      push:\n"
    "        tags: ['v*']"
)
_REUSABLE: Final = (
    "PyPI does not support reusable workflows as trusted publishers. Move the publishing job out "
    "of {called} into {caller}, and register that one:\n"
    "    jobs:\n"
    "      publish:\n"
    "        runs-on: ubuntu-latest\n"
    "        permissions:\n"
    "          id-token: write\n"
    "        steps: [...]"
)
_REGISTER: Final = (
    "Register exactly this at {index}/manage/project/PROJECT/settings/publishing/ (for a new "
    "project: {index}/manage/account/publishing/):\n"
    "    Owner: {owner}\n"
    "    Repository name: {repository}\n"
    "    Workflow name: {workflow}\n"
    "    Environment name: {environment}\n"
    "The environment is what the job's `environment:` says; leave it empty on both sides or give "
    "it on both."
)


def not_offered(upload: httpx.URL, environment: Mapping[str, str]) -> MissingCredentials:
    """Why this job cannot identify itself, and what to change."""
    if environment.get("GITHUB_ACTIONS") != "true":
        return MissingCredentials(
            f"pypi: no credentials for {upload}: RELEASEKIT_PYPI_TOKEN is not set",
            hint="Set it to an API token. Trusted publishing works inside GitHub Actions only.",
        )
    if _from_fork(environment):
        return MissingCredentials(
            f"pypi: no credentials for {upload}: this run is for a pull request from a fork",
            hint=_FORK,
        )
    return MissingCredentials(
        f"pypi: no credentials for {upload}: this job has no `id-token: write` permission, and "
        "RELEASEKIT_PYPI_TOKEN is not set",
        hint=_PERMISSION,
    )


class Exchange:
    """ID token in, upload token out, with the index that `upload` belongs to."""

    def __init__(
        self, upload: httpx.URL, services: Services, identity: IdTokens, policy: RetryPolicy
    ) -> None:
        self._upload = upload
        self._policy = policy
        self._http = services.http
        self._credentials = services.credentials
        self._identity = identity

    async def mint(self) -> Minted:
        """Masked before it is returned. Raises Denied with what to change, or Transient."""
        try:
            return await retry(self._attempt, self._policy)
        except Transient as error:
            # Whatever became of the token, nothing was uploaded.
            error.ambiguous = False
            raise

    async def _attempt(self) -> Minted:
        response = await send(
            self._http, self._http.build_request("GET", self._at("/_/oidc/audience"))
        )
        if response.status_code in {403, 404}:
            raise Denied(
                f"{self._upload.host} offers no trusted publishing",
                hint="Set RELEASEKIT_PYPI_TOKEN (input `pypi-token`).",
            )
        check(response, f"trusted publishing at {self._upload.host}")
        audience = text_of(response, "audience")
        if audience is None:
            raise Transient(f"trusted publishing at {self._upload.host}: no audience")
        # A registry takes each ID token once, so every attempt brings its own.
        token = await self._identity.fetch(audience)
        request = self._http.build_request(
            "POST", self._at("/_/oidc/mint-token"), json={"token": token.reveal()}
        )
        response = await send(self._http, request)
        if response.status_code == 422:
            raise self._refusal(response, token)
        check(response, f"trusted publishing at {self._upload.host}")
        minted = text_of(response, "token")
        if minted is None:
            raise Transient(f"trusted publishing at {self._upload.host}: an answer without a token")
        return Minted(self._credentials.adopt(minted), _lifetime_s(response))

    def _at(self, path: str) -> httpx.URL:
        return self._upload.copy_with(path=path, query=None, fragment=None)

    def _refusal(self, response: httpx.Response, token: Secret) -> Denied | Transient:
        codes, reasons = _errors(response)
        what = (
            f"{self._upload.host} refuses trusted publishing: {self._credentials.redact(reasons)}"
        )
        if "invalid-reuse-token" in codes:
            return Transient(what)
        if codes & {"invalid-publisher", "invalid-pending-publisher"}:
            claims = _claims(token)
            return Denied(f"{what} [{_named(claims)}]", hint=self._advice(claims))
        return Denied(what, hint="https://docs.pypi.org/trusted-publishers/troubleshooting/")

    def _advice(self, claims: Mapping[str, str]) -> str:
        caller = _workflow(claims.get("workflow_ref", ""))
        called = _workflow(claims.get("job_workflow_ref", ""))
        if caller and called and claims["workflow_ref"] != claims["job_workflow_ref"]:
            return _REUSABLE.format(called=called, caller=caller)
        owner, _, repository = claims.get("repository", "").partition("/")
        host = self._upload.host.removeprefix("upload.")
        return _REGISTER.format(
            index=f"{self._upload.scheme}://{host}",
            owner=owner,
            repository=repository,
            workflow=caller,
            environment=claims.get("environment") or "(none)",
        )


def _errors(response: httpx.Response) -> tuple[set[str], str]:
    """https://github.com/pypi/warehouse/blob/main/warehouse/oidc/views.py"""
    try:
        document = response.json()
    except (ValueError, RecursionError):
        document = None
    errors = document.get("errors") if isinstance(document, dict) else None
    codes: set[str] = set()
    reasons: list[str] = []
    for error in errors if isinstance(errors, list) else ():
        if isinstance(error, dict):
            codes.add(str(error.get("code")))
            reasons.append(f"{error.get('code')}: {error.get('description')}")
    return codes, one_line("; ".join(reasons)) or message_of(response)


def _claims(token: Secret) -> dict[str, str]:
    """What the ID token says, unverified: for the message only."""
    payload = token.reveal().split(".")[1:2]
    try:
        document = json.loads(base64.urlsafe_b64decode("".join(payload) + "=="))
    except (ValueError, binascii.Error, RecursionError):
        return {}
    claims = document.items() if isinstance(document, dict) else ()
    return {key: one_line(value) for key, value in claims if isinstance(value, str)}


def _named(claims: Mapping[str, str]) -> str:
    names = ("repository", "workflow_ref", "job_workflow_ref", "ref", "environment")
    return ", ".join(f"{name} {claims[name]}" for name in names if name in claims)


def _workflow(ref: str) -> str:
    """The file's name in a claim like "acme/mono/.github/workflows/release.yml@refs/tags/v1"."""
    return ref.partition("@")[0].rpartition("/")[2]


def _lifetime_s(response: httpx.Response) -> float:
    expires = response.json().get("expires")
    if not isinstance(expires, int | float):
        return LIFETIME_S
    return min(max(expires - time.time(), 0.0), LIFETIME_S)


def _from_fork(environment: Mapping[str, str]) -> bool:
    """https://docs.github.com/webhooks/webhook-events-and-payloads#pull_request"""
    if environment.get("GITHUB_EVENT_NAME") != "pull_request":
        return False
    try:
        with Path(environment.get("GITHUB_EVENT_PATH", "")).open("rb") as file:
            event = json.loads(file.read(_MAX_EVENT_BYTES))
        head, base = event["pull_request"]["head"], event["pull_request"]["base"]
        return bool(head["repo"]["full_name"] != base["repo"]["full_name"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False
