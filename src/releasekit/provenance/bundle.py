"""Sigstore bundles: one signed statement with all that is needed to check it offline.

https://github.com/sigstore/protobuf-specs/blob/main/protos/sigstore_bundle.proto
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from releasekit.attested import Attestation
from releasekit.causes.failures import InputChanged
from releasekit.host import durable
from releasekit.provenance.log import decoded, encoded
from releasekit.provenance.statement import PAYLOAD_TYPE, STATEMENT_TYPE, Subject, canonical
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.provenance.log import Entry, Signed

MEDIA_TYPE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
# A statement of 1,024 subjects with long names takes half a megabyte.
MAX_BYTES: Final = 4 * 1024 * 1024
_MAX_NUMBER: Final = 2**63


@dataclass(frozen=True, slots=True)
class Bundle:
    """`document` is the bundle, and the rest is read off it, unchecked: `payload` is what was
    signed, `statement` the same parsed, `certificate` DER, `integrated_s` when the log took it.
    """

    document: Mapping[str, Any]
    payload: bytes
    signature: bytes
    statement: Mapping[str, Any]
    predicate_type: str
    subjects: tuple[Subject, ...]
    log_index: int
    integrated_s: int
    certificate: bytes

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Raises ValueError for what is no bundle of version 0.3 with a certificate, an in-toto
        statement, one signature and one entry of a log.
        """
        if len(data) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} bytes")
        document = parse_json(data, max_bytes=None)
        match document:
            case {
                "mediaType": str(kind),
                "verificationMaterial": {
                    "certificate": {"rawBytes": str(certificate)},
                    "tlogEntries": [{"logIndex": index, "integratedTime": integrated}],
                },
                "dsseEnvelope": {
                    "payload": str(payload),
                    "payloadType": str(payload_type),
                    "signatures": [{"sig": str(signature)}],
                },
            }:
                pass
            case _:
                raise ValueError("not a bundle with a certificate, one entry and one signature")
        if kind != MEDIA_TYPE:
            raise ValueError(f"not a bundle of the type {MEDIA_TYPE}")
        if payload_type != PAYLOAD_TYPE:
            raise ValueError(f"not about a payload of the type {PAYLOAD_TYPE}")
        signed = decoded(payload)
        statement = parse_json(signed, max_bytes=None)
        predicate_type, subjects = _told(statement)
        return cls(
            document=document,
            payload=signed,
            signature=decoded(signature),
            statement=statement,
            predicate_type=predicate_type,
            subjects=subjects,
            log_index=_number(index),
            integrated_s=_number(integrated),
            certificate=decoded(certificate),
        )

    @property
    def text(self) -> bytes:
        """Canonical JSON: the same bundle is the same file, whoever has written it before."""
        return canonical(self.document)

    def at(self, path: Path, *, log_url: str) -> Attestation:
        """What is known of it once it lies in a file at `path`."""
        return Attestation(
            path=path,
            sha256=hashlib.sha256(self.text).hexdigest(),
            log_index=self.log_index,
            log_url=log_url,
        )

    def pep740(self) -> dict[str, Any]:
        """The same as PyPI takes it. https://peps.python.org/pep-0740/#attestation-objects"""
        material = self.document["verificationMaterial"]
        return {
            "version": 1,
            "verification_material": {
                "certificate": material["certificate"]["rawBytes"],
                "transparency_entries": material["tlogEntries"],
            },
            "envelope": {"statement": encoded(self.payload), "signature": encoded(self.signature)},
        }

    def publisher(self) -> dict[str, str | None]:
        """Who has signed it, as PEP 740's provenance objects have it, and as the certificate says,
        which knows of no environment. Raises ValueError where it says nothing of that kind.
        """
        from releasekit.provenance.claims import Claims  # noqa: PLC0415 - cryptography

        claims = Claims.of(self.certificate)
        repository, workflow = claims.repository, claims.workflow_uri
        owner, _, name = repository.rpartition("/")
        if not name or not workflow.startswith(f"{repository}/") or "@" not in workflow:
            raise ValueError("its certificate names a workflow of another repository, or none")
        return {
            "kind": "GitHub",
            "repository": f"{owner.rpartition('/')[2]}/{name}",
            "workflow": claims.workflow.rpartition("/")[2],
            "environment": None,
        }


def bundled(signed: Signed, entry: Entry, *, certificate: bytes) -> Bundle:
    """`certificate` is in DER."""
    return Bundle.parse(
        canonical(
            {
                "mediaType": MEDIA_TYPE,
                "verificationMaterial": {
                    "certificate": {"rawBytes": encoded(certificate)},
                    "tlogEntries": [entry.document],
                    # Without any, as npm and GitHub write it.
                    "timestampVerificationData": {},
                },
                "dsseEnvelope": signed.envelope,
            }
        )
    )


def read(attestation: Attestation) -> Bundle:
    """The bundle from its file. Blocks; raises PackageError if it is not the one that was made."""
    path = attestation.path
    try:
        data = durable.read_file(path, max_bytes=MAX_BYTES + 1)
    except OSError as error:
        raise InputChanged(f"{path}: cannot be read ({error.strerror})") from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != attestation.sha256:
        raise InputChanged(
            f"{path}: is not the attestation that was signed: its sha256 is {digest}, not "
            f"{attestation.sha256}",
            hint="Remove the file, and run the same command again: it is signed anew.",
        )
    try:
        return Bundle.parse(data)
    except ValueError as error:
        raise InputChanged(f"{path}: is no Sigstore bundle ({error})") from error


def _told(statement: object) -> tuple[str, tuple[Subject, ...]]:
    match statement:
        case {"_type": kind, "predicateType": str(predicate_type), "subject": [_, *_] as subjects}:
            if kind != STATEMENT_TYPE:
                raise ValueError(f"not a statement of the type {STATEMENT_TYPE}")
            return predicate_type, tuple(map(_subject, subjects))
        case _:
            raise ValueError("no statement about a file")


def _subject(subject: object) -> Subject:
    match subject:
        case {"name": str(name), "digest": {**digests}} if digests:
            told = {str(key): value for key, value in digests.items() if isinstance(value, str)}
            if len(told) == len(digests):
                return Subject(name=name, digests=told)
    raise ValueError("a subject without a name or a digest")


def _number(value: object) -> int:
    """JSON of protobuf has large ones as text. https://protobuf.dev/programming-guides/json/"""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MAX_NUMBER:
        raise ValueError("an entry without its number or its time")
    return value
