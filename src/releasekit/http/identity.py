"""Short-lived credentials: who this job is, and the tokens that registries make from it."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from releasekit.attested import Obstacle
from releasekit.errors import Denied, Transient
from releasekit.host.ci import IDENTITY_BEARER, IDENTITY_URL
from releasekit.host.forges import SERVER
from releasekit.http.answers import check
from releasekit.http.client import send
from releasekit.http.origins import require_safe
from releasekit.problems import Problem
from releasekit.text.escape import one_line
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping

    import httpx

    from releasekit.host.ci import CI
    from releasekit.http.credentials import Credentials, Secret

# The audience of an ID token for Sigstore.
# https://github.com/sigstore/fulcio/blob/main/docs/how-certificate-issuing-works.md
SIGSTORE: Final = "sigstore"
# Who signs ID tokens, as their `iss` says it.
# https://docs.github.com/actions/reference/security/oidc,
# https://docs.gitlab.com/ci/secrets/id_token_authentication/ and
# https://circleci.com/docs/guides/permissions-authentication/openid-connect-tokens/
GITHUB: Final = "https://token.actions.githubusercontent.com"
GITLAB: Final = "https://gitlab.com"
CIRCLECI: Final = "https://oidc.circleci.com"
_PLACES: Final = {GITHUB: "github.com", GITLAB: "gitlab.com", CIRCLECI: "CircleCI"}
# An upload that starts now has to end before its token does.
_RENEWED_BEFORE_S: Final = 120.0
# Servers take no more in one header, most of them less.
_MAX_TOKEN_CHARS: Final = 16 * 1024
_GIVEN: Final = re.compile(r"(?:[A-Za-z0-9_]+_)?ID_TOKEN(?:_[0-9]{1,4})?")
_MAX_LISTED: Final = 5
NO_PERMISSION: Final = Obstacle(
    condition="this job has no `id-token: write` permission",
    cure="Give the job that publishes `permissions: { contents: read, id-token: write }`.",
)


class IdTokens(Protocol):
    """Who this job is, signed, for one audience at a time."""

    def find_issuer(self, audiences: Collection[str]) -> str:
        """Who signs those for one of `audiences`; empty where this is no job of a CI that does."""

    def find_obstacle(self, audience: str) -> Obstacle | None:
        """Why there is no token for `audience`, and what to change; nobody is asked."""

    async def fetch(self, audience: str) -> Secret:
        """One that counts now. This makes one attempt; a retry has to repeat everything that
        depends on it. Raises Transient, Denied, Rejected.
        """

    def spend(self, token: Secret) -> None:
        """A service that takes each token once has taken this one."""


def open_tokens(ci: CI, credentials: Credentials, http: httpx.AsyncClient) -> IdTokens:
    if ci.is_actions:
        return AskedTokens(ci, credentials, http)
    return GivenTokens(ci, credentials)


def is_known(issuer: str, issuers: Collection[str]) -> bool:
    """Whether it is one of `issuers`; CircleCI has one for each organization."""
    return issuer in issuers or (CIRCLECI in issuers and issuer.startswith(f"{CIRCLECI}/org/"))


def describe_places(issuers: Collection[str]) -> str:
    """Whose jobs they speak of: "github.com and gitlab.com"."""
    *others, last = (_PLACES[each] for each in issuers)
    return f"{', '.join(others)} and {last}" if others else last


def read_claims(token: str) -> Mapping[str, object]:
    """What an ID token says, unverified. Raises ValueError, without any of it, for what is none.

    https://www.rfc-editor.org/rfc/rfc7519#section-3
    """
    parts = token.split(".")
    if len(parts) != 3:
        raise ValueError("it has not three parts")
    try:
        body = parts[1].encode("ascii")
        data = base64.b64decode(body + b"=" * (-len(body) % 4), altchars=b"-_", validate=True)
        claims = parse_json(data)
    except ValueError as error:  # binascii.Error is one
        raise ValueError("its claims are not readable") from error
    if not isinstance(claims, dict):
        raise ValueError("its claims are no object")  # noqa: TRY004 - of what was parsed
    return claims


class AskedTokens:
    """The token service of GitHub, or of Forgejo, which speaks the same: a fresh token each time.

    https://docs.github.com/actions/reference/security/oidc and
    https://forgejo.org/docs/latest/user/actions/security-openid-connect/
    """

    def __init__(self, ci: CI, credentials: Credentials, http: httpx.AsyncClient) -> None:
        self._ci = ci
        self._credentials = credentials
        self._http = http
        self._url = credentials.get(IDENTITY_URL)
        self._bearer = credentials.get(IDENTITY_BEARER)

    def find_issuer(self, _audiences: Collection[str]) -> str:
        """https://docs.github.com/en/enterprise-server@latest/actions/reference/security/oidc and
        Forgejo's page above.
        """
        if self._ci.server == SERVER:
            return GITHUB
        path = "_services/token" if self._ci.kind == "github" else "api/actions"
        return f"{self._ci.server}/{path}"

    def find_obstacle(self, _audience: str) -> Obstacle | None:
        if self._url is not None and self._bearer is not None:
            return None
        match self._ci.kind:
            case "gitea":
                return Obstacle(
                    condition="Gitea has no ID tokens",
                    cure="Leave `trusted-publishing` and `attestations` at `auto`.",
                )
            case "forgejo":
                return Obstacle(
                    condition="this workflow has no `enable-openid-connect: true`",
                    cure="Write that at the top of the workflow.",
                )
            case _:
                return NO_PERMISSION

    async def fetch(self, audience: str) -> Secret:
        maker = self._ci.name
        if self._url is None or self._bearer is None:
            raise Denied(
                f"This job may not ask {maker} for an ID token", problem=Problem.NOT_TRUSTED
            )
        url = require_safe(self._url.reveal(), name=IDENTITY_URL)
        request = self._http.build_request(
            "GET",
            url.copy_add_param("audience", audience),
            headers={"Authorization": f"Bearer {self._bearer.reveal()}"},
        )
        response = await send(self._http, request)
        check(response, f"{maker}'s ID token service", redact=self._credentials.redact)
        value = text_of(response, "value")
        if value is None:
            raise Transient(
                f"{maker}'s ID token service: an answer without a token",
                problem=Problem.STRANGE_ANSWER,
            )
        return self._credentials.adopt(value)

    def spend(self, token: Secret) -> None:
        """Each one that is fetched is new."""


class _Given(Struct, frozen=True):
    """The token of a variable."""

    variable: str
    token: Secret
    claims: Mapping[str, object]

    @property
    def ends_s(self) -> float:
        """As `time.time` counts."""
        ends = self.claims.get("exp")
        return ends if isinstance(ends, int | float) else math.inf


class GivenTokens:
    """Those that the CI has made when the job began, or that a script has asked it for. Their
    variables are called `…ID_TOKEN` or `…ID_TOKEN_2`. What counts is the `aud` in each: PyPI and
    crates.io want it to be the audience, and no list.

    https://docs.gitlab.com/ci/secrets/id_token_authentication/
    """

    def __init__(
        self, ci: CI, credentials: Credentials, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._ci = ci
        self._given = tuple(_read_given(credentials))
        self._spent: set[Secret] = set()
        self._clock = clock

    def find_issuer(self, audiences: Collection[str]) -> str:
        """Tokens for other services have such names, too, and count only where no other does."""
        given = sorted(self._given, key=lambda each: each.claims.get("aud") not in audiences)
        told = [each.claims.get("iss") for each in given]
        own = self._ci.server if self._ci.kind == "gitlab" else ""
        return next((each for each in told if isinstance(each, str)), own)

    def find_obstacle(self, audience: str) -> Obstacle | None:
        found = self._find(audience)
        if not found:
            others = ", ".join(
                f"{each.variable} is for `{one_line(str(each.claims.get('aud')))}`"
                for each in self._given[:_MAX_LISTED]
            )
            return Obstacle(
                condition=f"this job has no ID token for `{audience}`"
                f"{f' ({others})' if others else ''}",
                cure=self._advise(audience, 1),
            )
        if all(each.claims.get("ci_config_ref_uri", "") is None for each in found):
            # https://docs.gitlab.com/ci/secrets/id_token_authentication/#token-payload
            return Obstacle(
                condition="the CI file of this job is not in its project, so that no registry can "
                "trust the job",
                cure="Keep the CI file in the project, let it `include:` what it needs, and start "
                "no child pipeline from a generated file.",
            )
        return None

    async def fetch(self, audience: str) -> Secret:
        """The first that is neither spent nor too old."""
        found = self._find(audience)
        now = self._clock()
        for each in found:
            if each.token not in self._spent and each.ends_s > now:
                return each.token
        raise Denied(
            f"the ID tokens of this job for `{audience}` are used or too old: it had {len(found)}",
            hint=f"Run the job again. {self._advise(audience, len(found) + 1)}",
            problem=Problem.NOT_TRUSTED,
        )

    def spend(self, token: Secret) -> None:
        self._spent.add(token)

    def _find(self, audience: str) -> list[_Given]:
        return [each for each in self._given if each.claims.get("aud") == audience]

    def _advise(self, audience: str, number: int) -> str:
        """How one more is had: PYPI_ID_TOKEN for `pypi`, NPM_ID_TOKEN_2 for `npm:…`."""
        what = re.sub(r"[^A-Za-z0-9]+", "_", audience.removeprefix("https://").partition(":")[0])
        name = f"{what.upper()}_ID_TOKEN{f'_{number}' if number > 1 else ''}"
        if self._ci.kind == "gitlab":
            return f"Give the job `id_tokens: {{ {name}: {{ aud: {json.dumps(audience)} }} }}`."
        return f"Set {name} to an ID token of this job whose audience is `{audience}`."


def _read_given(credentials: Credentials) -> Iterator[_Given]:
    """What is no ID token is left out."""
    for variable, secret in credentials.find(_GIVEN):
        with suppress(ValueError):
            yield _Given(variable, secret, read_claims(secret.reveal()))


def text_of(response: httpx.Response, key: str) -> str | None:
    """A string from the top level of a JSON object; None when there is none that a header can
    hold.
    """
    try:
        document = parse_json(response.content)
    except ValueError:
        return None
    value = document.get(key) if isinstance(document, dict) else None
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_TOKEN_CHARS:
        return None
    return value if value.isascii() and value.isprintable() else None


class Minted(Struct, frozen=True):
    """A token that a registry made for this run; `lifetime_s` from now."""

    token: Secret
    lifetime_s: float


class SharedToken:
    """One short-lived token for all callers: minted when first needed, and again before it ends."""

    def __init__(self, mint: Callable[[], Awaitable[Minted]]) -> None:
        self._mint = mint
        self._minting = asyncio.Lock()
        self._token: Secret | None = None
        self._until = 0.0

    async def get(self) -> Secret:
        """Raises what the mint raises; the next call tries again."""
        async with self._minting:
            clock = asyncio.get_running_loop().time
            if self._token is None or clock() >= self._until - _RENEWED_BEFORE_S:
                minted = await self._mint()
                self._token = minted.token
                self._until = clock() + minted.lifetime_s
            return self._token

    def drop(self, token: Secret) -> None:
        """The registry refused `token`: the next `get` mints another one."""
        if self._token is token:
            self._token = None
