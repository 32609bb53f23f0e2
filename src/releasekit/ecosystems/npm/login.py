"""What authenticates a request: a token, this job's identity, exchanged for a token, or what the
user's .npmrc has for the registry.

Only the user's own .npmrc is read, never a project's: that comes with the sources, and could name
any place for the token of this one. The user's names the place of each token in it, unless it lies
where builds can write.
https://docs.npmjs.com/trusted-publishers,
https://github.com/npm/cli/blob/latest/lib/utils/oidc.js and
https://docs.npmjs.com/cli/v11/configuring-npm/npmrc#auth-related-configuration
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx

from releasekit.config.declaration import PREFIX
from releasekit.ecosystems.npm import NPMJS_HOST
from releasekit.ecosystems.shared import login
from releasekit.errors import Denied, MissingCredentials
from releasekit.host.files import is_file, is_in_checkout, read_file
from releasekit.http.answers import message_of
from releasekit.http.credentials import Secret
from releasekit.http.identity import CIRCLECI, GITHUB, GITLAB, SharedToken, text_of
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.config.values import TrustedPublishing, Url
    from releasekit.ecosystems.interface import Services
    from releasekit.host.sandbox import Sandbox
    from releasekit.http.credentials import Credentials
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
# What actions/setup-node sets where it is given no token:
# https://github.com/actions/setup-node/blob/main/src/authutil.ts
_NO_TOKEN: Final = "XXXXX-XXXXX-XXXXX-XXXXX"  # noqa: S105
_VARIABLE: Final = re.compile(r"\$\{([^${}?]+)(\?)?\}")


class EncodedPair(Secret):
    """A user and a password, in base64."""

    __slots__ = ()


def make_login(
    wish: TrustedPublishing, root: Path, services: Services, registry: Url
) -> login.Login:
    """auto: the token if there is one, else this job's identity where npm knows what that is, else
    the login of the user's .npmrc, except for npmjs.com in a job of GitHub Actions.
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
    # A token that is withheld has no other one in its place.
    if wish == "always" or credentials.get(TOKEN) or not isinstance(chosen, login.NoAuth):
        return chosen
    in_job = services.ci.is_actions
    if in_job and url.host == NPMJS_HOST:
        return chosen
    sandbox = services.processes.sandbox
    return read_npmrc_login(root, credentials, registry, sandbox, in_job=in_job) or chosen


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
            f"{_find_npmrc(credentials) or 'no .npmrc'} has no login for it",
            hint=f"Run `npm login --registry {url}` first; a token that may only stage cannot "
            "approve.",
        )
    )


def authorize(token: Secret | None) -> dict[str, str]:
    """The header that carries `token`; none without one."""
    if token is None:
        return {}
    scheme = "Basic" if isinstance(token, EncodedPair) else "Bearer"
    return {"Authorization": f"{scheme} {token.reveal()}"}


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
    root: Path, credentials: Credentials, registry: Url, sandbox: Sandbox, *, in_job: bool = False
) -> login.Login | None:
    """What the user's .npmrc has for `registry`; None for nothing. One that a pull request or a
    build could have written does not count in a job, nor for a registry that no input names.
    """
    path = _find_npmrc(credentials)
    if path is None or not is_file(path):
        return None
    text = read_file(path, max_bytes=_MAX_BYTES).decode("utf-8-sig", "replace")
    secret = _find_secret(text, httpx.URL(registry.text), credentials)
    if secret is None:
        return None
    if is_in_checkout(path, root) or sandbox.can_change(path):
        if held := login.withhold("npm", registry):
            return held
        if in_job:
            return login.NoAuth(
                MissingCredentials(
                    f"npm: the login for {registry} in {path} is not used: a pull request or a "
                    "build could have written it",
                    hint="Keep that file outside of the checkout and of temporary directories, or "
                    f"set {TOKEN}.",
                )
            )
    return login.TokenAuth(secret, source=str(path))


def _find_npmrc(credentials: Credentials) -> Path | None:
    environment = credentials.environment
    for variable in _FILE_VARIABLES:
        if given := environment.get(variable):
            return Path(given)
    home = environment.get("HOME") or environment.get("USERPROFILE")
    return Path(home) / ".npmrc" if home else None


def _find_secret(text: str, url: httpx.URL, credentials: Credentials) -> Secret | None:
    """That of the longest address that `url` begins with and that has one.
    https://github.com/npm/npm-registry-fetch/blob/main/lib/auth.js (regFromURI)
    """
    logins: dict[str, dict[str, str]] = {}
    for line in re.split(r"[\r\n]+", text):
        if line.startswith("["):
            break  # what follows belongs to this section
        key, _, value = line.partition("=")
        place, _, name = key.strip().rpartition(":")
        if place.startswith("//"):
            expanded = _expand(_read_value(value.strip()), credentials)
            logins.setdefault(place.rstrip("/"), {})[name] = expanded
    path = url.raw_path.decode("ascii").partition("?")[0]
    place = f"//{url.netloc.decode('ascii')}{path}".rstrip("/")
    while place.count("/") > 1:
        if secret := _read_secret(logins.get(place, {}), credentials):
            return secret
        place = place.rpartition("/")[0]
    return None


def _read_value(text: str) -> str:
    """Without its quotes, or what is a comment behind it.
    https://github.com/npm/ini/blob/main/lib/ini.js (unsafe)
    """
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    kept = re.match(r"(?:\\.|[^;#\\])*", text)
    return re.sub(r"\\([;#\\])", r"\1", kept[0] if kept else "").strip()


def _read_secret(values: Mapping[str, str], credentials: Credentials) -> Secret | None:
    """As npm prefers them: a token, a user with a password in base64, or both apart, of which the
    password alone is in base64.
    https://docs.npmjs.com/cli/v11/configuring-npm/npmrc#auth-related-configuration
    """
    token, encoded, user, password = (
        values.get(name, "") for name in ("_authToken", "_auth", "username", "_password")
    )
    if not (token + encoded).isascii():
        return None
    if token:
        return credentials.adopt(token) if token != _NO_TOKEN else None
    if not encoded and user and password:
        credentials.adopt(password)
        encoded = base64.b64encode(f"{user}:".encode() + _decode(password)).decode("ascii")
    if not encoded:
        return None
    credentials.adopt(_decode(encoded).decode("utf-8", "replace").partition(":")[2])
    credentials.adopt(encoded)
    return EncodedPair(encoded)


def _decode(text: str) -> bytes:
    """As Node reads base64: to the first `=`, with or without it, and past what is none."""
    plain = text.partition("=")[0].replace("-", "+").replace("_", "/")
    digits = re.sub(r"[^A-Za-z0-9+/]", "", plain)
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return base64.b64decode(digits + "=" * (-len(digits) % 4))


def _expand(text: str, credentials: Credentials) -> str:
    """With the values of `${VARIABLE}`, of which `${VARIABLE?}` may be unset; empty where another
    one is, and where one is an input of this program: a login of its own is for its own registry.
    https://docs.npmjs.com/cli/v11/configuring-npm/npmrc
    """
    values = {}
    for found in _VARIABLE.finditer(text):
        name, may_be_unset = found.groups()
        secret = None if name.startswith(PREFIX) else credentials.get(name)
        value = secret.reveal() if secret else credentials.environment.get(name, "")
        if not value and not may_be_unset:
            return ""
        values[found[0]] = value
    expanded = _VARIABLE.sub(lambda match: values[match[0]], text)
    return expanded if expanded.isprintable() else ""
