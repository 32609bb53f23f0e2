"""Seals of records: only a process that has the key may say what was built, signed or staged.

A checksum shows damage, but any process can compute one. A seal is an HMAC (RFC 2104) over all that
a record says of a build, of what was signed about it, or of what is staged, so a journal that comes
from elsewhere is believed only if its writer had the same secret.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import json
import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from msgspec import Struct

from releasekit.errors import ConfigError
from releasekit.host.folder import Folder
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME: Final = "state-key"
MIN_CHARS: Final = 32
_KEY_BYTES: Final = 32
_FILE: Final = "state.key"
_BUILT: Final = b"built, 1"
_SEALED: Final = (
    *("package", "version", "run", "fingerprint", "prebuilt", "again", "artifacts"),
    *("files", "outcome", "staged"),
)


class Seal(Struct, frozen=True):
    """`note` is what users are told about a key that no later run will have."""

    key: bytes
    note: str = ""

    def __repr__(self) -> str:
        return "Seal()"  # without the key

    @classmethod
    def for_one_run(cls, note: str = "") -> Self:
        """By a new key, so that no record of another run counts as sealed."""
        return cls(secrets.token_bytes(_KEY_BYTES), note)

    def of(self, record: Mapping[str, Any], **known: str) -> str:
        """In hex; over what was built, from which commit and by which run, what was signed about
        it, or what is staged at which registry, wherever it stands. `known` is what other records
        say.
        """
        facts = {name: record[name] for name in _SEALED if name in record} | known
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        return self.of_bytes(_BUILT, text.encode("ascii"))

    def of_bytes(self, purpose: bytes, data: bytes) -> str:
        """In hex; what is sealed for one purpose is worth nothing for another."""
        return hmac.new(self.key, b"releasekit: " + purpose + b"\n" + data, "sha256").hexdigest()

    def fits(self, record: Mapping[str, Any], **known: str) -> bool:
        given = record.get("seal")
        if not isinstance(given, str) or not given.isascii():
            return False
        return hmac.compare_digest(given, self.of(record, **known))


def seal_for(given: str, environment: Mapping[str, str], *, make: bool) -> Seal | None:
    """By the secret that was `given`, else by the key of this user of this machine; None without a
    key if `make` is false.

    Raises ConfigError for a secret that can be guessed.
    """
    if given:
        if len(given) < MIN_CHARS:
            raise ConfigError(
                f"{NAME}: it has {len(given)} characters, and needs {MIN_CHARS} at least",
                hint="`openssl rand -hex 32` makes one; keep it as a secret of the repository.",
                problem=Problem.UNUSABLE_SECRET,
            )
        return Seal(given.encode("utf-8", "surrogateescape"))
    try:
        return _of_this_machine(_directory(environment), make=make)
    except OSError as error:
        where = error.filename or "HOME"
        return Seal.for_one_run(
            f"{where}: {error.strerror}: the built files of this run are sealed with a temporary "
            f"key, and a later run builds them again; give both the same `{NAME}`"
        )


def _directory(environment: Mapping[str, str]) -> Path:
    """https://specifications.freedesktop.org/basedir-spec/latest/"""
    places = [environment.get("XDG_STATE_HOME", "")]
    if home := environment.get("HOME", ""):
        places.append(str(Path(home, ".local", "state")))
    for place in map(Path, filter(None, places)):
        if place.is_absolute():
            # Only our own directory must not be a link: homes often are.
            return place.resolve() / "releasekit"
    raise OSError(errno.ENOENT, "it is not set")


def _of_this_machine(directory: Path, *, make: bool) -> Seal | None:
    try:
        with Folder.reached(directory, make=make) as folder:
            key = _read(folder)
            if key is None and make:
                _make(folder)
                key = _read(folder)
    except FileNotFoundError:
        key = None
    if key is None and make:
        raise OSError(errno.EINVAL, "is not a key", str(directory / _FILE))
    return None if key is None else Seal(key)


def _read(folder: Folder) -> bytes | None:
    """None if the key is incomplete, as after a disk that was full."""
    try:
        descriptor = folder.open(_FILE, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            where = str(folder.path / _FILE)
            raise OSError(errno.EPERM, "others may read it, or it is another user's", where)
        data = file.read(_KEY_BYTES + 1)
    return data if len(data) == _KEY_BYTES else None


def _make(folder: Folder) -> None:
    """Whole or not at all; if two runs make a key at the same time, the first key stays."""
    name = f".{_FILE}.{secrets.token_hex(8)}.tmp"
    try:
        with os.fdopen(folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
            new.write(secrets.token_bytes(_KEY_BYTES))
            new.flush()
            os.fsync(new.fileno())
        folder.link(name, _FILE)
        if _read(folder) is None:  # one is there, and is not whole
            folder.rename(name, _FILE)
        folder.sync()
    except OSError as error:
        # Errors of write(2) and fsync(2) have no name.
        error.filename = error.filename or str(folder.path / _FILE)
        raise
    finally:
        with contextlib.suppress(OSError):
            folder.unlink(name)
