"""Whether an attestation is to be believed: signed with a certificate that a trusted authority has
issued to a job of a workflow, while it was valid, and entered into a trusted log. Takes no network.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import unquote

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key
from cryptography.x509.certificate_transparency import LogEntryType
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from releasekit.host.ci import PULL_REQUEST_EVENTS
from releasekit.host.github import SERVER
from releasekit.provenance.certificate import Claims
from releasekit.provenance.document import Document
from releasekit.provenance.statement import ABOUT_ORIGIN, pae
from releasekit.provenance.trust import NotVerified
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
    from cryptography.x509.certificate_transparency import SignedCertificateTimestamp

    from releasekit.model import Artifact
    from releasekit.provenance.bundle import Bundle
    from releasekit.provenance.job import Job
    from releasekit.provenance.statement import Subject
    from releasekit.provenance.trust import LogKey, TrustedRoot


_UNREADABLE: Final = (
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
    UnsupportedAlgorithm,
)
_OF_NPM: Final = "pkg:npm/"
# Of whom each identity of a job at github.com comes.
ISSUER: Final = "https://token.actions.githubusercontent.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a bundle says, and who says so; the log has it as entry `log_index`."""

    claims: Claims
    predicate_type: str
    subjects: tuple[Subject, ...]
    log_index: int
    log_url: str
    integrated_s: int

    def covers(self, filename: str, digests: Mapping[str, str]) -> bool:
        """Whether a file of this name, with these digests, is one of the subjects."""
        return any(covers(each, filename, digests) for each in self.subjects)


def covers(subject: Subject, filename: str, digests: Mapping[str, str]) -> bool:
    """Whether it is that file."""
    known = subject.digests.keys() & digests.keys()
    same = bool(known) and all(subject.digests[name] == digests[name] for name in known)
    return same and is_called(subject, filename)


def is_called(subject: Subject, filename: str) -> bool:
    """What is about a release may name the directory too, to tell files of one name apart."""
    if subject.name.startswith(_OF_NPM):
        return filename in _tarballs(subject.name)
    return subject.name == filename or subject.name.endswith(f"/{filename}")


def _tarballs(package_url: str) -> tuple[str, str]:
    """What the package is called as a file, by npm's registry and by `npm pack`."""
    package, _, version = unquote(package_url.removeprefix(_OF_NPM)).rpartition("@")
    packed = package.removeprefix("@").replace("/", "-")
    return f"{package.rpartition('/')[2]}-{version}.tgz", f"{packed}-{version}.tgz"


def check(bundle: Bundle, trust: TrustedRoot) -> Verified:
    """Raises NotVerified with the first thing that is wrong."""
    try:
        return _checked(bundle, trust)
    except NotVerified:
        raise
    except (ValueError, *_UNREADABLE) as error:
        raise NotVerified(f"its bundle cannot be read: {error}") from error


def _checked(bundle: Bundle, trust: TrustedRoot) -> Verified:
    entry = Entry.of(bundle.entry)
    certificate = x509.load_der_x509_certificate(bundle.certificate)
    _check_signature(bundle, certificate, entry)
    check_issued(certificate, entry.moment, trust)
    log = check_logged(entry, trust)
    if bundle.predicate_type not in ABOUT_ORIGIN:
        raise NotVerified(
            f"what is signed is {bundle.predicate_type[:200]}, which does not say where a file "
            "comes from"
        )
    return Verified(
        claims=Claims.of(bundle.certificate),
        predicate_type=bundle.predicate_type,
        subjects=bundle.subjects,
        log_index=entry.index,
        log_url=log.url,
        integrated_s=entry.integrated_s,
    )


def _check_signature(bundle: Bundle, certificate: x509.Certificate, entry: Entry) -> None:
    """By the certificate's key, over the statement; and the log's entry is about these three."""
    others = entry.others_than(bundle.payload, bundle.signature, bundle.certificate)
    if not is_signed_by(certificate.public_key(), bundle.signature, pae(bundle.payload)):
        if len(others) == 1:
            raise NotVerified(f"its {others[0]} was changed after the log took the entry")
        raise NotVerified("its signature is not one of the certificate's key over the statement")
    if others:
        raise NotVerified(f"its log entry is about another {' and '.join(others)}")


