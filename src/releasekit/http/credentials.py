"""Secrets: taken out of the environment at the start, masked, and redacted from then on."""

from __future__ import annotations

import hmac
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NoReturn

from msgspec import Struct

from releasekit.errors import ConfigError
from releasekit.host.scrub import Redactor
from releasekit.host.secret_encodings import (
    encode,
    encodings_of,
    is_hideable,
    is_telling,
    is_text,
    parts_of,
    secrets_in,
)
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping


# Variables whose value authenticates somebody. The address where a job asks for an ID token is one
# of them, so that no build can ask.
_SECRET_NAME: Final = re.compile(
    r"(?:^|[_:])(?:(?:(?:AUTH|ACCESS)_?)?TOKEN|PASSWORD|PASSWD|PASS|PASSPHRASE|SECRET|CREDENTIALS"
    r"|JWT|PAT|COOKIE"
    r"|(?:API|ACCESS|PRIVATE|SIGNING|DEPLOY|SSH|GPG|ENCRYPTION|ACCOUNT|CLIENT)_?KEY"
    r"|CONNECTION_STRING)(?:_|$)"
    r"|_AUTH$",
    re.IGNORECASE,
)
# They say where a secret is. AWS_SHARED_CREDENTIALS_FILE for instance, and
# https://cloud.google.com/docs/authentication/application-default-credentials#GAC
_PLACE_NAME: Final = re.compile(
    r"_(?:FILE|PATH|DIR|SOCK)$|^GOOGLE_APPLICATION_CREDENTIALS$", re.IGNORECASE
)


class Secret:
    """A value that shows itself to `reveal()` only."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(encode(self._value), encode(other._value))

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not written down")


class Snapshot(Struct, frozen=True):
    """The environment as it was at the start: read once, never written."""

    environment: Mapping[str, str]
    secrets: Mapping[str, Secret]


def snapshot(environ: Mapping[str, str], declared: Collection[str] = ()) -> Snapshot:
    """`environ` taken apart: what a build may see, and what it must not: the variables that are
    `declared` as secrets, and those whose name says so.
    """
    secrets = {
        # `Bearer ${{ secrets.NAME }}` of a secret that is missing
        name: Secret(value.strip().removeprefix("Bearer") and value.strip())
        for name, value in environ.items()
        if name in declared or (_SECRET_NAME.search(name) and not _PLACE_NAME.search(name))
    }
    rest = {name: value for name, value in environ.items() if name not in secrets}
    return Snapshot(MappingProxyType(rest), MappingProxyType(secrets))


def require_text(taken: Snapshot, declared: Collection[str]) -> None:
    """Raises ConfigError for a secret that is `declared` and no text: no server takes one, and
    its later spelling cannot be predicted.
    """
    for name in sorted(declared):
        if (secret := taken.secrets.get(name)) and not is_text(secret.reveal()):
            raise ConfigError(
                f"{name} is not UTF-8; write the secret as its registry gave it",
                problem=Problem.UNUSABLE_SECRET,
            )


class Credentials:
    """Every secret of one run. `mask` is called with each before anything else can print it."""

    def __init__(self, taken: Snapshot, *, mask: Callable[[str], None]) -> None:
        self._taken = taken
        self._mask = mask
        # In the order in which they came; only its keys are of use.
        self._values: dict[str, None] = {}
        self._adopted: set[str] = set()
        self.redact = Redactor(self._values)
        for secret in taken.secrets.values():
            self.adopt(secret.reveal())
        values = {name: secret.reveal() for name, secret in taken.secrets.items()}
        for name, value in {**taken.environment, **values}.items():
            for found in secrets_in(name, value):
                self.adopt(found)

    @property
    def environment(self) -> Mapping[str, str]:
        return self._taken.environment

    def get(self, variable: str) -> Secret | None:
        """The secret of an environment variable; None when it is unset or empty."""
        return self._taken.secrets.get(variable) or None

    def claim(self, variable: str) -> Secret | None:
        """The value of any environment variable, a secret from now on; None as of `get`."""
        value = self._taken.environment.get(variable)
        return self.adopt(value) if value else self.get(variable)

    def find(self, name: re.Pattern[str]) -> Iterator[tuple[str, Secret]]:
        """The variables with such a name, sorted; empty ones are unset."""
        for variable, secret in sorted(self._taken.secrets.items()):
            if secret and name.fullmatch(variable):
                yield variable, secret

    def adopt(self, value: str) -> Secret:
        """Mask a secret that was made during the run, and redact it from now on."""
        if value not in self._adopted:
            self._adopted.add(value)
            for part in parts_of(value):
                self._mask(part)
                self._values |= dict.fromkeys(filter(is_hideable, encodings_of(part)))
        return Secret(value)

    def adopt_user(self, name: str) -> None:
        """A user name is not a secret unless it is half of a token."""
        if is_telling(name):
            self.adopt(name)

    @property
    def values(self) -> Collection[str]:
        """What must not be shown, in all its spellings: a live view that grows with every new
        token.
        """
        return self._values.keys()
