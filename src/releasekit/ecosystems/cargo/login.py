"""What authenticates an upload: a token, or a crates.io token for the identity of this job.

https://crates.io/docs/trusted-publishing and, for the requests,
https://github.com/rust-lang/crates-io-auth-action
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

import httpx

from releasekit.config.values import Url
from releasekit.ecosystems.shared import login
from releasekit.ecosystems.shared.answers import errors_of
from releasekit.errors import Denied, PackageError, Transient
from releasekit.http.client import send
from releasekit.http.identity import GITHUB, GITLAB
from releasekit.problems import Problem
from releasekit.text.escape import one_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from releasekit.aio import Group
    from releasekit.config.values import TrustedPublishing
    from releasekit.ecosystems.cargo.destination import Destination
    from releasekit.ecosystems.interface import Services
    from releasekit.http.credentials import Secret
    from releasekit.http.identity import Minted

LIFETIME_S: Final = 30 * 60.0
# https://github.com/rust-lang/crates.io/blob/main/src/controllers/trustpub/tokens/exchange/mod.rs
_ISSUERS: Final = (GITHUB, GITLAB)
_USED: Final = "JWT has already been used"
# https://github.com/rust-lang/crates.io/blob/main/crates/crates_io_trustpub/src/gitlab/workflows.rs
_UNREAD: Final = "`ci_config_ref_uri`"
_AT_SIGN: Final = (
    "crates.io does not find the CI file where the name of the tag or branch has an `@` in it: "
    "publish from another one, such as v1.2.0, or set `cargo-token`."
)
# The run is over, and waits for no more than this.
_REVOKED_WITHIN_S: Final = 10.0
_REGISTER: Final = (
    "Register this repository, workflow file and environment for each crate: "
    "https://crates.io/crates/CRATE/settings/new-trusted-publisher. A crate that is not on "
    "crates.io yet needs `cargo-token` the first time."
)


def make_login(
    wish: TrustedPublishing, services: Services, destination: Destination, *, group: Group
) -> login.Login:
    """auto: the token if there is one, else the identity of this job, for crates.io only. Tokens
    that the run makes belong to `group`.
    """
    trusting = destination.is_crates_io and login.is_trusting(wish, known=True)
    url = httpx.URL(f"{destination.api}/api/v1/trusted_publishing/tokens")
    exchange = CratesIoExchange(url, services, group=group)
    wanted = login.TokenInput(
        ecosystem="cargo",
        registry=Url(destination.index, destination.only_in),
        kind="an API token",
        register=", and register its workflow at "
        "https://crates.io/crates/CRATE/settings/new-trusted-publisher",
    )
    trusted = login.OidcAuth(exchange) if trusting else None
    return login.choose_login(
        wish, services, wanted, trusted=trusted, audiences=[url.host], issuers=_ISSUERS
    )


def error_text(response: httpx.Response) -> str:
    """The details of `{"errors": [{"detail": "…"}]}`; empty for any other answer."""
    return "; ".join(str(error.get("detail")) for error in errors_of(response))


class CratesIoExchange(login.TokenExchange):
    """With the API at `url`. The tokens belong to `group`, which revokes them when it closes."""

    def __init__(self, url: httpx.URL, services: Services, *, group: Group) -> None:
        super().__init__(url, services)
        self._group = group

    async def audience(self) -> str:
        return self._url.host

    def request(self, token: Secret) -> httpx.Request:
        return self._http.build_request("POST", self._url, json={"jwt": token.reveal()})

    def refusal(self, response: httpx.Response, _token: Secret) -> Denied | Transient | None:
        if not 400 <= response.status_code < 404:
            return None
        words = one_line(self._credentials.redact(error_text(response)))
        what = f"{self.what} is refused: {words or response.status_code}"
        if _USED in words:
            return Transient(what)
        return Denied(
            what, hint=_AT_SIGN if _UNREAD in words else _REGISTER, problem=Problem.NOT_TRUSTED
        )

    def lifetime_s(self, _response: httpx.Response) -> float:
        return LIFETIME_S

    async def mint(self) -> Minted:
        return await self._group.enter(self._lend())

    @contextlib.asynccontextmanager
    async def _lend(self) -> AsyncIterator[Minted]:
        minted = await super().mint()
        try:
            yield minted
        finally:
            bearer = {"Authorization": f"Bearer {minted.token.reveal()}"}
            request = self._http.build_request("DELETE", self._url, headers=bearer)
            # A failure is harmless: the token expires soon.
            with contextlib.suppress(PackageError, TimeoutError):
                async with asyncio.timeout(_REVOKED_WITHIN_S):
                    await send(self._http, request)
