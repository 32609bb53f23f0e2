"""Where a job gets certificates and has signatures logged: Sigstore's public instance, or another
one that a client trust config describes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import httpx

from releasekit.causes.refusals import TrustError, Unreadable
from releasekit.host.files import read_file
from releasekit.http.origins import require_safe
from releasekit.text.escape import clip, visible
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# https://docs.sigstore.dev/certificate_authority/overview/ and
# https://docs.sigstore.dev/logging/overview/
_AUTHORITY: Final = "https://fulcio.sigstore.dev"
_LOG: Final = "https://rekor.sigstore.dev"
# Later ones need a timestamp beside the entry, for which PEP 740 has no place.
# https://peps.python.org/pep-0740/#provenance-objects
_API_VERSION: Final = 1
_MEDIA_TYPE: Final = "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json"
_SIGNING_MEDIA_TYPE: Final = "application/vnd.dev.sigstore.signingconfig.v0.2+json"
_MAX_BYTES: Final = 1024 * 1024
_MAX_SHOWN: Final = 100
_WRITE: Final = "write the path of a client trust config"


@dataclass(frozen=True, slots=True)
class Instance:
    """The URLs of its certificate authority and of its transparency log. `trusted_root` is what its
    signatures are checked against, in the JSON of Sigstore's clients; None is the public one.
    """

    authority: httpx.URL
    log: httpx.URL
    trusted_root: Mapping[str, Any] | None = None


def instance_at(path: Path | None) -> Instance:
    """The public instance, or the one that the client trust config at `path` names, as
    `sigstore --trust-config` reads it. Blocks. Raises ConfigError that names file, key and value.
    """
    if path is None:
        return Instance(httpx.URL(_AUTHORITY), httpx.URL(_LOG))
    try:
        document = parse_json(read_file(path, max_bytes=_MAX_BYTES), max_bytes=None)
    except Unreadable as error:
        raise TrustError(f"trust-config: {error}; {_WRITE}") from error
    except ValueError as error:
        raise TrustError(f"trust-config: {path}: is not JSON: {error}; {_WRITE}") from error
    config = _Table(path, "", document)
    config.require("mediaType", _MEDIA_TYPE)
    signing = config.table("signingConfig")
    signing.require("mediaType", _SIGNING_MEDIA_TYPE)
    return Instance(
        _service(signing, "caUrls", "certificate authority"),
        _service(signing, "rekorTlogUrls", "transparency log"),
        config.table("trustedRoot").values,
    )


class _Table:
    """An object of the file, and where it is."""

    def __init__(self, path: Path, key: str, value: object) -> None:
        self._path = path
        self._key = key
        if not isinstance(value, dict):
            raise self.wrong("", value, "an object")
        self.values: dict[str, Any] = value

    def table(self, key: str) -> _Table:
        return _Table(self._path, self.name(key), self.values.get(key))

    def tables(self, key: str) -> list[_Table]:
        value = self.values.get(key)
        if not isinstance(value, list):
            raise self.wrong(key, value, "a list")
        return [
            _Table(self._path, f"{self.name(key)}[{number}]", each)
            for number, each in enumerate(value)
        ]

    def require(self, key: str, wanted: str) -> None:
        if (value := self.values.get(key)) != wanted:
            raise self.wrong(key, value, wanted)

    def url(self, key: str) -> httpx.URL:
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self.wrong(key, value, "a URL")
        return require_safe(value, name=f"trust-config: {self._path}: {self.name(key)}")

    def covers(self, moment: datetime) -> bool:
        start, end = self.moment("start"), self.moment("end")
        return (start is None or start <= moment) and (end is None or moment < end)

    def moment(self, key: str) -> datetime | None:
        value = self.values.get(key)
        if value is None:
            return None
        try:
            found = datetime.fromisoformat(value)
        except (ValueError, TypeError) as error:
            raise self.wrong(key, value, "a time like 2026-01-31T00:00:00Z") from error
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    def name(self, key: str) -> str:
        return f"{self._key}.{key}" if self._key and key else self._key or key

    def wrong(self, key: str, value: object, wanted: str) -> TrustError:
        shown = "not there" if value is None else clip(visible(repr(value)), _MAX_SHOWN)
        where = self.name(key) or "the document"
        return TrustError(f"trust-config: {self._path}: {where} is {shown}; it has to be {wanted}")


def _service(signing: _Table, key: str, called: str) -> httpx.URL:
    """The first that counts now, of the version that is spoken here."""
    now = datetime.now(UTC)
    for service in signing.tables(key):
        valid = service.table("validFor") if "validFor" in service.values else None
        is_valid = valid is None or valid.covers(now)
        if is_valid and service.values.get("majorApiVersion") == _API_VERSION:
            return service.url("url")
    raise signing.wrong(
        key,
        signing.values.get(key),
        f"a list with a {called} of majorApiVersion {_API_VERSION} that is valid today",
    )
