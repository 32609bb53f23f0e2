"""Attestations, verified by Sigstore's own client, which only the extra `verify` installs."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from pydantic import ValidationError
from sigstore._utils import read_embedded
from sigstore.errors import CertValidationError, Error
from sigstore.models import Bundle as SigstoreBundle
from sigstore.models import TrustedRoot
from sigstore.verify import Verifier
from sigstore.verify.policy import OIDCIssuerV2
from sigstore_models.trustroot.v1 import TrustedRoot as Keys
from tuf.api.exceptions import DownloadError, RepositoryError
from tuf.ngclient.updater import Updater

from releasekit.errors import ConfigError
from releasekit.host import durable
from releasekit.problems import Problem
from releasekit.provenance.certificate import Claims, NotVerified
from releasekit.provenance.instance import CONFIG_TYPE, MAX_BYTES, read_trust_config
from releasekit.provenance.statement import PAYLOAD_TYPE, canonical
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sigstore_models.common.v1 import TimeRange

    from releasekit.provenance.bundle import Bundle

# Of the public instance. https://docs.sigstore.dev/about/security/
_TUF: Final = "https://tuf-repo-cdn.sigstore.dev"
_KEYS: Final = "trusted_root.json"
_MAX_REASON: Final = 160
_MAX_VALUE: Final = 40
# What the client raises for bundles that are not as they should be.
_REFUSALS: Final = (
    *(Error, ValueError, TypeError, OverflowError, OSError, UnsupportedAlgorithm),
    *(x509.ExtensionNotFound, x509.DuplicateExtension, x509.InvalidVersion),
    x509.UnsupportedGeneralNameType,
)
# Without a handler, what these warn of would go to stderr.
for _name in ("sigstore", "tuf"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


def load_keys(path: Path | None, *, scratch: Path | None, tell: Callable[[str], None]) -> Keys:
    """Whom to believe: the trusted root at `path`, or in the client trust config there; else that
    of the public instance, as it came with the client or, with a new directory `scratch`, as it is
    today. Blocks. Raises ConfigError.
    """
    if path is None:
        return _load_public_keys(scratch, tell)
    wanted = "a trusted root of Sigstore, or of a client trust config"
    document = read_trust_config(path, wanted)
    if document["mediaType"].value == CONFIG_TYPE:
        document = document["trustedRoot"]
    try:
        keys = Keys.from_json(canonical(document.members()))
        Verifier(trusted_root=TrustedRoot(keys))
    except _REFUSALS as error:
        raise ConfigError(
            f"trust-config: {path}: {_reason(error)}; write the path of {wanted}",
            problem=Problem.TRUST_CONFIG,
        ) from error
    return keys


def _load_public_keys(scratch: Path | None, tell: Callable[[str], None]) -> Keys:
    if scratch is not None:
        try:
            return _fetch_public_keys(scratch)
        except (DownloadError, RepositoryError, OSError, ValueError):
            tell("Sigstore's keys could not be refreshed; those of the installed client count")
    return Keys.from_json(read_embedded(_KEYS, _TUF))


def _fetch_public_keys(scratch: Path) -> Keys:
    """By the root of the installed client, in a directory of this run alone. The client's own
    function would keep them in the user's cache, which builds may write to, and would believe
    offline whatever lies there ("Using unverified trusted root from cache").

    https://github.com/sigstore/sigstore-python/blob/v4.5.1/sigstore/_internal/tuf.py
    """
    updater = Updater(
        metadata_dir=str(scratch),
        metadata_base_url=_TUF,
        target_dir=str(scratch),
        target_base_url=f"{_TUF}/targets/",
        bootstrap=read_embedded("root.json", _TUF),
    )
    if (found := updater.get_targetinfo(_KEYS)) is None:
        raise RepositoryError(f"no {_KEYS}")
    path = Path(updater.download_target(found))
    return Keys.from_json(durable.read_file(path, max_bytes=MAX_BYTES))


def check(bundle: Bundle, keys: Keys, issuer: str) -> Claims:
    """Who has signed it: a job of a workflow, with an identity of `issuer`: what the certificate
    says of the job counts of that one only. Raises NotVerified.
    """
    try:
        official = SigstoreBundle.from_json(bundle.text)
        root = TrustedRoot(_keys_at(_moments(official), keys))
        found = Verifier(trusted_root=root).verify_dsse(official, OIDCIssuerV2(issuer))
        certificate = official.signing_certificate.public_bytes(Encoding.DER)
        claims = Claims.of(certificate)
    except CertValidationError as error:
        raise NotVerified(
            "its certificate was not issued by an authority that is trusted here, or was not valid "
            f"when the log took the entry: {_reason(error)}"
        ) from error
    except _REFUSALS as error:
        raise NotVerified(f"its attestation is not valid: {_reason(error)}") from error
    if (*found, certificate) != (PAYLOAD_TYPE, bundle.payload, bundle.certificate):
        raise NotVerified("its bundle can be read in two ways")
    return claims


def _moments(official: SigstoreBundle) -> list[float]:
    """When it was signed, as seconds: all that the client may go by. It refuses a bundle with none.

    https://github.com/sigstore/sigstore-python/blob/v4.5.1/sigstore/verify/verifier.py
    """
    entry = official.log_entry._inner  # noqa: SLF001 - as read by the client, and not once more
    data = official.verification_material.timestamp_verification_data
    stamps = data.rfc3161_timestamps if data else []
    found = [each.tst_info.gen_time.timestamp() for each in stamps]
    if entry.integrated_time and entry.inclusion_promise:
        found.append(entry.integrated_time)
    return found


def _keys_at(moments_s: Sequence[float], keys: Keys) -> Keys:
    """Those of all these moments: the client takes keys of any time."""

    def is_valid(period: TimeRange | None) -> bool:
        if period is None:
            return True
        end_s = period.end.timestamp() if period.end else math.inf
        return all(period.start.timestamp() <= moment_s <= end_s for moment_s in moments_s)

    return keys.model_copy(
        update={
            "tlogs": [each for each in keys.tlogs if is_valid(each.public_key.valid_for)],
            "ctlogs": [each for each in keys.ctlogs if is_valid(each.public_key.valid_for)],
            "certificate_authorities": [
                each for each in keys.certificate_authorities if is_valid(each.valid_for)
            ],
        }
    )


def _reason(error: Exception) -> str:
    text = str(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        value = (
            "" if first["type"] == "missing" else f", not {clip(repr(first['input']), _MAX_VALUE)}"
        )
        text = f"{'.'.join(map(str, first['loc']))}: {first['msg']}{value}"
    return clip(visible(" ".join(text.split())), _MAX_REASON)
