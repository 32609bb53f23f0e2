"""What authenticates an upload: a token, a user and a password, or this job's identity, exchanged
for a token of the index. https://docs.pypi.org/trusted-publishers/internals/
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import httpx

from releasekit.ecosystems.shared import login
from releasekit.ecosystems.shared.answers import errors_of
from releasekit.errors import Denied, Rejected, Transient
from releasekit.http.answers import check, message_of
from releasekit.http.client import send
from releasekit.http.identity import GITHUB, GITLAB, read_claims, text_of
from releasekit.problems import Problem
from releasekit.text.escape import one_line
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.config.values import TrustedPublishing, Url
    from releasekit.ecosystems.interface import Services
    from releasekit.http.credentials import Secret

# Any other index gets an identity for its own host or origin only: with one for another service it
# could pose as this job there.
_AUDIENCES: Final = {"upload.pypi.org": "pypi", "test.pypi.org": "testpypi"}
# Those of organizations of its own are not documented yet.
# https://docs.pypi.org/trusted-publishers/adding-a-publisher/ and
# https://github.com/pypi/warehouse/blob/main/warehouse/oidc/utils.py
_ISSUERS: Final = (GITHUB, GITLAB)
# The user name that says "the password is an API token".
# https://pypi.org/help/#apitoken
TOKEN_USER: Final = "__token__"  # noqa: S105 (the user, not the password)
LIFETIME_S: Final = 900.0

# What PyPI compares of an identity of GitHub, and of GitLab.
_SHOWN: Final = (
    *("repository", "workflow_ref", "job_workflow_ref", "ref", "environment"),
    *("project_path", "ci_config_ref_uri", "ref_path"),
)
_REUSABLE: Final = (
    "PyPI does not support reusable workflows as trusted publishers. Move the publishing job, with "
    "its `permissions: {{ contents: read, id-token: write }}`, out of {called} into {caller}, and "
    "register that one."
)
_REGISTER: Final = (
    "Register exactly this at {index}/manage/project/PROJECT/settings/publishing/ (for a new "
    "project: {index}/manage/account/publishing/): {values}; Environment name: {environment}. The "
    "environment is what the job's `environment:` says; leave it empty on both sides or give it on "
    "both."
)


def make_login(wish: TrustedPublishing, services: Services, registry: Url) -> login.Login:
    """auto: the token if there is one, else this job's identity, for PyPI."""
    upload = httpx.URL(registry.text)
    trusting = login.is_trusting(wish, known=upload.host in _AUDIENCES)
    wanted = login.TokenInput(
        ecosystem="pypi",
        registry=registry,
        kind="an API token, or to the password of the user that `pypi-username` names",
    )
    trusted = login.OidcAuth(IndexExchange(upload, services)) if trusting else None
    audiences = _list_audiences(upload)
    return login.choose_login(
        wish, services, wanted, trusted=trusted, audiences=audiences, issuers=_ISSUERS
    )


def _list_audiences(upload: httpx.URL) -> tuple[str, ...]:
    """Those that the index of `upload` may ask for."""
    host = upload.raw_host.decode("ascii")
    origin = str(upload.copy_with(path="/", query=None, fragment=None)).removesuffix("/")
    return (_AUDIENCES[host],) if host in _AUDIENCES else (host, origin)


class IndexExchange(login.TokenExchange):
    """The token exchange of the index that takes uploads at `url`."""

    async def audience(self) -> str:
        response = await send(
            self._http, self._http.build_request("GET", self._at("/_/oidc/audience"))
        )
        if response.status_code in {403, 404}:
            raise Denied(
                f"{self._url.host} offers no trusted publishing",
                hint="Set RELEASEKIT_PYPI_TOKEN (input `pypi-token`).",
                problem=Problem.NOT_TRUSTED,
            )
        check(response, self.what, redact=self._credentials.redact)
        audience = text_of(response, "audience")
        if audience is None:
            raise Transient(f"{self.what}: no audience", problem=Problem.STRANGE_ANSWER)
        own = _list_audiences(self._url)
        if audience not in own:
            raise Rejected(
                f"{self.what}: it asks for an identity for {one_line(audience)}, which may be "
                f"another service, and not for {own[0]}; nothing was given to it",
                hint="Set RELEASEKIT_PYPI_TOKEN (input `pypi-token`), and write "
                "`trusted-publishing: never`.",
            )
        return audience

    def request(self, token: Secret) -> httpx.Request:
        return self._http.build_request(
            "POST", self._at("/_/oidc/mint-token"), json={"token": token.reveal()}
        )

    def lifetime_s(self, response: httpx.Response) -> float:
        expires = parse_json(response.content).get("expires")
        if not isinstance(expires, int | float):
            return LIFETIME_S
        # Compared first: an integer may be too large to be subtracted from.
        now = time.time()
        return max(min(expires, now + LIFETIME_S) - now, 0.0)

    def _at(self, path: str) -> httpx.URL:
        return self._url.copy_with(path=path, query=None, fragment=None)

    def refusal(self, response: httpx.Response, token: Secret) -> Denied | Transient | None:
        if response.status_code != 422:
            return None
        # https://github.com/pypi/warehouse/blob/main/warehouse/oidc/views.py
        errors = errors_of(response)
        codes = {str(error.get("code")) for error in errors}
        said = "; ".join(f"{error.get('code')}: {error.get('description')}" for error in errors)
        redact = self._credentials.redact
        reasons = one_line(redact(said)) or message_of(response, redact=redact)
        what = f"{self._url.host} refuses trusted publishing: {reasons}"
        if "invalid-reuse-token" in codes:
            return Transient(what)
        if codes & {"invalid-publisher", "invalid-pending-publisher"}:
            claims = _read_claims(token)
            shown = ", ".join(f"{name} {claims[name]}" for name in _SHOWN if name in claims)
            return Denied(
                f"{what} [{shown}]", hint=self._advise(claims), problem=Problem.NOT_TRUSTED
            )
        return Denied(
            what,
            hint="https://docs.pypi.org/trusted-publishers/troubleshooting/",
            problem=Problem.NOT_TRUSTED,
        )

    def _advise(self, claims: Mapping[str, str]) -> str:
        caller = _workflow_file(claims.get("workflow_ref", ""))
        called = _workflow_file(claims.get("job_workflow_ref", ""))
        if caller and called and claims["workflow_ref"] != claims["job_workflow_ref"]:
            return _REUSABLE.format(called=called, caller=caller)
        if "project_path" in claims:
            namespace, _, project = claims["project_path"].rpartition("/")
            file = claims.get("ci_config_ref_uri", "").partition("//")[2].partition("@")[0]
            values = f"Namespace: {namespace}; Project name: {project}; Top-level pipeline file "
            values += f"path: {file}"
        else:
            owner, _, repository = claims.get("repository", "").partition("/")
            values = f"Owner: {owner}; Repository name: {repository}; Workflow name: {caller}"
        host = self._url.host.removeprefix("upload.")
        return _REGISTER.format(
            index=f"{self._url.scheme}://{host}",
            values=values,
            environment=claims.get("environment") or "(none)",
        )


def _read_claims(token: Secret) -> dict[str, str]:
    """Texts of the ID token, for the message only; none of what is no such token."""
    try:
        claims = read_claims(token.reveal()).items()
    except ValueError:
        return {}
    return {key: one_line(value) for key, value in claims if isinstance(value, str)}


def _workflow_file(ref: str) -> str:
    """The file's name in a claim like "acme/mono/.github/workflows/release.yml@refs/tags/v1"."""
    return ref.partition("@")[0].rpartition("/")[2]
