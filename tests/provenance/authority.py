"""Fulcio and its CT log: certificates as the real one makes them for jobs on GitHub and GitLab.

https://github.com/sigstore/fulcio/blob/main/config/identity/config.yaml,
https://github.com/sigstore/fulcio/blob/main/docs/certificate-specification.md,
https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md and
https://www.rfc-editor.org/rfc/rfc6962#section-3.2
"""

from __future__ import annotations

import hashlib
import struct
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from provenance.oidc import GITLAB, verified

FULCIO = "1.3.6.1.4.1.57264.1"
_SCT_LIST = "1.3.6.1.4.1.11129.2.4.2"
_GITHUB = "https://github.com"
VALIDITY_S = 600


class BadRequest(Exception):
    """No certificate for that."""


def public_bytes(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@dataclass
class Authority:
    """A root, an intermediate, and leaves that are valid for `validity_s`, and are `age_s` old when
    they are made: an old one expires soon, without anybody who waits.
    """

    validity_s: float = VALIDITY_S
    age_s: float = 0
    issued: list[x509.Certificate] = field(default_factory=list)
    ct_key: ec.EllipticCurvePrivateKey = field(default_factory=_new_key)
    _root_key: ec.EllipticCurvePrivateKey = field(default_factory=_new_key)
    _key: ec.EllipticCurvePrivateKey = field(default_factory=_new_key)

    def __post_init__(self) -> None:
        self.root = _ca("sigstore", self._root_key, None, self._root_key)
        self.intermediate = _ca("sigstore-intermediate", self._key, self.root, self._root_key)

    @property
    def chain(self) -> list[x509.Certificate]:
        return [self.intermediate, self.root]

    def certify(self, token: str, csr: bytes) -> list[str]:
        """The chain in PEM, the leaf first. Raises BadToken, BadRequest."""
        claims = verified(token)
        try:
            request = x509.load_pem_x509_csr(csr)
        except ValueError as error:
            raise BadRequest("not a certificate signing request") from error
        key = request.public_key()
        if not request.is_signature_valid or not isinstance(key, ec.EllipticCurvePublicKey):
            raise BadRequest("the request is not signed by its own key")
        return self._certified(key, claims)

    def certify_key(self, token: str, pem: bytes, proof: bytes) -> list[str]:
        """The same for who signs the subject of the token instead of a request, as npm does."""
        claims = verified(token)
        try:
            key = load_pem_public_key(pem)
            assert isinstance(key, ec.EllipticCurvePublicKey)
            key.verify(proof, claims["sub"].encode(), ec.ECDSA(hashes.SHA256()))
        except (ValueError, InvalidSignature) as error:
            raise BadRequest("the key's owner has not signed the subject") from error
        return self._certified(key, claims)

    def _certified(self, key: ec.EllipticCurvePublicKey, claims: dict[str, Any]) -> list[str]:
        leaf = self._leaf(key, claims)
        self.issued.append(leaf)
        return [each.public_bytes(Encoding.PEM).decode() for each in (leaf, *self.chain)]

    def _leaf(self, key: ec.EllipticCurvePublicKey, claims: dict[str, Any]) -> x509.Certificate:
        start = datetime.now(UTC) - timedelta(seconds=self.age_s)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self.intermediate.subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + timedelta(seconds=self.validity_s))
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .add_extension(
                x509.SubjectAlternativeName([x509.UniformResourceIdentifier(_said(claims)[9])]),
                critical=True,
            )
        )
        for number, value in _said(claims).items():
            data = value.encode() if number < 7 else _utf8_string(value)
            oid = x509.ObjectIdentifier(f"{FULCIO}.{number}")
            builder = builder.add_extension(x509.UnrecognizedExtension(oid, data), critical=False)
        # The log signs what the certificate is without its own promise in it.
        logged = builder.sign(self._key, hashes.SHA384()).tbs_certificate_bytes
        promises = x509.UnrecognizedExtension(
            x509.ObjectIdentifier(_SCT_LIST), self._promised(logged)
        )
        return builder.add_extension(promises, critical=False).sign(self._key, hashes.SHA384())

    def _promised(self, logged: bytes) -> bytes:
        now_ms = time.time_ns() // 10**6
        issuer = hashlib.sha256(public_bytes(self._key.public_key())).digest()
        entry = struct.pack(">BBQH", 0, 0, now_ms, 1) + issuer
        entry += len(logged).to_bytes(3, "big") + logged + b"\0\0"
        signature = self.ct_key.sign(entry, ec.ECDSA(hashes.SHA256()))
        log_id = hashlib.sha256(public_bytes(self.ct_key.public_key())).digest()
        sct = struct.pack(">B32sQHBBH", 0, log_id, now_ms, 0, 4, 3, len(signature)) + signature
        one = struct.pack(">H", len(sct)) + sct
        return _tlv(0x04, struct.pack(">H", len(one)) + one)


def _said(claims: dict[str, Any]) -> dict[int, str]:
    """The value of each extension, by the last number of its identifier."""
    if "project_path" in claims:
        return _said_of_gitlab(claims)
    repository = f"{_GITHUB}/{claims['repository']}"
    run = f"{repository}/actions/runs/{claims['run_id']}/attempts/{claims['run_attempt']}"
    return {
        1: claims["iss"],
        2: claims["event_name"],
        3: claims["sha"],
        4: claims["workflow"],
        5: claims["repository"],
        6: claims["ref"],
        8: claims["iss"],
        9: f"{_GITHUB}/{claims['job_workflow_ref']}",
        10: claims["job_workflow_sha"],
        11: claims["runner_environment"],
        12: repository,
        13: claims["sha"],
        14: claims["ref"],
        15: claims["repository_id"],
        16: f"{_GITHUB}/{claims['repository_owner']}",
        17: claims["repository_owner_id"],
        18: f"{_GITHUB}/{claims['workflow_ref']}",
        19: claims["workflow_sha"],
        20: claims["event_name"],
        21: run,
        22: claims["repository_visibility"],
    }


def _said_of_gitlab(claims: dict[str, Any]) -> dict[int, str]:
    project, file = f"{GITLAB}/{claims['project_path']}", f"https://{claims['ci_config_ref_uri']}"
    kind = "heads" if claims["ref_type"] == "branch" else "tags"
    return {
        1: claims["iss"],
        8: claims["iss"],
        9: file,
        10: claims["ci_config_sha"],
        11: claims["runner_environment"],
        12: project,
        13: claims["sha"],
        14: f"refs/{kind}/{claims['ref']}",
        15: claims["project_id"],
        16: f"{GITLAB}/{claims['namespace_path']}",
        17: claims["namespace_id"],
        18: file,
        19: claims["ci_config_sha"],
        20: claims["pipeline_source"],
        21: f"{project}/-/jobs/{claims['job_id']}",
        22: claims["project_visibility"],
    }


def _ca(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "sigstore.dev"),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
    start = datetime.now(UTC) - timedelta(days=1)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=3650))
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .add_extension(
            x509.BasicConstraints(ca=True, path_length=1 if issuer is None else 0), critical=True
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
    )
    if issuer is not None:
        code_signing = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING])
        builder = builder.add_extension(code_signing, critical=False)
    return builder.sign(issuer_key, hashes.SHA384())


def _usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _utf8_string(text: str) -> bytes:
    return _tlv(0x0C, text.encode())


def _tlv(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content
