"""As whom an upload goes out: a token, a user and a password, or this workflow itself."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.pypi import Inputs, trusted_publishing
from releasekit.errors import MissingCredentials
from releasekit.http.client import RetryPolicy
from releasekit.http.identity import IdTokens, SharedToken

if TYPE_CHECKING:
    import httpx

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services
    from releasekit.http.credentials import Secret

# The user name that says "the password is an API token".
# https://pypi.org/help/#apitoken
TOKEN_USER: Final = "__token__"  # noqa: S105 (the user, not the password)
_PUBLISHERS: Final = frozenset({"upload.pypi.org", "test.pypi.org"})


@dataclass(frozen=True, slots=True)
class Basic:
    """https://www.rfc-editor.org/rfc/rfc7617"""

    username: str
    password: Secret

    @property
    def header(self) -> str:
        pair = f"{self.username}:{self.password.reveal()}".encode()
        return f"Basic {base64.b64encode(pair).decode('ascii')}"


class Login(ABC):
    """Where the credentials of a request come from."""

    def check(self) -> None:  # noqa: B027 (most have nothing to object to)
        """Raises MissingCredentials; no network."""

    @abstractmethod
    async def get(self) -> Basic:
        """For an upload that starts now. Raises Denied, Transient, Rejected."""

    def renew(self, _refused: Basic, /) -> bool:
        """The registry refused these: whether the next `get` brings something else."""
        return False

    def for_reading(self) -> Basic | None:
        """For the index of a private server; None when there is nothing lasting to send."""
        return None


class Given(Login):
    """What `pypi-token` and `pypi-username` say."""

    def __init__(self, basic: Basic) -> None:
        self._basic = basic

    async def get(self) -> Basic:
        return self._basic

    def for_reading(self) -> Basic | None:
        return self._basic


class Trusted(Login):
    """Trusted publishing: a token of 15 minutes, made from this job's identity when needed."""

    def __init__(self, tokens: SharedToken) -> None:
        self._tokens = tokens

    async def get(self) -> Basic:
        return Basic(TOKEN_USER, await self._tokens.get())

    def renew(self, refused: Basic, /) -> bool:
        self._tokens.drop(refused.password)
        return True


class Missing(Login):
    """Nothing to log in with; `error` says what to set. Reading works all the same."""

    def __init__(self, error: MissingCredentials) -> None:
        self._error = error

    def check(self) -> None:
        raise self._error

    async def get(self) -> Basic:
        raise self._error


def choose(config: Config, services: Services, upload: httpx.URL) -> Login:
    """auto: the token if there is one, else this job's identity where PyPI knows what that is."""
    credentials = services.credentials
    token = credentials.get("RELEASEKIT_PYPI_TOKEN")
    wanted = config.trusted_publishing
    if wanted != "always" and token is not None:
        return Given(Basic(config.own(Inputs).username, token))
    identity = IdTokens(credentials, services.http)
    supported = wanted == "always" or (wanted == "auto" and upload.host in _PUBLISHERS)
    if supported and identity.offered:
        policy = RetryPolicy(config.max_retries, config.retry_base_delay_s)
        exchange = trusted_publishing.Exchange(upload, services, identity, policy)
        return Trusted(SharedToken(exchange.mint))
    if supported:
        return Missing(trusted_publishing.not_offered(upload, credentials.environment))
    return Missing(
        MissingCredentials(
            f"pypi: no credentials for {upload}: RELEASEKIT_PYPI_TOKEN is not set",
            hint="Set it to an API token (input `pypi-token`). For a user and a password, give the "
            "user as `pypi-username` and the password in RELEASEKIT_PYPI_TOKEN.",
        )
    )
