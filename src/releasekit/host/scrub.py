"""What a child process may see of our environment, and what may be seen of its output."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

# Everything not named here stays outside: a variable with a harmless name may hold anything a
# workflow's `env:` puts there. GITHUB_ENV, GITHUB_OUTPUT and their like stay outside as well: who
# may write to those files can change the steps that follow.
# https://docs.github.com/en/actions/reference/security/secure-use#understanding-the-risk-of-script-injections
_ALLOWED: Final = re.compile(
    r"""
      PATH | HOME | USER | LOGNAME | SHELL | LANG | LANGUAGE | LC_\w+ | TZ | TMPDIR | TEMP | TMP
    | XDG_\w+ | CI | GITHUB_ACTIONS | GITHUB_(SHA|REF|REF_NAME|REPOSITORY|SERVER_URL|WORKSPACE)
    | RUNNER_(OS|ARCH|TEMP|TOOL_CACHE) | SOURCE_DATE_EPOCH
    | (HTTP|HTTPS|ALL|NO)_PROXY | (http|https|all|no)_proxy
    | SSL_CERT_(FILE|DIR) | REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE | NODE_EXTRA_CA_CERTS
    | PIP_\w+ | UV_\w+ | PYENV_\w+ | HATCH_\w+ | SETUPTOOLS_\w+ | PDM_\w+ | POETRY_\w+ | MATURIN_\w+
    | CC | CXX | AR | LD | (C|CXX|CPP|LD|RUST|ARCH)FLAGS | MAKEFLAGS | CMAKE_\w+ | PKG_CONFIG\w*
    | LD_LIBRARY_PATH | LIBRARY_PATH | CPATH | MACOSX_DEPLOYMENT_TARGET | SDKROOT | DEVELOPER_DIR
    | CARGO_\w+ | RUSTUP_\w+ | RUSTC\w* | GO[A-Z0-9]+ | CGO_\w+
    | JAVA_\w+ | JDK_\w+ | M2_HOME | MAVEN_(HOME|OPTS|ARGS) | MVNW_\w+
    | NODE_(ENV|OPTIONS) | (NPM|npm)_(CONFIG|config)_\w+ | PNPM_HOME | NVM_\w+ | VOLTA_\w+
    | COREPACK_\w+
    """,
    re.VERBOSE,
)
_SECRET_NAME: Final = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE|SIGNING|AUTH"
    r"|^UV_PUBLISH_|_USER(NAME)?$|HTTP_BASIC",
    re.IGNORECASE,
)
_USERINFO: Final = re.compile(r"://[^/\s@]+@")


def scrub(environment: Mapping[str, str], secrets: Collection[str] = ()) -> dict[str, str]:
    """The variables of `environment` with a harmless name and a value that holds no secret.

    A URL with a user name or password counts as a secret, also in a proxy or index setting.
    """
    return {
        name: value
        for name, value in environment.items()
        if _ALLOWED.fullmatch(name) and harmless(name, value, secrets)
    }


def harmless(name: str, value: str, secrets: Collection[str] = ()) -> bool:
    """Whether nothing about a variable says that it is a secret, even when it is asked for."""
    return not (
        _SECRET_NAME.search(name)
        or _USERINFO.search(value)
        or any(secret in value for secret in secrets if secret)
    )


def redactor(secrets: Collection[str]) -> Callable[[str], str]:
    """A function from a text to the same text without these secrets.

    Output is read line by line, so each line of a secret counts as one.
    """
    lines = {line.strip() for secret in secrets for line in secret.splitlines()} - {""}
    if not lines:
        return lambda text: text
    # The longest first: a secret may begin with another one.
    pattern = re.compile("|".join(re.escape(line) for line in sorted(lines, key=len, reverse=True)))
    return lambda text: pattern.sub("***", text)
