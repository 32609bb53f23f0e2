"""Whether a certificate was issued by an authority that is trusted, and in public: a log of
certificates has promised to show it.

https://www.rfc-editor.org/rfc/rfc6962#section-3.2
"""

from __future__ import annotations

import hashlib
import struct
from datetime import UTC
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.certificate_transparency import LogEntryType
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from releasekit.provenance.keys import is_signed
from releasekit.provenance.trust import NotVerified

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from cryptography.x509.certificate_transparency import SignedCertificateTimestamp

    from releasekit.provenance.trust import TrustedRoot


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
