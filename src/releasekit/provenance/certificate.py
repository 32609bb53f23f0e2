"""A key that lives as long as the run, and the certificates that say whose job has it.

https://github.com/sigstore/fulcio/blob/main/docs/certificate-specification.md
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from releasekit.errors import Rejected
from releasekit.http.origins import describe_request
from releasekit.problems import Problem
from releasekit.provenance.claims import publisher_of
from releasekit.provenance.services import ask
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from releasekit.http.credentials import Secret


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
        raise Rejected(
            f"{where}: an answer without a certificate", problem=Problem.STRANGE_ANSWER
        ) from error
    if not is_ours:
        raise Rejected(
            f"{where}: a certificate for a key that is not ours", problem=Problem.STRANGE_ANSWER
        )
    identity = Identity(key, certificate)
    try:
        publisher_of(identity.der)
    except ValueError as error:
        raise Rejected(
            f"{where}: a certificate that is not a job's: {error}", problem=Problem.STRANGE_ANSWER
        ) from error
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
