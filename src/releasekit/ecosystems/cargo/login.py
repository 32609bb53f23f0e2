"""As whom an upload goes out: a token, or this job's identity, exchanged for a token of crates.io.

https://crates.io/docs/trusted-publishing and, for the requests,
https://github.com/rust-lang/crates-io-auth-action
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import httpx

from releasekit.ecosystems.cargo.answers import said
from releasekit.ecosystems.shared import login
from releasekit.errors import Denied, MissingCredentials, PackageError
from releasekit.http.client import one_line, send

if TYPE_CHECKING:
    from releasekit.config.config import Config
    from releasekit.ecosystems.cargo.destination import Destination
    from releasekit.ecosystems.interface import Services
    from releasekit.http.credentials import Secret
    from releasekit.http.identity import Minted

LIFETIME_S: Final = 30 * 60.0
_REGISTER: Final = (
    "Register this repository, workflow file and environment for each crate: "
    "https://crates.io/crates/CRATE/settings/new-trusted-publisher. A crate that is not on "
    "crates.io yet needs `cargo-token` the first time."
)


def choose(config: Config, services: Services, destination: Destination) -> login.Login:
    """auto: the token if there is one, else this job's identity where crates.io is asked."""
    trusting = destination.is_crates_io and login.is_trusting(config, known=True)

    def missing() -> MissingCredentials:
        hint = "Set it to an API token (input `cargo-token`)."
        if trusting:
            hint += (
                " Or give the job `permissions: id-token: write`, and register its workflow at "
                "https://crates.io/crates/CRATE/settings/new-trusted-publisher."
            )
        return MissingCredentials(
            f"cargo: no credentials for {destination.index}: RELEASEKIT_CARGO_TOKEN is not set",
            hint=hint,
        )

    url = httpx.URL(f"{destination.api}/api/v1/trusted_publishing/tokens")
    trusted = login.Trusted(CratesIoExchange(url, config, services)) if trusting else None
    return login.choose(
        config, services, "RELEASEKIT_CARGO_TOKEN", trusted=trusted, missing=missing
    )


class CratesIoExchange(login.Exchange):
    """With the API at `url`; the tokens are revoked at the end."""

    def __init__(self, url: httpx.URL, config: Config, services: Services) -> None:
        super().__init__(url, config, services)
        self._minted: list[Secret] = []

    async def audience(self) -> str:
        return self._url.host

    def request(self, token: Secret) -> httpx.Request:
        return self._http.build_request("POST", self._url, json={"jwt": token.reveal()})

    def refusal(self, response: httpx.Response, _token: Secret) -> Denied | None:
        if not 400 <= response.status_code < 404:
            return None
        words = one_line(self._credentials.redact(said(response)))
        return Denied(f"{self.what} is refused: {words or response.status_code}", hint=_REGISTER)

    def lifetime_s(self, _response: httpx.Response) -> float:
        return LIFETIME_S

    async def mint(self) -> Minted:
        minted = await super().mint()
        self._minted.append(minted.token)
        return minted

    async def revoke(self) -> None:
        """Every token that was made; whether it works or not, each ends by itself."""
        while self._minted:
            token = self._minted.pop()
            request = self._http.build_request(
                "DELETE", self._url, headers={"Authorization": f"Bearer {token.reveal()}"}
            )
            with contextlib.suppress(PackageError):
                await send(self._http, request)
