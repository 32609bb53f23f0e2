"""What authenticates a request: a token, this job's identity, exchanged for a token, or what
`npm login` has left for a person.

Only the user's own .npmrc is read, never a project's: that comes with the sources, and could name
any place for the token of this one. The user's names the place of each token in it, unless it lies
where builds can write.
https://docs.npmjs.com/trusted-publishers,
https://github.com/npm/cli/blob/latest/lib/utils/oidc.js and
https://docs.npmjs.com/cli/v11/configuring-npm/npmrc#auth-related-configuration
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx

from releasekit.ecosystems.npm import NPMJS_HOST
from releasekit.ecosystems.shared import login
from releasekit.errors import Denied, MissingCredentials
from releasekit.host.files import is_in_checkout, read_text
from releasekit.http.answers import message_of
from releasekit.http.identity import CIRCLECI, GITHUB, GITLAB, SharedToken, text_of
from releasekit.problems import Problem

if TYPE_CHECKING:
    from releasekit.config.values import TrustedPublishing, Url
    from releasekit.ecosystems.interface import Services
    from releasekit.host.sandbox import Sandbox
    from releasekit.http.credentials import Credentials, Secret
    from releasekit.model import Package

TOKEN: Final = "RELEASEKIT_NPM_TOKEN"  # noqa: S105 (its name)
_REGISTER: Final = (
    "Add this workflow as the package's trusted publisher: "
    "https://www.npmjs.com/package/{name}/access. The package has to exist (publish its first "
    "version with a token), the runner has to be {maker}'s own, and `repository.url` in its "
    "package.json has to be this repository."
)
# https://docs.npmjs.com/trusted-publishers#supported-cicd-providers
_ISSUERS: Final = (GITHUB, GITLAB, CIRCLECI)
_FILE_VARIABLES: Final = ("npm_config_userconfig", "NPM_CONFIG_USERCONFIG")
_MAX_BYTES: Final = 1024 * 1024
_KEY: Final = ":_authToken"
_VARIABLE: Final = re.compile(r"\$\{([^${}]+)\}")


def make_login(
    wish: TrustedPublishing, root: Path, services: Services, registry: Url
) -> login.Login:
    """auto: the token if there is one, else this job's identity where npm knows what that is; on a
    laptop the token that `npm login` has left.
    """
    url = httpx.URL(registry.text)
    trusting = login.is_trusting(wish, known=url.host == NPMJS_HOST)
    wanted = login.TokenInput(
        ecosystem="npm", registry=registry, kind="an access token that may publish"
    )
    trusted = PackageTokens(url, services) if trusting else None
    chosen = login.choose_login(
        wish, services, wanted, trusted=trusted, audiences=[f"npm:{url.host}"], issuers=_ISSUERS
    )
    credentials = services.credentials
    if services.ci.is_actions or wish == "always" or not isinstance(chosen, login.NoAuth):
        return chosen
    return read_npmrc_login(root, credentials, registry, services.processes.sandbox) or chosen


def make_user_login(
    root: Path, credentials: Credentials, registry: Url, sandbox: Sandbox
) -> login.Login:
    """For `registry`, whose URL is safe; raises ConfigError for a file that cannot be read."""
    url = httpx.URL(registry.text)
    if token := credentials.get(TOKEN):
        return login.withhold("npm", registry) or login.TokenAuth(token, variable=TOKEN)
    if found := read_npmrc_login(root, credentials, registry, sandbox):
        return found
    return login.NoAuth(
        MissingCredentials(
            f"npm: no credentials for {url}: {TOKEN} is not set, and "
            f"{_find_npmrc(credentials) or 'no .npmrc'} has no token for it",
            hint=f"Run `npm login --registry {url}` first; a token that may only stage cannot "
            "approve.",
        )
    )


def authorize(token: Secret | None) -> dict[str, str]:
    """The header that carries `token`; none without one."""
    return {} if token is None else {"Authorization": f"Bearer {token.reveal()}"}


class PackageTokens(login.Login):
    """A token for one package at a time, made from this job's identity for each upload."""

    def __init__(self, url: httpx.URL, services: Services) -> None:
        self._url, self._services = url, services
        self._proofs: dict[str, SharedToken] = {}

    def check(self) -> str:
        return login.TRUSTED

    async def get(self, package: Package) -> Secret:
        token = self._proofs.pop(package.id.name, None) or self._make_token(package)
        return await token.get()

    async def prove(self, package: Package) -> None:
        """Raises as `get` where npm does not trust this job; else its next upload has the token."""
        await self._proofs.setdefault(package.id.name, self._make_token(package)).get()

    def _make_token(self, package: Package) -> SharedToken:
        return SharedToken(PackageExchange(self._url, self._services, package).mint)


