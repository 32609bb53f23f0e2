"""Trusted publishing: this job's identity, exchanged for a short-lived token of a registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from releasekit.errors import Transient
from releasekit.http.client import RetryPolicy, check, retry, send
from releasekit.http.identity import IdTokens, Minted, text_of

if TYPE_CHECKING:
    import httpx

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services
    from releasekit.errors import PackageError
    from releasekit.http.credentials import Secret


class Exchange(ABC):
    """ID token in, upload token out, with the registry at `url`."""

    def __init__(self, url: httpx.URL, config: Config, services: Services) -> None:
        self._url = url
        self._http = services.http
        self._credentials = services.credentials
        self._identity = IdTokens(services.credentials, services.http)
        self._policy = RetryPolicy(config.max_retries, config.retry_base_delay_s)

    @property
    def what(self) -> str:
        """How messages begin."""
        return f"trusted publishing at {self._url.host}"

    @abstractmethod
    async def audience(self) -> str:
        """Whom the ID token has to be for."""

    @abstractmethod
    def request(self, token: Secret) -> httpx.Request:
        """What is sent with an ID token."""

    @abstractmethod
    def refusal(self, response: httpx.Response, token: Secret) -> PackageError | None:
        """Why the registry does not trust this job, and what to change; None for another answer."""

    def lifetime_s(self, _response: httpx.Response) -> float:
        """How long the token can be used; 0 for one upload."""
        return 0.0

    async def mint(self) -> Minted:
        """Masked before it is returned. Raises Denied with what to change, or Transient."""
        try:
            return await retry(self._attempt, self._policy)
        except Transient as error:
            # Whatever became of the token, nothing was uploaded.
            error.ambiguous = False
            raise

    async def revoke(self) -> None:  # noqa: B027 (most registries cannot)
        """Give back what was minted, where the registry can take it; never raises."""

    async def _attempt(self) -> Minted:
        # A registry takes each ID token once, so every attempt brings its own.
        token = await self._identity.fetch(await self.audience())
        response = await send(self._http, self.request(token))
        if refusal := self.refusal(response, token):
            raise refusal
        check(response, self.what, redact=self._credentials.redact)
        minted = text_of(response, "token")
        if minted is None:
            raise Transient(f"{self.what}: an answer without a token")
        return Minted(self._credentials.adopt(minted), self.lifetime_s(response))
