"""Trusted publishing: this job's identity, exchanged for a token of crates.io.

https://crates.io/docs/trusted-publishing and, for the requests,
https://github.com/rust-lang/crates-io-auth-action
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import httpx

from releasekit.ecosystems.cargo.answers import said
from releasekit.errors import Denied, PackageError, Transient
from releasekit.http.client import check, one_line, retry, send
from releasekit.http.identity import Minted, SharedToken, text_of

if TYPE_CHECKING:
    from releasekit.ecosystems.interface import Services
    from releasekit.http.client import RetryPolicy
    from releasekit.http.credentials import Secret
    from releasekit.http.identity import IdTokens

LIFETIME_S: Final = 30 * 60.0
_REGISTER: Final = (
    "Register this repository, workflow file and environment for each crate: "
    "https://crates.io/crates/CRATE/settings/new-trusted-publisher. A crate that is not on "
    "crates.io yet needs `cargo-token` the first time."
)


class Exchange:
    """ID token in, upload token out; the tokens are revoked at the end."""

    def __init__(
        self, api: str, services: Services, identity: IdTokens, policy: RetryPolicy
    ) -> None:
        self._url = httpx.URL(f"{api}/api/v1/trusted_publishing/tokens")
        self._http = services.http
        self._credentials = services.credentials
        self._identity = identity
        self._policy = policy
        self._shared = SharedToken(self._mint)
        self._minted: list[Secret] = []

    async def token(self) -> Secret:
        """Masked before it is returned. Raises Denied with what to change, or Transient."""
        return await self._shared.get()

    def drop(self, token: Secret) -> None:
        self._shared.drop(token)

    async def revoke(self) -> None:
        """Every token that was made; whether it works or not, each ends by itself."""
        while self._minted:
            token = self._minted.pop()
            request = self._http.build_request(
                "DELETE", self._url, headers={"Authorization": f"Bearer {token.reveal()}"}
            )
            with contextlib.suppress(PackageError):
                await send(self._http, request)

    async def _mint(self) -> Minted:
        try:
            return await retry(self._attempt, self._policy)
        except Transient as error:
            # Whatever became of the token, nothing was uploaded.
            error.ambiguous = False
            raise

    async def _attempt(self) -> Minted:
        # A registry takes each ID token once, so every attempt brings its own.
        token = await self._identity.fetch(self._url.host)
        request = self._http.build_request("POST", self._url, json={"jwt": token.reveal()})
        response = await send(self._http, request)
        what = f"trusted publishing at {self._url.host}"
        if 400 <= response.status_code < 404:
            words = one_line(self._credentials.redact(said(response)))
            raise Denied(f"{what} is refused: {words or response.status_code}", hint=_REGISTER)
        check(response, what, redact=self._credentials.redact)
        minted = text_of(response, "token")
        if minted is None:
            raise Transient(f"{what}: an answer without a token")
        secret = self._credentials.adopt(minted)
        self._minted.append(secret)
        return Minted(secret, LIFETIME_S)
