"""As whom an upload goes out: a token, or this workflow itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from releasekit.ecosystems.cargo import trusted_publishing
from releasekit.errors import MissingCredentials
from releasekit.http.client import RetryPolicy
from releasekit.http.identity import IdTokens

if TYPE_CHECKING:
    from releasekit.config.config import Config
    from releasekit.ecosystems.cargo.destination import Destination
    from releasekit.ecosystems.interface import Services
    from releasekit.http.credentials import Secret


class Login(ABC):
    """Where the token of a request comes from."""

    def check(self) -> None:  # noqa: B027 (most have nothing to object to)
        """Raises MissingCredentials; no network."""

    @abstractmethod
    async def get(self) -> Secret:
        """For an upload that starts now. Raises Denied, Transient, Rejected."""

    def renew(self, _refused: Secret, /) -> bool:
        """The registry refused this one: whether the next `get` brings another."""
        return False

    def for_reading(self) -> Secret | None:
        """For the index of a private server; None when there is nothing lasting to send."""
        return None

    async def aclose(self) -> None:  # noqa: B027 (most leave nothing behind)
        """Give back what was lent; never raises."""


class Given(Login):
    """What `cargo-token` says."""

    def __init__(self, token: Secret) -> None:
        self._token = token

    async def get(self) -> Secret:
        return self._token

    def for_reading(self) -> Secret | None:
        return self._token


class Trusted(Login):
    """Trusted publishing: a token of 30 minutes, made from this job's identity when needed."""

    def __init__(self, exchange: trusted_publishing.Exchange) -> None:
        self._exchange = exchange

    async def get(self) -> Secret:
        return await self._exchange.token()

    def renew(self, refused: Secret, /) -> bool:
        self._exchange.drop(refused)
        return True

    async def aclose(self) -> None:
        await self._exchange.revoke()


class Missing(Login):
    """Nothing to log in with; `error` says what to set. Reading works all the same."""

    def __init__(self, error: MissingCredentials) -> None:
        self._error = error

    def check(self) -> None:
        raise self._error

    async def get(self) -> Secret:
        raise self._error


def choose(config: Config, services: Services, destination: Destination) -> Login:
    """auto: the token if there is one, else this job's identity where crates.io is asked."""
    credentials = services.credentials
    token = credentials.get("RELEASEKIT_CARGO_TOKEN")
    wanted = config.trusted_publishing
    if wanted != "always" and token is not None and token.reveal():
        return Given(token)
    identity = IdTokens(credentials, services.http)
    supported = destination.is_crates_io and wanted != "never"
    if supported and identity.offered:
        policy = RetryPolicy(config.max_retries, config.retry_base_delay_s)
        return Trusted(trusted_publishing.Exchange(destination.api, services, identity, policy))
    hint = "Set it to an API token (input `cargo-token`)."
    if supported:
        hint += (
            " Or give the job `permissions: id-token: write`, and register its workflow at "
            "https://crates.io/crates/CRATE/settings/new-trusted-publisher."
        )
    return Missing(
        MissingCredentials(
            f"cargo: no credentials for {destination.index}: RELEASEKIT_CARGO_TOKEN is not set",
            hint=hint,
        )
    )
