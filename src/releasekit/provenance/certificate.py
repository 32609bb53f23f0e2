"""A key that lives as long as the run, and the certificates that say whose job has it.

https://github.com/sigstore/fulcio/blob/main/docs/certificate-specification.md
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from releasekit.causes.failures import StrangeAnswer
from releasekit.http.origins import describe_request
from releasekit.provenance.services import ask
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx

    from releasekit.http.credentials import Secret

# https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md
_FULCIO: Final = "1.3.6.1.4.1.57264.1."
# The first ones are plain text; from here on each is a DER string.
_FIRST_DER: Final = 8
_REPOSITORY: Final = 12
_WORKFLOW: Final = 18
_UTF8_STRING: Final = 0x0C


@dataclass(frozen=True, slots=True)
class Identity:
    """A key and its certificate. The same statement gets the same signature, so that the log knows
    an entry again whose answer was lost.
    """

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def sign(self, data: bytes) -> bytes:
        # https://www.rfc-editor.org/rfc/rfc6979
        return self.key.sign(data, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def ends_s(self) -> float:
        """The moment, as `time.time` counts, at which the certificate expires."""
        return self.certificate.not_valid_after_utc.timestamp()

    def covers(self, moment_s: float) -> bool:
        return self.certificate.not_valid_before_utc.timestamp() <= moment_s <= self.ends_s


async def certify(
    http: httpx.AsyncClient, authority: httpx.URL, token: Secret, *, redact: Callable[[str], str]
) -> Identity:
    """A new key with a certificate for the job that `token` is of. One attempt; raises Transient,
    Denied, Rejected.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    wanted = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([]))
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.PEM)
    )
    request = http.build_request(
        "POST",
        f"{str(authority).rstrip('/')}/api/v2/signingCert",
        headers={"Authorization": f"Bearer {token.reveal()}"},
        json={"certificateSigningRequest": base64.b64encode(wanted).decode()},
    )
    response = await ask(http, request, redact=redact)
    where = describe_request(request)
    try:
        certificate = _leaf(response.content)
        is_ours = _spki(certificate.public_key()) == _spki(key.public_key())
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion) as error:
        raise StrangeAnswer(f"{where}: an answer without a certificate") from error
    if not is_ours:
        raise StrangeAnswer(f"{where}: a certificate for a key that is not ours")
    identity = Identity(key, certificate)
    try:
        workflow_of(identity.der)
    except ValueError as error:
        raise StrangeAnswer(f"{where}: a certificate that is not a job's: {error}") from error
    return identity


def _leaf(answer: bytes) -> x509.Certificate:
    match parse_json(answer):
        case {"signedCertificateEmbeddedSct": {"chain": {"certificates": [str(pem), *_]}}}:
            return x509.load_pem_x509_certificate(pem.encode())
        case _:
            raise ValueError("no chain with an embedded promise of its log")


def _spki(key: object) -> bytes:
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise TypeError("not a key as ours are")
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def said_of_job(der: bytes) -> Mapping[int, str]:
    """What a certificate says about the job, by the last number of the extension; see the table at
    its top. Raises ValueError for what is no certificate; who has signed it is not looked at.
    """
    try:
        extensions = x509.load_der_x509_certificate(der).extensions
    except (x509.DuplicateExtension, x509.InvalidVersion, x509.UnsupportedGeneralNameType) as error:
        raise ValueError(f"not a certificate that can be read ({error})") from error
    found = {}
    for extension in extensions:
        number = extension.oid.dotted_string.removeprefix(_FULCIO)
        if number.isdigit() and isinstance(extension.value, x509.UnrecognizedExtension):
            data = extension.value.value
            text = _utf8_string(data) if int(number) >= _FIRST_DER else data
            found[int(number)] = text.decode()
    return found


def workflow_of(der: bytes) -> tuple[str, str]:
    """The URL of the repository, and the path of the workflow in it. Raises ValueError where a
    certificate names none, as that of a person.
    """
    said = said_of_job(der)
    repository, workflow = said.get(_REPOSITORY, ""), said.get(_WORKFLOW, "")
    path, at, _ = workflow.removeprefix(f"{repository}/").partition("@")
    if not repository.rpartition("/")[2] or path == workflow.partition("@")[0] or not at:
        raise ValueError("its certificate names no repository and workflow")
    return repository, path


def _utf8_string(data: bytes) -> bytes:
    """https://www.itu.int/rec/T-REC-X.690 (8.1.3: lengths)"""
    if len(data) < 2 or data[0] != _UTF8_STRING:
        raise ValueError("an extension that is no UTF-8 string")
    start, size = 2, data[1]
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(data[2:start], "big")
    if len(data) != start + size:
        raise ValueError("an extension of another length than it says")
    return data[start:]
