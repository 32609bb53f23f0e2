"""What provenance/ reads values with: members of documents, and signatures of every kind of key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, x25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from releasekit.provenance import verify_files
from releasekit.provenance.checking import is_signed
from releasekit.provenance.document import Document
from releasekit.provenance.verify_files import bundles_of
from releasekit.text.json_text import count_values
from unit.provenance import bundles

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

DATA = b"what was signed"


def der(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def test_each_kind_of_key_that_logs_have_is_known() -> None:
    curve, edwards = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
    old = rsa.generate_private_key(65537, 2048)
    signed = {
        der(curve.public_key()): curve.sign(DATA, ec.ECDSA(SHA256())),
        der(edwards.public_key()): edwards.sign(DATA),
        der(old.public_key()): old.sign(DATA, padding.PKCS1v15(), SHA256()),
    }
    for key, signature in signed.items():
        assert is_signed(key, signature, DATA)
        assert not is_signed(key, signature, DATA + b".")
        assert not is_signed(key, b"", DATA)


def test_what_is_no_key_that_signs_has_signed_nothing() -> None:
    agreeing = x25519.X25519PrivateKey.generate().public_key()
    assert not is_signed(der(agreeing), b"x", DATA)
    assert not is_signed(b"no key", b"x", DATA)


@pytest.mark.parametrize(
    ("value", "number"), [(7, 7), ("7", 7), (0, 0), (str(2**63 - 1), 2**63 - 1)]
)
def test_numbers_are_read_in_both_forms(value: object, number: int) -> None:
    assert Document({"n": value}, "d")["n"].number() == number


@pytest.mark.parametrize(
    "value", [-1, "-1", True, 1.5, "", None, 2**63, str(2**63), "9" * 20, "¹", [1]]
)
def test_what_is_no_number_is_named(value: object) -> None:
    with pytest.raises(ValueError, match=r"^d\.n is .*; it has to be a number from 0 on$"):
        Document({"n": value}, "d")["n"].number()


def test_of_a_list_with_one_item_there_is_one() -> None:
    assert Document(["x"], "d").only() == Document("x", "d[0]")
    with pytest.raises(ValueError, match=r"^d is \[1, 2\]; it has to be a list of one$"):
        Document([1, 2], "d").only()
    with pytest.raises(ValueError, match=r"^d\.a is not there; it has to be a list$"):
        list(Document({}, "d")["a"].items())


def test_attestations_are_not_read_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="has more than"):
        bundles_of(b" " * (verify_files.MAX_BYTES + 1))


def test_the_values_and_lines_of_attestations_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """R40"""
    bundle = json.dumps(bundles.document()).encode()
    assert len(bundles_of(bundle + b"\n\r\n" + bundle)) == 2
    monkeypatch.setattr(verify_files, "_MAX_LINES", 1)
    with pytest.raises(ValueError, match="and has more than 1 lines"):
        bundles_of(bundle + b"\n\n" + bundle)
    both = b'{"attestations": [%s, %s]}' % (bundle, bundle)
    monkeypatch.setattr(verify_files, "MAX_VALUES", count_values(both))
    with pytest.raises(ValueError, match="values in its attestations"):
        bundles_of(both)