def is_ours(bundle: Bundle, artifact: Artifact, job: Job, trust: TrustedRoot) -> bool:
    """Whether it can be used again: sound, about this very file, by this job's workflow.
    Of several files, no registry takes it.
    """
    try:
        verified = check(bundle, trust)
    except NotVerified:
        return False
    return (
        len(verified.subjects) == 1
        and verified.covers(artifact.filename, artifact.digests)
        and verified.claims.is_of(job)
    )


def require_signer(
    verified: Verified, repository: str, workflow: str = "", *, ref: str = "", event: str = ""
) -> None:
    """Raises NotVerified unless a job at github.com signed, of `repository` (OWNER/NAME) and, where
    they are named, of that workflow (the name of its file), ref and event. The jobs of a pull
    request count only where their ref or their event is named.
    """
    claims = verified.claims
    if claims.issuer != ISSUER:
        raise NotVerified(f"its signer has its identity from {claims.issuer}, not from {ISSUER}")
    # GitHub keeps no two names that differ in capitals alone, and lets nobody write others.
    if claims.repository.lower() != f"{SERVER}/{repository.lower()}":
        signed_in = claims.repository.removeprefix(f"{SERVER}/")
        raise NotVerified(f"it was signed in {signed_in}, not in {repository}")
    if workflow and claims.workflow != f".github/workflows/{workflow}":
        raise NotVerified(f"it was signed by the workflow {claims.workflow}, not by {workflow}")
    if ref and claims.ref != ref:
        raise NotVerified(f"it was signed at {claims.ref} (event {claims.event}), not at {ref}")
    if event and claims.event != event:
        raise NotVerified(f"it was signed by the event {claims.event}, not by {event}")
    if claims.event not in PULL_REQUEST_EVENTS or event:
        return
    # The ref of pull_request_target is the branch that the pull request wants to be merged into,
    # which a push to that branch has too.
    shared = claims.event == "pull_request_target"
    if shared or not ref:
        write = f"--event {claims.event}" if shared else f"--ref {claims.ref}"
        raise NotVerified(
            f"it was signed for a pull request, by the event {claims.event} at {claims.ref}; "
            f"write {write} if that is meant"
        )


def check_issued(certificate: x509.Certificate, moment: datetime, trust: TrustedRoot) -> None:
    """Raises NotVerified unless `certificate` could sign code at `moment`, for all we trust."""
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not start <= moment <= end:
        raise NotVerified(
            f"its certificate was valid from {_shown(start)} to {_shown(end)}, and the log has its "
            f"entry from {_shown(moment)}"
        )
    issuer = _issuer(certificate, moment, trust)
    _check_use(certificate)
    _check_logged(certificate, issuer, trust)


def _issuer(
    certificate: x509.Certificate, moment: datetime, trust: TrustedRoot
) -> x509.Certificate:
    """The certificate of the authority that has issued it."""
    # A client of TLS is the nearest thing there is; but what it may be used for is another matter.
    anything = {
        "ca_policy": ExtensionPolicy.webpki_defaults_ca(),
        "ee_policy": ExtensionPolicy.webpki_defaults_ee(),
    }
    policies = {
        name: policy.may_be_present(x509.ExtendedKeyUsage, Criticality.NON_CRITICAL, None)
        for name, policy in anything.items()
    }
    for authority in trust.authorities:
        if not authority.valid.covers(moment):
            continue
        store = Store([x509.load_der_x509_certificate(each) for each in authority.chain])
        builder = PolicyBuilder().store(store).time(moment).extension_policies(**policies)
        try:
            return builder.build_client_verifier().verify(certificate, []).chain[1]
        except (VerificationError, x509.UnsupportedGeneralNameType):
            continue
    raise NotVerified("its certificate was not issued by an authority that is trusted here")


