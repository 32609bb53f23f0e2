"""Sigstore bundles: one signed statement with all that is needed to check it offline.

https://github.com/sigstore/protobuf-specs/blob/main/protos/sigstore_bundle.proto
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, Self

from msgspec import Struct

from releasekit.attested import Attestation
from releasekit.errors import BuildFailed
from releasekit.host import durable
from releasekit.problems import Problem
from releasekit.provenance.document import Document
from releasekit.provenance.log import encoded
from releasekit.provenance.statement import (
    EARLIER_STATEMENT_TYPE,
    PAYLOAD_TYPE,
    STATEMENT_TYPE,
    Subject,
    canonical,
)
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.provenance.log import Entry, Signed

MEDIA_TYPE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
# A statement of 1,024 subjects with long names takes half a megabyte.
MAX_BYTES: Final = 4 * 1024 * 1024
# That statement has 6,000; those of other builders may list all that went into a build.
MAX_VALUES: Final = 100_000


class Bundle(Struct, frozen=True):
    """`document` is the bundle, and the rest is read off it, unchecked: `payload` is what was
    signed, `statement` the same parsed, and `certificate` DER.
    """

    document: Mapping[str, Any]
    payload: bytes
    signature: bytes
    statement: Mapping[str, Any]
    predicate_type: str
    subjects: tuple[Subject, ...]
    log_index: int
    certificate: bytes

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Raises ValueError for what is not a bundle of version 0.3 with a certificate, an in-toto
        statement, one signature and one entry of a log.
        """
        if len(data) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} bytes")
        document = Document(parse_json(data, max_bytes=None, max_values=MAX_VALUES), "")
        document["mediaType"].require(MEDIA_TYPE)
        material, envelope = document["verificationMaterial"], document["dsseEnvelope"]
        entry = material["tlogEntries"].only()
        envelope["payloadType"].require(PAYLOAD_TYPE)
        payload = envelope["payload"].binary()
        said = parse_json(payload, max_bytes=None, max_values=MAX_VALUES)
        statement = Document(said, "statement")
        statement["_type"].require(STATEMENT_TYPE, EARLIER_STATEMENT_TYPE)
        return cls(
            document=document.members(),
            payload=payload,
            signature=envelope["signatures"].only()["sig"].binary(),
            statement=statement.members(),
            predicate_type=statement["predicateType"].text(),
            subjects=_subjects(statement["subject"]),
            log_index=entry["logIndex"].number(),
            certificate=material["certificate"]["rawBytes"].binary(),
        )

    @property
    def text(self) -> bytes:
        """Canonical JSON: the same bundle is the same file, from any writer."""
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
        data = durable.read_file(path, max_bytes=MAX_BYTES)
    except OSError as error:
        raise BuildFailed(
            f"{path}: cannot be read ({error.strerror})", problem=Problem.CHANGED_MEANWHILE
        ) from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != attestation.sha256:
        raise BuildFailed(
            f"{path}: is not the attestation that was signed: its sha256 is {digest}, not "
            f"{attestation.sha256}",
            hint="Remove the file, and run the same command again: it is signed anew.",
            problem=Problem.CHANGED_MEANWHILE,
        )
    try:
        return Bundle.parse(data)
    except ValueError as error:
        raise BuildFailed(
            f"{path}: is not a Sigstore bundle ({error})", problem=Problem.CHANGED_MEANWHILE
        ) from error


def _subjects(subjects: Document) -> tuple[Subject, ...]:
    if not subjects:
        raise subjects.wrong("a list of files")
    return tuple(map(_subject, subjects.items()))


def _subject(subject: Document) -> Subject:
    digests = subject["digest"]
    if not digests:
        raise digests.wrong("an object of digests")
    return Subject(
        name=subject["name"].text(),
        digests={name: digests[name].text() for name in digests.members()},
    )
