"""A key that lives as long as the run, and the certificates that say whose job has it.

https://github.com/sigstore/fulcio/blob/main/docs/certificate-specification.md
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec import Struct

from releasekit.errors import Rejected
from releasekit.http.origins import describe_request
from releasekit.problems import Problem
from releasekit.provenance.services import ask
from releasekit.provenance.statement import pae
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx

    from releasekit.http.credentials import Secret
    from releasekit.model import Artifact
    from releasekit.provenance.bundle import Bundle
    from releasekit.provenance.job import Job


class NotVerified(ValueError):
    """Why an attestation is not believed: `str(error)` is a sentence without a full stop, about
    "its" statement, certificate or log entry.
    """


class Identity(Struct, frozen=True):
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
    return _curve_key(key).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _curve_key(key: object) -> ec.EllipticCurvePublicKey:
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise TypeError("not a key as ours are")
    return key


_FULCIO: Final = "1.3.6.1.4.1.57264.1."
# The first ones are plain text; from here on each is a DER string.
_FIRST_DER: Final = 8
_UTF8_STRING: Final = 0x0C


class Claims(Struct, frozen=True, kw_only=True):
    """The job that signed: `workflow_uri` is the file of its workflow with the ref, which may be
    elsewhere than the file that has the steps; `repository` is a URL. `event` has started the
    run, at `ref`.

    https://github.com/sigstore/fulcio/blob/main/config/identity/config.yaml
    """

    issuer: str
    repository: str
    commit: str
    ref: str
    event: str
    workflow_uri: str
    run_url: str

    @classmethod
    def of(cls, certificate: bytes) -> Self:
        """Raises NotVerified for a certificate (DER) of anything but a job of a workflow."""
        said = said_of_job(certificate)
        return cls(
            issuer=_claim(said, 8, "issuer of its identity"),
            repository=_claim(said, 12, "repository"),
            commit=_claim(said, 13, "commit"),
            ref=_claim(said, 14, "ref"),
            event=_claim(said, 20, "event"),
            workflow_uri=_claim(said, 18, "workflow"),
            run_url=said.get(21, ""),
        )

    @property
    def workflow(self) -> str:
        """The path of the file, like .github/workflows/release.yml, or of GitLab, which has `//`
        before it, .gitlab-ci.yml.
        """
        path, _, _ = self.workflow_uri.removeprefix(f"{self.repository}/").partition("@")
        return path.removeprefix("/")

    @property
    def is_of_gitlab(self) -> bool:
        """By the address of its file: anybody may have a server of it, and an authority of their
        own.
        """
        return self.workflow_uri.startswith(f"{self.repository}//")

    def is_of(self, job: Job) -> bool:
        """Whether another run of the same workflow in the same repository has signed, or this."""
        return (self.repository, self.workflow) == (job.repository_url, job.workflow_path)


def _claim(said: Mapping[int, str], number: int, name: str) -> str:
    text = said.get(number, "")
    if not text:
        raise NotVerified(f"its certificate names no {name}: it is not that of a workflow's job")
    return text


def publisher_of(certificate: bytes) -> Claims:
    """Raises ValueError for a certificate (DER) of anything but a job of the repository's own
    workflow.
    """
    claims = Claims.of(certificate)
    repository, workflow = claims.repository, claims.workflow_uri
    is_page = repository.count("/") >= 4 and not repository.endswith("/")
    if not is_page or not workflow.startswith(f"{repository}/") or "@" not in workflow:
        raise ValueError("its certificate names a workflow of another repository, or none")
    return claims


def describe_publisher(certificate: bytes) -> dict[str, str | None]:
    """Who has signed, as PEP 740's provenance objects have it. The certificate (DER) knows of no
    environment. Raises ValueError where it says nothing of that kind.
    """
    claims = publisher_of(certificate)
    repository = claims.repository.split("/", 3)[3]
    if claims.is_of_gitlab:
        return {
            "kind": "GitLab",
            "repository": repository,
            "workflow_filepath": claims.workflow,
            "environment": None,
        }
    return {
        "kind": "GitHub",
        "repository": repository,
        "workflow": claims.workflow.rpartition("/")[2],
        "environment": None,
    }


def is_ours(bundle: Bundle, artifact: Artifact, job: Job) -> bool:
    """Whether it can be used again: signed about this very file, by this job's workflow. Of several
    files, no registry takes it.
    """
    try:
        claims = signer_of(bundle)
    except ValueError:
        return False
    return (
        len(bundle.subjects) == 1
        and bundle.subjects[0].covers(artifact.filename, artifact.digests)
        and claims.is_of(job)
    )


def signer_of(bundle: Bundle) -> Claims:
    """The job of its certificate, whose key has signed the statement. Anyone can make both: the
    bundle has to be one that this program has kept under its seal. Raises ValueError.
    """
    try:
        key = _curve_key(x509.load_der_x509_certificate(bundle.certificate).public_key())
        key.verify(bundle.signature, pae(bundle.payload), ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, TypeError, UnsupportedAlgorithm, x509.InvalidVersion) as error:
        raise NotVerified("its signature is not one of its certificate's key") from error
    return Claims.of(bundle.certificate)


def said_of_job(der: bytes) -> Mapping[int, str]:
    """What a certificate says about the job, by the last number of the extension; see the table at
    its top. Raises ValueError for what is not a certificate; who has signed it is not looked at.
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


def _utf8_string(data: bytes) -> bytes:
    """https://www.itu.int/rec/T-REC-X.690 (8.1.3: lengths)"""
    if len(data) < 2 or data[0] != _UTF8_STRING:
        raise ValueError("an extension that is not a UTF-8 string")
    start, size = 2, data[1]
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(data[2:start], "big")
    if len(data) != start + size:
        raise ValueError("an extension of another length than it says")
    return data[start:]
