"""Whom to believe: the certificate authorities and logs of a Sigstore instance, as its trusted root
lists them. That of the public instance lies beside this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Self

from releasekit.causes.refusals import TrustError
from releasekit.provenance.document import Document
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

# https://github.com/sigstore/protobuf-specs/blob/main/protos/sigstore_trustroot.proto
ROOT_TYPES: Final = frozenset(
    {
        "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
        "application/vnd.dev.sigstore.trustedroot+json;version=0.2",
        "application/vnd.dev.sigstore.trustedroot.v0.2+json",
    }
)
CONFIG_TYPE: Final = "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json"
PACKAGED: Final = "trusted_root.json"
_MAX_BYTES: Final = 4 * 1024 * 1024


class NotVerified(ValueError):
    """Why an attestation is not believed: `str(error)` is a sentence without a full stop, about
    "its" statement, certificate or log entry.
    """


@dataclass(frozen=True, slots=True)
class Validity:
    """From `start` to `end`, both included; None where that side is open."""

    start: datetime | None = None
    end: datetime | None = None

    def covers(self, moment: datetime) -> bool:
        return (self.start is None or self.start <= moment) and (
            self.end is None or moment <= self.end
        )

    @classmethod
    def of(cls, document: Document) -> Self:
        return cls(_moment(document["start"]), _moment(document["end"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogKey:
    """What a log at `url` signs with; `der` is its SubjectPublicKeyInfo."""

    url: str
    id: bytes
    der: bytes
    valid: Validity

    @classmethod
    def of(cls, document: Document) -> Self:
        key = document["publicKey"]
        return cls(
            url=document["baseUrl"].text(),
            id=document["logId"]["keyId"].binary(),
            der=key["rawBytes"].binary(),
            valid=Validity.of(key["validFor"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """`chain` has certificates in DER: first the one that issues, last the root."""

    url: str
    chain: tuple[bytes, ...]
    valid: Validity

    @classmethod
    def of(cls, document: Document) -> Self:
        certificates = document["certChain"]["certificates"]
        chain = tuple(each["rawBytes"].binary() for each in certificates.items())
        if not chain:
            raise ValueError(f"{certificates.path} is empty")
        return cls(url=document["uri"].text(), chain=chain, valid=Validity.of(document["validFor"]))


@dataclass(frozen=True, slots=True)
class TrustedRoot:
    """`authorities` issue certificates, `logs` take entries, `ct_logs` take certificates."""

    authorities: tuple[Authority, ...]
    logs: tuple[LogKey, ...]
    ct_logs: tuple[LogKey, ...]

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """A trusted root, or that of a client trust config. Raises ValueError that says where."""
        document = Document(parse_json(data, max_bytes=_MAX_BYTES), "")
        if document["mediaType"].value == CONFIG_TYPE:
            document = document["trustedRoot"]
        return cls.of(document)

    @classmethod
    def of(cls, document: Document) -> Self:
        media_type = document["mediaType"]
        if media_type.value not in ROOT_TYPES:
            raise ValueError(f"{media_type.path} is not {min(ROOT_TYPES)}, nor a later one of it")
        return cls(
            authorities=tuple(map(Authority.of, document["certificateAuthorities"].items())),
            logs=tuple(map(LogKey.of, document["tlogs"].items())),
            ct_logs=tuple(map(LogKey.of, document["ctlogs"].items())),
        )

    @classmethod
    def public(cls) -> Self:
        """Of Sigstore's public instance, as of the release of this program."""
        return cls.parse(resources.files(__package__).joinpath(PACKAGED).read_bytes())

    def log(self, log_id: bytes, moment: datetime) -> LogKey | None:
        return _key(self.logs, log_id, moment)

    def ct_log(self, log_id: bytes, moment: datetime) -> LogKey | None:
        return _key(self.ct_logs, log_id, moment)


def trust_at(path: Path | None) -> TrustedRoot:
    """What a person trusts: the file at `path`, or the public instance. Raises ConfigError."""
    if path is None:
        return TrustedRoot.public()
    try:
        return TrustedRoot.parse(path.read_bytes())
    except OSError as error:
        raise TrustError(
            f"trust-config: {path}: {error.strerror}; write the path of a file"
        ) from error
    except ValueError as error:
        raise TrustError(
            f"trust-config: {path}: {error}; write the path of a trusted root of Sigstore, or of a "
            "client trust config"
        ) from error


def trust_of(trusted_root: Mapping[str, Any] | None) -> TrustedRoot:
    """Of an instance, by its trusted root in JSON; None is the public one. Raises ConfigError."""
    if trusted_root is None:
        return TrustedRoot.public()
    try:
        return TrustedRoot.of(Document(trusted_root, "trustedRoot"))
    except ValueError as error:
        raise TrustError(
            f"trust-config: {error}; write one with a trusted root of Sigstore"
        ) from error


def _key(keys: Iterable[LogKey], log_id: bytes, moment: datetime) -> LogKey | None:
    return next((key for key in keys if key.id == log_id and key.valid.covers(moment)), None)


def _moment(document: Document) -> datetime | None:
    if not document:
        return None
    try:
        found = datetime.fromisoformat(document.text())
    except ValueError as error:
        raise ValueError(f"{document.path} is no time like 2022-04-13T20:06:15Z") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)
