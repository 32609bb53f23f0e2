from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from releasekit.provenance.certificate import said_of_job
from unit.provenance.certificates import END, START, made


def test_what_a_certificate_says_is_text() -> None:
    """The first extensions are plain text, the others are DER; what is below them is not theirs."""
    long = "x" * 300
    identity = made(
        ("5", b"acme/widgets"),
        ("12", b"\x0c\x03abc"),
        ("13", b"\x0c\x82\x01\x2c" + long.encode()),
        ("14.1", b"\x0c\x01z"),
        ("14", "\x0c\x02ä".encode()),
    )
    assert said_of_job(identity.der) == {5: "acme/widgets", 12: "abc", 13: long, 14: "ä"}


@pytest.mark.parametrize(
    "data",
    [b"", b"\x0c", b"abc", b"\x0c\x05abc", b"\x0c\x02abc", b"\x0c\x84\xff", b"\x0c\x01\xff"],
)
def test_an_extension_of_another_form_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        said_of_job(made(("12", data)).der)


def test_a_name_that_nobody_can_read_is_refused() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    # A subject alternative name of a kind (x400Address) that nobody supports.
    oid = x509.ObjectIdentifier("2.5.29.17")
    strange = x509.UnrecognizedExtension(oid, b"\x30\x02\xa3\x00")
    der = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(x509.Name([]))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(START)
        .not_valid_after(END)
        .add_extension(strange, critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.DER)
    )
    with pytest.raises(ValueError, match="not a certificate that can be read"):
        said_of_job(der)
