"""The Sigstore instance that a job signs with, and whom to believe: the certificate authorities and
logs that its trusted root lists. That of the public instance lies beside this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from typing import TYPE_CHECKING, Final, Self

import httpx

from releasekit.errors import ConfigError, Unreadable
from releasekit.host.files import read_file
from releasekit.http.origins import require_safe
from releasekit.problems import Problem
from releasekit.provenance.document import Document
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


# https://github.com/sigstore/protobuf-specs/blob/main/protos/sigstore_trustroot.proto
_ROOT_TYPES: Final = (
    "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    "application/vnd.dev.sigstore.trustedroot+json;version=0.2",
    "application/vnd.dev.sigstore.trustedroot.v0.2+json",
)
CONFIG_TYPE: Final = "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json"
PACKAGED: Final = "trusted_root.json"
MAX_BYTES: Final = 4 * 1024 * 1024
_WRITE: Final = "write the path of a trusted root of Sigstore, or of a client trust config"


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
        return cls(document["start"].moment(), document["end"].moment())


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
            raise certificates.wrong("a list of certificates")
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
        try:
            document = Document(parse_json(data, max_bytes=MAX_BYTES), "")
        except ValueError as error:
            raise ValueError(f"is not JSON: {error}") from error
        if document["mediaType"].value == CONFIG_TYPE:
            document = document["trustedRoot"]
        return cls.of(document)

    @classmethod
    def of(cls, document: Document) -> Self:
        document["mediaType"].require(*_ROOT_TYPES)
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
    """What a person trusts: the file at `path`, or the public instance. Blocks. Raises ConfigError
    that names file, key and value.
    """
    if path is None:
        return TrustedRoot.public()
    try:
        return TrustedRoot.parse(read_file(path, max_bytes=MAX_BYTES))
    except Unreadable as error:
        raise ConfigError(
            f"trust-config: {error}; {_WRITE}", problem=Problem.TRUST_CONFIG
        ) from error
    except ValueError as error:
        raise ConfigError(
            f"trust-config: {path}: {error}; {_WRITE}", problem=Problem.TRUST_CONFIG
        ) from error


def _key(keys: Iterable[LogKey], log_id: bytes, moment: datetime) -> LogKey | None:
    return next((key for key in keys if key.id == log_id and key.valid.covers(moment)), None)


# https://docs.sigstore.dev/certificate_authority/overview/ and
# https://docs.sigstore.dev/logging/overview/
_AUTHORITY: Final = "https://fulcio.sigstore.dev"
_LOG: Final = "https://rekor.sigstore.dev"
# Later ones need a timestamp beside the entry, for which PEP 740 has no place.
# https://peps.python.org/pep-0740/#provenance-objects
_API_VERSION: Final = 1
_SIGNING_TYPE: Final = "application/vnd.dev.sigstore.signingconfig.v0.2+json"
_WRITE_CONFIG: Final = "write the path of a client trust config"


@dataclass(frozen=True, slots=True)
class Instance:
    """The URLs of its certificate authority and of its transparency log, and what its signatures
    are checked against.
    """

    authority: httpx.URL
    log: httpx.URL
    trust: TrustedRoot


def instance_at(path: Path | None) -> Instance:
    """The public instance, or the one that the client trust config at `path` names, as
    `sigstore --trust-config` reads it. Blocks. Raises ConfigError that names file, key and value.
    """
    if path is None:
        return Instance(httpx.URL(_AUTHORITY), httpx.URL(_LOG), TrustedRoot.public())
    try:
        config = Document(parse_json(read_file(path, max_bytes=MAX_BYTES), max_bytes=None), "")
    except Unreadable as error:
        raise ConfigError(
            f"trust-config: {error}; {_WRITE_CONFIG}", problem=Problem.TRUST_CONFIG
        ) from error
    except ValueError as error:
        raise ConfigError(
            f"trust-config: {path}: is not JSON: {error}; {_WRITE_CONFIG}",
            problem=Problem.TRUST_CONFIG,
        ) from error
    try:
        config["mediaType"].require(CONFIG_TYPE)
        signing = config["signingConfig"]
        signing["mediaType"].require(_SIGNING_TYPE)
        return Instance(
            _service(signing["caUrls"], "certificate authority", path),
            _service(signing["rekorTlogUrls"], "transparency log", path),
            TrustedRoot.of(config["trustedRoot"]),
        )
    except ValueError as error:
        raise ConfigError(f"trust-config: {path}: {error}", problem=Problem.TRUST_CONFIG) from error


def _service(services: Document, called: str, path: Path) -> httpx.URL:
    """The first that counts now, of the version that is spoken here."""
    now = datetime.now(UTC)
    for service in services.items():
        is_valid = Validity.of(service["validFor"]).covers(now)
        if is_valid and service["majorApiVersion"].value == _API_VERSION:
            url = service["url"]
            return require_safe(url.text(), name=f"trust-config: {path}: {url.path}")
    raise services.wrong(
        f"a list with a {called} of majorApiVersion {_API_VERSION} that is valid today"
    )