def _check_use(certificate: x509.Certificate) -> None:
    try:
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
        purposes = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound as error:
        raise NotVerified("its certificate does not say what it may be used for") from error
    if not usage.digital_signature or ExtendedKeyUsageOID.CODE_SIGNING not in purposes:
        raise NotVerified("its certificate is not one that signs code")


def _check_logged(
    certificate: x509.Certificate, issuer: x509.Certificate, trust: TrustedRoot
) -> None:
    kind = x509.PrecertificateSignedCertificateTimestamps
    try:
        promises: Iterable[SignedCertificateTimestamp]
        promises = certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound as error:
        raise NotVerified(
            "its certificate has no timestamp of a log of certificates: it may have been issued in "
            "secret"
        ) from error
    if not any(_is_kept(each, certificate, issuer, trust) for each in promises):
        raise NotVerified(
            "its certificate has no timestamp of a log of certificates that is trusted here"
        )


def _is_kept(
    promise: SignedCertificateTimestamp,
    certificate: x509.Certificate,
    issuer: x509.Certificate,
    trust: TrustedRoot,
) -> bool:
    """Whether a log that is trusted has signed this promise to show this certificate."""
    moment = promise.timestamp.replace(tzinfo=UTC)
    log = trust.ct_log(promise.log_id, moment)
    if (
        log is None
        or promise.entry_type is not LogEntryType.PRE_CERTIFICATE
        or not isinstance(promise.signature_hash_algorithm, SHA256)
    ):
        return False
    key = issuer.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    body = certificate.tbs_precertificate_bytes
    milliseconds = round(moment.timestamp() * 1000)
    data = b"".join(
        [
            struct.pack(">BBQH", promise.version.value, 0, milliseconds, promise.entry_type.value),
            hashlib.sha256(key).digest(),
            len(body).to_bytes(3, "big"),
            body,
            struct.pack(">H", len(promise.extension_bytes)),
            promise.extension_bytes,
        ]
    )
    return is_signed(log.der, promise.signature, data)


