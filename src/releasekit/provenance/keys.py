"""Signatures of logs and of certificates' keys, with `cryptography`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes


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