class PackageExchange(login.TokenExchange):
    """The token publishes one package. One ID token of GitLab is enough for all: npm's own client
    knows a single NPM_ID_TOKEN.
    """

    takes_once = False

    def __init__(self, url: httpx.URL, services: Services, package: Package) -> None:
        super().__init__(url, services)
        self._package = package
        self._maker = services.ci.name

    @property
    def what(self) -> str:
        return f"{self._package}: {super().what}"

    async def audience(self) -> str:
        return f"npm:{self._url.host}"

    def request(self, token: Secret) -> httpx.Request:
        name = self._package.id.name.replace("/", "%2f")
        path = f"{self._url.path.rstrip('/')}/-/npm/v1/oidc/token/exchange/package/{name}"
        return self._http.build_request(
            "POST", self._url.copy_with(path=path), headers=authorize(token)
        )

    def lifetime_s(self, response: httpx.Response) -> float:
        """https://github.com/npm/api-documentation/blob/main/api/registry.npmjs.com/oidc.yaml"""
        try:
            expires = datetime.fromisoformat(text_of(response, "expires") or "")
            return (expires - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):  # none, or without a zone
            return 0.0

    def refusal(self, response: httpx.Response, _token: Secret) -> Denied | None:
        if response.status_code not in {400, 401, 403, 404, 422}:
            return None
        words = message_of(response, redact=self._credentials.redact)
        return Denied(
            f"{self.what}: HTTP {response.status_code} {words}",
            hint=_REGISTER.format(name=self._package.id.name, maker=self._maker),
            problem=Problem.NOT_TRUSTED,
        )


def read_npmrc_login(
    root: Path, credentials: Credentials, registry: Url, sandbox: Sandbox
) -> login.Login | None:
    """The token in the user's .npmrc; None where that has none for `registry`."""
    path = _find_npmrc(credentials)
    if path is None or not path.exists():
        return None
    text = read_text(path, max_bytes=_MAX_BYTES)
    found = _expand(_find_token(text, httpx.URL(registry.text)), credentials)
    if not found:
        return None
    foreign = is_in_checkout(path, root) or sandbox.can_change(path)
    held = login.withhold("npm", registry) if foreign else None
    return held or login.TokenAuth(credentials.adopt(found), source=str(path))


def _find_npmrc(credentials: Credentials) -> Path | None:
    environment = credentials.environment
    for variable in _FILE_VARIABLES:
        if given := environment.get(variable):
            return Path(given)
    home = environment.get("HOME") or environment.get("USERPROFILE")
    return Path(home) / ".npmrc" if home else None


def _find_token(text: str, url: httpx.URL) -> str:
    """The one of the longest address that `url` begins with, as npm chooses it; empty for none.
    https://github.com/npm/npm-registry-fetch/blob/main/lib/auth.js (regFromURI)
    """
    found = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        place = key.strip()
        if equals and place.startswith("//") and place.endswith(_KEY):
            found[place.removesuffix(_KEY).rstrip("/")] = value.strip().strip("\"'")
    place = f"//{url.netloc.decode('ascii')}{url.path}".rstrip("/")
    while place not in found and place.count("/") > 2:
        place = place.rpartition("/")[0]
    return found.get(place, "")


def _expand(token: str, credentials: Credentials) -> str:
    """With the values of `${VARIABLE}`; empty where one is not set, and for no token."""
    values = {}
    for name in _VARIABLE.findall(token):
        secret = credentials.get(name)
        values[name] = secret.reveal() if secret else credentials.environment.get(name, "")
    if not all(values.values()):
        return ""
    expanded = _VARIABLE.sub(lambda match: values[match[1]], token)
    return expanded if expanded.isascii() and expanded.isprintable() else ""