def _shown(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


KIND: Final = ("dsse", "0.0.1")
# The last that datetime knows; a later one is a lie anyway.
_LAST_SECOND: Final = 253_402_300_799


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One of a log: `body` is what the log keeps, `proof` how it is found in its tree."""

    index: int
    log_id: bytes
    integrated_s: int
    promise: bytes
    body: bytes
    proof: Document

    @classmethod
    def of(cls, document: Document) -> Self:
        """Raises ValueError for what no entry of a dsse statement is."""
        version = document["kindVersion"]
        kind = (version["kind"].text(), version["version"].text())
        if kind != KIND:
            raise ValueError(
                f"{version.path} is {kind[0][:40]} {kind[1][:40]}, and only {' '.join(KIND)} is "
                "known"
            )
        return cls(
            index=document["logIndex"].number(),
            log_id=document["logId"]["keyId"].binary(),
            integrated_s=min(document["integratedTime"].number(), _LAST_SECOND),
            promise=document["inclusionPromise"]["signedEntryTimestamp"].binary(),
            body=document["canonicalizedBody"].binary(),
            proof=document["inclusionProof"],
        )

    @property
    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.integrated_s, UTC)

    def others_than(self, payload: bytes, signature: bytes, certificate: bytes) -> list[str]:
        """What the log has in place of these, in words."""
        spec = Document(parse_json(self.body), "canonicalizedBody")["spec"]
        signed = spec["signatures"].only()
        hashed = spec["payloadHash"]
        found = {
            "statement": (hashed["algorithm"].text(), hashed["value"].text())
            == ("sha256", hashlib.sha256(payload).hexdigest()),
            "signature": signed["signature"].binary() == signature,
            "certificate": _unarmoured(signed["verifier"]) == certificate,
        }
        return [name for name, is_same in found.items() if not is_same]


def check_logged(entry: Entry, trust: TrustedRoot) -> LogKey:
    """The log that has it. Raises NotVerified, or ValueError for what is not even a proof."""
    log = trust.log(entry.log_id, entry.moment)
    if log is None:
        raise NotVerified(f"the log {entry.log_id.hex()[:16]}… of its entry is not trusted here")
    if not is_signed(log.der, entry.promise, _promised(entry)):
        raise NotVerified(
            f"its log entry is not as {log.url} has signed it: index, time or content differ"
        )
    root, size = _checkpoint(entry.proof["checkpoint"]["envelope"].text(), log)
    proof = entry.proof
    if (proof["rootHash"].binary(), proof["treeSize"].number()) != (root, size):
        raise NotVerified(f"its proof ends at another tree than {log.url} has signed")
    leaf = hashlib.sha256(b"\x00" + entry.body).digest()
    path = [each.binary() for each in proof["hashes"].items()]
    if _root(leaf, proof["logIndex"].number(), size, path) != root:
        raise NotVerified(f"its proof does not lead to the tree that {log.url} has signed")
    return log


def _promised(entry: Entry) -> bytes:
    document = {
        "body": base64.b64encode(entry.body).decode(),
        "integratedTime": entry.integrated_s,
        "logID": entry.log_id.hex(),
        "logIndex": entry.index,
    }
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def _root(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Of the tree of that size in which `path` leads up from the leaf; None where it cannot."""
    if index >= size:
        return None
    last, found = size - 1, leaf
    for sibling in path:
        if last == 0:
            return None
        if index & 1 or index == last:
            found = hashlib.sha256(b"\x01" + sibling + found).digest()
            while index and not index & 1:
                index, last = index >> 1, last >> 1
        else:
            found = hashlib.sha256(b"\x01" + found + sibling).digest()
        index, last = index >> 1, last >> 1
    return found if last == 0 else None


def _checkpoint(text: str, log: LogKey) -> tuple[bytes, int]:
    """The root of the log's tree and its size, as the log has signed them.

    https://github.com/transparency-dev/formats/blob/main/log/README.md
    """
    note, _, signatures = text.partition("\n\n")
    signed = (note + "\n").encode()
    if not any(is_signed(log.der, each, signed) for each in _signatures(signatures, log.id)):
        raise NotVerified(f"the checkpoint of its proof is not signed by {log.url}")
    try:
        _, size, root, *_ = note.split("\n")
        return base64.b64decode(root, validate=True), Document(size, "checkpoint").number()
    except ValueError as error:  # binascii.Error is one
        raise ValueError("the checkpoint of its proof has no size and root") from error


def _signatures(lines: str, log_id: bytes) -> list[bytes]:
    """Of those that say by the first four bytes that they are of the log."""
    found = []
    for line in lines.splitlines():
        dash, _, rest = line.partition(" ")
        try:
            data = base64.b64decode(rest.rpartition(" ")[2], validate=True)
        except binascii.Error:
            continue
        if dash == "\N{EM DASH}" and data[:4] == log_id[:4]:
            found.append(data[4:])
    return found


def _unarmoured(document: Document) -> bytes:
    """The DER in PEM in base64."""
    lines = document.binary().decode("ascii", "replace").split()
    # BEGIN and END are two words each, of which the hyphens are a part.
    inner = "".join(line for line in lines if not line.startswith("-") and not line.endswith("-"))
    try:
        return base64.b64decode(inner, validate=True)
    except binascii.Error as error:
        raise ValueError(f"{document.path} is no certificate") from error


def is_signed(der: bytes, signature: bytes, data: bytes) -> bool:
    """Whether `signature` is that of the key in `der`, a SubjectPublicKeyInfo, over `data`."""
    try:
        key = load_der_public_key(der)
    except (ValueError, UnsupportedAlgorithm):
        return False
    return is_signed_by(key, signature, data)


def is_signed_by(key: PublicKeyTypes, signature: bytes, data: bytes) -> bool:
    try:
        match key:
            case ec.EllipticCurvePublicKey():
                key.verify(signature, data, ec.ECDSA(SHA256()))
            case ed25519.Ed25519PublicKey():
                key.verify(signature, data)
            case rsa.RSAPublicKey():
                key.verify(signature, data, padding.PKCS1v15(), SHA256())
            case _:
                return False
    except InvalidSignature:
        return False
    return True
