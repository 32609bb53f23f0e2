"""Trusted publishing: this job's identity, exchanged for a token that publishes one package.

https://docs.npmjs.com/trusted-publishers and
https://github.com/npm/cli/blob/latest/lib/utils/oidc.js
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.errors import Denied, Transient
from releasekit.http.client import check, message_of, retry, send
from releasekit.http.identity import text_of

if TYPE_CHECKING:
    import httpx

    from releasekit.ecosystems.interface import Services
    from releasekit.http.client import RetryPolicy
    from releasekit.http.credentials import Secret
    from releasekit.http.identity import IdTokens
    from releasekit.model import Package

PERMISSION: Final = (
    "give the job that publishes this permission:\n"
    "    permissions:\n"
    "      contents: read\n"
    "      id-token: write"
)
_REGISTER: Final = (
    "Add this workflow as the package's trusted publisher: "
    "https://www.npmjs.com/package/{name}/access. The package has to exist (publish its first "
    "version with a token), the runner has to be GitHub's own, and `repository.url` in its "
    "package.json has to be this repository."
)


class Exchange:
    """ID token in, upload token out, with the registry at `url`."""

    def __init__(
        self, url: httpx.URL, services: Services, identity: IdTokens, policy: RetryPolicy
    ) -> None:
        self._url = url
        self._http = services.http
        self._credentials = services.credentials
        self._identity = identity
        self._policy = policy

    async def mint(self, package: Package) -> Secret:
        """Masked before it is returned. Raises Denied with what to change, or Transient."""
        try:
            return await retry(lambda: self._attempt(package), self._policy)
        except Transient as error:
            # Whatever became of the token, nothing was uploaded.
            error.ambiguous = False
            raise

    async def _attempt(self, package: Package) -> Secret:
        what = f"{package.id} {package.version}: trusted publishing at {self._url.host}"
        # Each token is taken once, so every attempt brings its own.
        token = await self._identity.fetch(f"npm:{self._url.host}")
        name = package.id.name.replace("/", "%2f")
        path = f"{self._url.path.rstrip('/')}/-/npm/v1/oidc/token/exchange/package/{name}"
        request = self._http.build_request(
            "POST",
            self._url.copy_with(path=path),
            headers={"Authorization": f"Bearer {token.reveal()}"},
        )
        response = await send(self._http, request)
        if response.status_code in {400, 401, 403, 404, 422}:
            words = message_of(response, redact=self._credentials.redact)
            raise Denied(
                f"{what}: HTTP {response.status_code} {words}",
                hint=_REGISTER.format(name=package.id.name),
            )
        check(response, what, redact=self._credentials.redact)
        minted = text_of(response, "token")
        if minted is None:
            raise Transient(f"{what}: an answer without a token")
        return self._credentials.adopt(minted)
