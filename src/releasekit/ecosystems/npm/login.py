"""As whom an upload goes out: a token, or this workflow itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from releasekit.ecosystems.npm import trusted_publishing
from releasekit.errors import MissingCredentials
from releasekit.http.client import RetryPolicy
from releasekit.http.identity import IdTokens

if TYPE_CHECKING:
    import httpx

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services
    from releasekit.http.credentials import Secret
    from releasekit.model import Package

VARIABLE: Final = "RELEASEKIT_NPM_TOKEN"
_PUBLISHERS: Final = frozenset({"registry.npmjs.org"})


class Login(Protocol):
    """Where the token of a request comes from."""

    def check(self) -> None:
        """Raises MissingCredentials; no network."""

    async def get(self, package: Package) -> Secret:
        """For an upload that starts now. Raises Denied, Transient, Rejected."""

    def for_reading(self) -> Secret | None:
        """For private registries; None when there is nothing lasting to send."""


class Given:
    """What `npm-token` says."""

    def __init__(self, token: Secret) -> None:
        self._token = token

    def check(self) -> None:
        pass

    async def get(self, package: Package) -> Secret:  # noqa: ARG002 (one token for all)
        return self._token

    def for_reading(self) -> Secret | None:
        return self._token


class Trusted:
    """A token for one package at a time, made from this job's identity for each upload."""

    def __init__(self, exchange: trusted_publishing.Exchange) -> None:
        self._exchange = exchange

    def check(self) -> None:
        pass

    async def get(self, package: Package) -> Secret:
        return await self._exchange.mint(package)

    def for_reading(self) -> Secret | None:
        return None


class Missing:
    """Nothing to log in with; reading works all the same."""

    def __init__(self, error: MissingCredentials) -> None:
        self._error = error

    def check(self) -> None:
        raise self._error

    async def get(self, package: Package) -> Secret:  # noqa: ARG002
        raise self._error

    def for_reading(self) -> Secret | None:
        return None


def choose(config: Config, services: Services, url: httpx.URL) -> Login:
    """auto: the token if there is one, else this job's identity where npm knows what that is."""
    credentials = services.credentials
    token = credentials.get(VARIABLE)
    wanted = config.trusted_publishing
    if wanted != "always" and token is not None:
        return Given(token)
    identity = IdTokens(credentials, services.http)
    supported = wanted == "always" or (wanted == "auto" and url.host in _PUBLISHERS)
    if supported and identity.offered:
        policy = RetryPolicy(config.max_retries, config.retry_base_delay_s)
        return Trusted(trusted_publishing.Exchange(url, services, identity, policy))
    hint = "Set it to an access token that may publish (input `npm-token`)."
    if supported:
        hint = f"{hint} For trusted publishing, {trusted_publishing.PERMISSION}"
    return Missing(
        MissingCredentials(f"npm: no credentials for {url}: {VARIABLE} is not set", hint=hint)
    )
