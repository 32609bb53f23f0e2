"""What authenticates an upload: a token, or this job's identity, exchanged for a token.

https://docs.npmjs.com/trusted-publishers and
https://github.com/npm/cli/blob/latest/lib/utils/oidc.js
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import httpx

from releasekit.ecosystems.npm.user_login import npmrc_login
from releasekit.ecosystems.shared import login
from releasekit.errors import Denied
from releasekit.http.client import message_of
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from releasekit.config.config import Config
    from releasekit.config.values import Url
    from releasekit.ecosystems.interface import Services
    from releasekit.http.credentials import Secret
    from releasekit.model import Package

_PUBLISHERS: Final = frozenset({"registry.npmjs.org"})
_REGISTER: Final = (
    "Add this workflow as the package's trusted publisher: "
    "https://www.npmjs.com/package/{name}/access. The package has to exist (publish its first "
    "version with a token), the runner has to be GitHub's own, and `repository.url` in its "
    "package.json has to be this repository."
)


class Trusted(login.Login):
    """A token for one package at a time, made from this job's identity for each upload."""

    def __init__(self, exchange: Callable[[Package], login.Exchange]) -> None:
        self._exchange = exchange

    async def get(self, package: Package) -> Secret:
        return (await self._exchange(package).mint()).token


def login_for(config: Config, services: Services, registry: Url) -> login.Login:
    """auto: the token if there is one, else this job's identity where npm knows what that is; on a
    laptop the token that `npm login` has left.
    """
    url = httpx.URL(registry.text)
    trusting = login.is_trusting(config, known=url.host in _PUBLISHERS)
    wanted = login.TokenInput(
        ecosystem="npm",
        registry=registry,
        kind="an access token that may publish",
    )
    trusted = Trusted(partial(PackageExchange, url, config, services)) if trusting else None
    chosen = login.choose_login(config, services, wanted, trusted=trusted)
    credentials = services.credentials
    if (
        services.ci.is_actions
        or config.trusted_publishing == "always"
        or isinstance(chosen, login.Given)
    ):
        return chosen
    return npmrc_login(config, credentials, registry, services.processes.sandbox) or chosen


class PackageExchange(login.Exchange):
    """The token publishes one package."""

    def __init__(
        self, url: httpx.URL, config: Config, services: Services, package: Package
    ) -> None:
        super().__init__(url, config, services)
        self._package = package

    @property
    def what(self) -> str:
        return f"{self._package}: {super().what}"

    async def audience(self) -> str:
        return f"npm:{self._url.host}"

    def request(self, token: Secret) -> httpx.Request:
        name = self._package.id.name.replace("/", "%2f")
        path = f"{self._url.path.rstrip('/')}/-/npm/v1/oidc/token/exchange/package/{name}"
        return self._http.build_request(
            "POST",
            self._url.copy_with(path=path),
            headers={"Authorization": f"Bearer {token.reveal()}"},
        )

    def refusal(self, response: httpx.Response, _token: Secret) -> Denied | None:
        if response.status_code not in {400, 401, 403, 404, 422}:
            return None
        words = message_of(response, redact=self._credentials.redact)
        return Denied(
            f"{self.what}: HTTP {response.status_code} {words}",
            hint=_REGISTER.format(name=self._package.id.name),
            problem=Problem.NOT_TRUSTED,
        )
