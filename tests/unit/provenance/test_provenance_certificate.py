from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from releasekit.provenance import certificate
from unit.provenance.certificates import END, START, made


def test_a_signature_is_the_same_each_time() -> None:
    """So that the log finds an entry again whose answer was lost."""
    identity = made()
    assert identity.sign(b"a") == identity.sign(b"a") != identity.sign(b"b")
    identity.key.public_key().verify(identity.sign(b"a"), b"a", ec.ECDSA(hashes.SHA256()))


def test_a_certificate_covers_its_first_and_its_last_second() -> None:
    identity = made()
    first, last = START.timestamp(), END.timestamp()
    assert identity.ends_s == last
    assert identity.covers(first)
    assert identity.covers(last)
    assert not identity.covers(first - 1)
    assert not identity.covers(last + 1)


def test_a_key_of_another_kind_is_none_of_ours() -> None:
    with pytest.raises(TypeError, match="not a key as ours are"):
        certificate._spki(rsa.generate_private_key(65537, 1024).public_key())
