"""Short-lived credentials: who this job is, and the tokens that registries make from it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.errors import Denied, Transient
from releasekit.host.ci import IDENTITY_BEARER, IDENTITY_URL
from releasekit.http.client import check, send
from releasekit.http.origins import require_safe
from releasekit.problems import Problem
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import httpx

    from releasekit.http.credentials import Credentials, Secret

# An upload that starts now has to end before its token does.
_RENEWED_BEFORE_S: Final = 120.0
# Servers take no more in one header, most of them less.
_MAX_TOKEN_CHARS: Final = 16 * 1024


class IdTokens:
    """GitHub's token service: who this job is, signed, for one audience at a time.

    https://docs.github.com/actions/reference/security/oidc
    """

    def __init__(self, credentials: Credentials, http: httpx.AsyncClient) -> None:
        self._credentials = credentials
        self._http = http
        self._url = credentials.get(IDENTITY_URL)
        self._bearer = credentials.get(IDENTITY_BEARER)

    @property
    def offered(self) -> bool:
        """Whether this job may ask: `permissions: id-token: write` sets both variables."""
        return self._url is not None and self._bearer is not None

    async def fetch(self, audience: str) -> Secret:
        """A fresh token, because registries accept each one only once. This makes one attempt; a
        retry has to repeat everything that depends on it. Raises Transient, Denied, Rejected.
        """
        if self._url is None or self._bearer is None:
            raise Denied("This job may not ask GitHub for an ID token", problem=Problem.NOT_TRUSTED)
        url = require_safe(self._url.reveal(), name=IDENTITY_URL)
        request = self._http.build_request(
            "GET",
            url.copy_add_param("audience", audience),
            headers={"Authorization": f"Bearer {self._bearer.reveal()}"},
        )
        response = await send(self._http, request)
        check(response, "GitHub's ID token service", redact=self._credentials.redact)
        value = text_of(response, "value")
        if value is None:
            raise Transient(
                "GitHub's ID token service: an answer without a token",
                problem=Problem.STRANGE_ANSWER,
            )
        return self._credentials.adopt(value)


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


@dataclass(frozen=True, slots=True)
class Minted:
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
