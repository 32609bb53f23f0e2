"""Who a person is at an npm registry: a token in the environment, or what `npm login` has left.

Only the user's own .npmrc is read, never a project's: that comes with the sources, and could name
any place for the token of this one. The user's names the place of each token in it, unless it lies
where builds can write.
https://docs.npmjs.com/cli/v11/configuring-npm/npmrc#auth-related-configuration
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx

from releasekit.ecosystems.shared import login
from releasekit.errors import MissingCredentials
from releasekit.host.files import is_in_checkout, read_text

if TYPE_CHECKING:
    from releasekit.config.config import Config
    from releasekit.config.values import Url
    from releasekit.host.sandbox import Sandbox
    from releasekit.http.credentials import Credentials

TOKEN: Final = "RELEASEKIT_NPM_TOKEN"  # noqa: S105 (its name)
_FILE_VARIABLES: Final = ("npm_config_userconfig", "NPM_CONFIG_USERCONFIG")
_MAX_BYTES: Final = 1024 * 1024
_KEY: Final = ":_authToken"
_VARIABLE: Final = re.compile(r"\$\{([^${}]+)\}")


def user_login(
    config: Config, credentials: Credentials, registry: Url, sandbox: Sandbox
) -> login.Login:
    """For `registry`, whose URL is safe; raises ConfigError for a file that cannot be read."""
    url = httpx.URL(registry.text)
    if token := credentials.get(TOKEN):
        return login.withhold("npm", registry) or login.Given(token)
    if found := npmrc_login(config, credentials, registry, sandbox):
        return found
    return login.Missing(
        MissingCredentials(
            f"npm: no credentials for {url}: {TOKEN} is not set, and "
            f"{_npmrc(credentials) or 'no .npmrc'} has no token for it",
            hint=f"Run `npm login --registry {url}` first; a token that may only stage cannot "
            "approve.",
        )
    )


def npmrc_login(
    config: Config, credentials: Credentials, registry: Url, sandbox: Sandbox
) -> login.Login | None:
    """As `user_login`, of the file alone; None where that has no token."""
    path = _npmrc(credentials)
    if path is None or not path.exists():
        return None
    text = read_text(path, max_bytes=_MAX_BYTES)
    found = _expanded(_token_in(text, httpx.URL(registry.text)), credentials)
    if not found:
        return None
    foreign = is_in_checkout(path, config.root) or sandbox.can_change(path)
    held = login.withhold("npm", registry) if foreign else None
    return held or login.Given(credentials.adopt(found), source=str(path))


def _npmrc(credentials: Credentials) -> Path | None:
    environment = credentials.environment
    for variable in _FILE_VARIABLES:
        if given := environment.get(variable):
            return Path(given)
    home = environment.get("HOME") or environment.get("USERPROFILE")
    return Path(home) / ".npmrc" if home else None


def _token_in(text: str, url: httpx.URL) -> str:
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


def _expanded(token: str, credentials: Credentials) -> str:
    """With the values of `${VARIABLE}`; empty where one is not set, and for no token."""
    values = {}
    for name in _VARIABLE.findall(token):
        secret = credentials.get(name)
        values[name] = secret.reveal() if secret else credentials.environment.get(name, "")
    if not all(values.values()):
        return ""
    expanded = _VARIABLE.sub(lambda match: values[match[1]], token)
    return expanded if expanded.isascii() and expanded.isprintable() else ""
