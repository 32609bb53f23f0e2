"""What a child process may see of our environment, and what may be seen of its output."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from releasekit.host.ci import HARMLESS
from releasekit.host.secret_encodings import secrets_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

# Variables that neither this nor an ecosystem names are left out: one with a harmless name may hold
# anything that a workflow's `env:` puts there. The names of the runner's own files are left out as
# well: a process that may write to those files can change the steps that follow.
# https://docs.github.com/en/actions/reference/security/secure-use#understanding-the-risk-of-script-injections
_ALLOWED: Final = re.compile(
    rf"""
      PATH | HOME | USER | LOGNAME | SHELL | LANG | LANGUAGE | LC_\w+ | TZ | TMPDIR | TEMP | TMP
    | XDG_\w+ | SOURCE_DATE_EPOCH | {HARMLESS}
    | (HTTP|HTTPS|ALL|NO)_PROXY | (http|https|all|no)_proxy
    | SSL_CERT_(FILE|DIR) | REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE | NODE_EXTRA_CA_CERTS
    | CC | CXX | AR | LD | (C|CXX|CPP|LD|ARCH)FLAGS | MAKEFLAGS | CMAKE_\w+ | PKG_CONFIG\w*
    | LD_LIBRARY_PATH | LIBRARY_PATH | CPATH | MACOSX_DEPLOYMENT_TARGET | SDKROOT | DEVELOPER_DIR
    """,
    re.VERBOSE,
)
_SECRET_NAME: Final = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|(?<!GO)PRIVATE|SIGNING|AUTH"
    r"|_USER(NAME)?$|HTTP_BASIC|_PWD$|SSHPASS",
    re.IGNORECASE,
)
_USERINFO: Final = re.compile(r"://[^/\s@]+@")
# Of a secret, in characters: what is looked for at first, and from where on that pays off.
_PIECE: Final = 4
# So a secret of a megabyte has no more pieces than a short one.
_MAX_STEP: Final = 256
_LONG: Final = 12

# Settings of a repository, which may come from anywhere, that git does not obey: programs that
# reading starts: https://git-scm.com/docs/git-config. What reaches a server is left
# to the user, as checkouts set it: core.sshCommand, credential helpers; and so are the filters that
# make files of what is stored, for Git LFS is one.
_OVERRULED: Final = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "log.showSignature": "false",
    # Tracked files may look like another repository, with settings: git 2.38 and later. To
    # name the repository (GIT_DIR) would serve older ones, but skips the check of whose it is.
    # https://git-scm.com/docs/git-config#Documentation/git-config.txt-safedirectory
    "safe.bareRepository": "explicit",
}


class ToolVariables(Struct, frozen=True, kw_only=True):
    """What tools have variables for, besides what every program may see: names as regular
    expressions. Those that match `hidden` are withheld even when they are asked for.
    """

    seen: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    @classmethod
    def of_all(cls, several: Iterable[Self]) -> Self:
        """One environment serves the tools of all ecosystems: a wheel may hold a crate."""
        together = tuple(several)
        return cls(
            seen=tuple(name for each in together for name in each.seen),
            hidden=tuple(name for each in together for name in each.hidden),
        )

    def scrub(
        self, environment: Mapping[str, str], secrets: Collection[str] = ()
    ) -> dict[str, str]:
        """The variables of `environment` with a harmless name and a value that holds no secret.

        A URL with a user name or password counts as a secret, even in a proxy or index setting,
        and so does an option that is called a password.
        """
        seen = _any_of(self.seen)
        return {
            name: value
            for name, value in environment.items()
            if (_ALLOWED.fullmatch(name) or seen.fullmatch(name))
            and self.harmless(name, value, secrets)
        }

    def harmless(self, name: str, value: str, secrets: Collection[str] = ()) -> bool:
        """Whether nothing about a variable says that it is a secret, even when it is asked for."""
        return not (
            _SECRET_NAME.search(name)
            or _any_of(self.hidden).fullmatch(name)
            or _USERINFO.search(value)
            or any(secrets_in(name, value))
            or any(secret in value for secret in secrets if secret)
        )


def overrule_git_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` for git, in which it overrules these settings, submodules' too.

    https://git-scm.com/docs/git-config#Documentation/git-config.txt-GITCONFIGCOUNT
    """
    given = environment.get("GIT_CONFIG_COUNT", "")
    first = int(given) if given.isascii() and given.isdigit() and len(given) < 6 else 0
    settings = {
        name: value
        for number, (key, setting) in enumerate(_OVERRULED.items(), start=first)
        for name, value in (
            (f"GIT_CONFIG_KEY_{number}", key),
            (f"GIT_CONFIG_VALUE_{number}", setting),
        )
    }
    count = str(first + len(_OVERRULED))
    return {**environment, **settings, "GIT_CONFIG_COUNT": count}


def _any_of(names: Collection[str]) -> re.Pattern[str]:
    return re.compile("|".join(names))


class Redactor:
    """Takes these secrets out of a text. The collection is read at each call, since it may grow.

    Output is read line by line, so each line of a secret has to be in the collection.
    """

    def __init__(self, secrets: Collection[str]) -> None:
        self._secrets = secrets
        self._known = 0
        self._long: list[str] = []
        self._short: list[str] = []
        self._pieces: frozenset[str] = frozenset()
        self._step = 1
        self._longest = 0

    @property
    def longest(self) -> int:
        """Characters of the longest secret there is."""
        self._learn()
        return self._longest

    def __call__(self, text: str) -> str:
        self._learn()
        found = [secret for secret in self._short if secret in text]
        # Any place where a long one may be has a piece of it at one of these steps. To look for
        # them all takes 20 times as long.
        if self._pieces and not self._pieces.isdisjoint(
            text[at : at + _PIECE] for at in range(0, len(text), self._step)
        ):
            found = [*(secret for secret in self._long if secret in text), *found]
        for secret in found:
            text = text.replace(secret, "***")
        return text

    def _learn(self) -> None:
        if len(self._secrets) == self._known:
            return
        # The longest comes first: a secret may begin with another one.
        secrets = sorted({*self._secrets} - {""}, key=lambda each: (-len(each), each))
        self._known = len(self._secrets)
        self._longest = max(map(len, secrets), default=0)
        self._long = [each for each in secrets if len(each) >= _LONG]
        self._short = [each for each in secrets if len(each) < _LONG]
        # The first of these places that lies in a secret is near its start, however long it is.
        shortest = min(map(len, self._long), default=_MAX_STEP)
        self._step = min(shortest - _PIECE + 1, _MAX_STEP)
        self._pieces = frozenset(
            each[at : at + _PIECE] for each in self._long for at in range(self._step)
        )


NOTHING_SECRET: Final = Redactor(())
