"""As whom an upload goes out: a token, or this workflow itself."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from releasekit.http.identity import IdTokens, SharedToken

if TYPE_CHECKING:
    from collections.abc import Callable

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.shared.trusted_publishing import Exchange
    from releasekit.errors import MissingCredentials
    from releasekit.http.credentials import Secret
    from releasekit.model import Package


class Login(ABC):
    """Where the token of a request comes from."""

    def check(self) -> None:  # noqa: B027 (most have nothing to object to)
        """Raises MissingCredentials; no network."""

    @abstractmethod
    async def get(self, package: Package) -> Secret:
        """For an upload that starts now. Raises Denied, Transient, Rejected."""

    def renew(self, _refused: Secret, /) -> bool:
        """The registry refused this one: whether the next `get` brings another."""
        return False

    def for_reading(self) -> Secret | None:
        """For private registries; None when there is nothing lasting to send."""
        return None

    async def aclose(self) -> None:  # noqa: B027 (most leave nothing behind)
        """Give back what was lent; never raises."""


class Given(Login):
    """What an input says."""

    def __init__(self, token: Secret) -> None:
        self._token = token

    async def get(self, package: Package) -> Secret:  # noqa: ARG002 (one token for all)
        return self._token

    def for_reading(self) -> Secret | None:
        return self._token


class Trusted(Login):
    """Trusted publishing: a token for all packages, made from this job's identity when needed."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._shared = SharedToken(exchange.mint)

    async def get(self, package: Package) -> Secret:  # noqa: ARG002
        return await self._shared.get()

    def renew(self, refused: Secret, /) -> bool:
        self._shared.drop(refused)
        return True

    async def aclose(self) -> None:
        await self._exchange.revoke()


class Missing(Login):
    """Nothing to log in with; `error` says what to set. Reading works all the same."""

    def __init__(self, error: MissingCredentials) -> None:
        self._error = error

    def check(self) -> None:
        raise self._error

    async def get(self, package: Package) -> Secret:  # noqa: ARG002
        raise self._error


def is_trusting(config: Config, *, known: bool) -> bool:
    """Whether this job's identity may be used: "auto" asks only a registry `known` to take it."""
    return config.trusted_publishing == "always" or (config.trusted_publishing == "auto" and known)


def choose(
    config: Config,
    services: Services,
    variable: str,
    *,
    trusted: Login | None,
    missing: Callable[[], MissingCredentials],
) -> Login:
    """The token in `variable` if there is one, else `trusted` where this job has an identity."""
    token = services.credentials.get(variable)
    if token is not None and config.trusted_publishing != "always":
        return Given(token)
    if trusted is not None and IdTokens(services.credentials, services.http).offered:
        return trusted
    return Missing(missing())


def pair(username: str, password: Secret) -> str:
    """A user and a password as a header has them. https://www.rfc-editor.org/rfc/rfc7617"""
    return base64.b64encode(f"{username}:{password.reveal()}".encode()).decode("ascii")
