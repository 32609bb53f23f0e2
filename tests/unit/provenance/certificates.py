"""Certificates with any extensions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from releasekit.provenance.certificate import Identity

START = datetime(2026, 1, 1, tzinfo=UTC)
END = START + timedelta(minutes=10)


def made(*extensions: tuple[str, bytes]) -> Identity:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(x509.Name([]))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(START)
        .not_valid_after(END)
    )
    for number, data in extensions:
        oid = x509.ObjectIdentifier(f"1.3.6.1.4.1.57264.1.{number}")
        builder = builder.add_extension(x509.UnrecognizedExtension(oid, data), critical=False)
    return Identity(key, builder.sign(key, hashes.SHA256()))
