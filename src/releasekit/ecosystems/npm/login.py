"""As whom an upload goes out: a token, or this workflow itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.npm import trusted_publishing
from releasekit.ecosystems.shared import login
from releasekit.errors import MissingCredentials

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.npm.trusted_publishing import Exchange
    from releasekit.http.credentials import Secret
    from releasekit.model import Package

_VARIABLE: Final = "RELEASEKIT_NPM_TOKEN"
_PUBLISHERS: Final = frozenset({"registry.npmjs.org"})


class Trusted(login.Login):
    """A token for one package at a time, made from this job's identity for each upload."""

    def __init__(self, exchange: Callable[[Package], Exchange]) -> None:
        self._exchange = exchange

    async def get(self, package: Package) -> Secret:
        return (await self._exchange(package).mint()).token


def choose(config: Config, services: Services, url: httpx.URL) -> login.Login:
    """auto: the token if there is one, else this job's identity where npm knows what that is."""
    trusting = login.is_trusting(config, known=url.host in _PUBLISHERS)

    def missing() -> MissingCredentials:
        hint = "Set it to an access token that may publish (input `npm-token`)."
        if trusting:
            hint = f"{hint} For trusted publishing, {trusted_publishing.PERMISSION}"
        return MissingCredentials(
            f"npm: no credentials for {url}: {_VARIABLE} is not set", hint=hint
        )

    def exchange(package: Package) -> Exchange:
        return trusted_publishing.Exchange(url, config, services, package)

    trusted = Trusted(exchange) if trusting else None
    return login.choose(config, services, _VARIABLE, trusted=trusted, missing=missing)
