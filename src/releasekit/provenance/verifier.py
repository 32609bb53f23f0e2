"""Attestations, verified by Sigstore's own client, which only the extra `verify` installs."""

from __future__ import annotations

import contextlib
import logging
import os
from typing import TYPE_CHECKING, Final

import platformdirs
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from pydantic import ValidationError
from sigstore.errors import CertValidationError, Error, TUFError
from sigstore.models import Bundle as SigstoreBundle
from sigstore.models import ClientTrustConfig, TrustedRoot
from sigstore.verify import Verifier
from sigstore.verify.policy import OIDCIssuerV2
from sigstore_models.trustroot.v1 import TrustedRoot as Keys

from releasekit.errors import ConfigError
from releasekit.problems import Problem
from releasekit.provenance.certificate import Claims, NotVerified
from releasekit.provenance.instance import CONFIG_TYPE, read_trust_config
from releasekit.provenance.statement import PAYLOAD_TYPE, canonical
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sigstore_models.common.v1 import TimeRange

    from releasekit.provenance.bundle import Bundle

# Of whom each identity of a job at github.com comes.
ISSUER: Final = "https://token.actions.githubusercontent.com"
_MAX_REASON: Final = 160
# What the client raises for bundles that are not as they should be.
_REFUSALS: Final = (
    *(Error, ValueError, TypeError, OverflowError, UnsupportedAlgorithm, x509.ExtensionNotFound),
    *(x509.DuplicateExtension, x509.InvalidVersion, x509.UnsupportedGeneralNameType),
)
# It warns on stderr that it is offline, which is what was asked for.
logging.getLogger("sigstore").addHandler(logging.NullHandler())


def load_keys(path: Path | None, *, refresh: bool, tell: Callable[[str], None]) -> Keys:
    """Whom to believe: the trusted root at `path`, or in the client trust config there; else that
    of the public instance, as the client has it, or as it is today, to `refresh` it. Blocks. Raises
    ConfigError.
    """
    if path is None:
        return _load_public_keys(refresh=refresh, tell=tell)
    wanted = "a trusted root of Sigstore, or of a client trust config"
    document = read_trust_config(path, wanted)
    if document["mediaType"].value == CONFIG_TYPE:
        document = document["trustedRoot"]
    try:
        keys = Keys.from_json(canonical(document.value))
        Verifier(trusted_root=TrustedRoot(keys))
    except _REFUSALS as error:
        raise ConfigError(
            f"trust-config: {path}: {_reason(error)}; write the path of {wanted}",
            problem=Problem.TRUST_CONFIG,
        ) from error
    return keys


def _load_public_keys(*, refresh: bool, tell: Callable[[str], None]) -> Keys:
    try:
        with _closed_cache():
            try:
                config = ClientTrustConfig.production(offline=not refresh)
            except TUFError:
                tell("Sigstore's keys could not be refreshed; those of the last time count")
                config = ClientTrustConfig.production(offline=True)
    except OSError as error:
        raise ConfigError(
            f"{error.filename}: {error.strerror}; Sigstore's keys are kept there: make it "
            "writable, or name a trusted root with --trust-config",
            problem=Problem.TRUST_CONFIG,
        ) from error
    return config._inner.trusted_root  # noqa: SLF001 - the root in the form of a file


@contextlib.contextmanager
def _closed_cache() -> Iterator[None]:
    """Builds may write to the user's caches, where the client believes what it finds while it is
    offline; so it keeps its keys among the user's data.
    """
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = platformdirs.user_data_dir("releasekit")
    try:
        yield
    finally:
        del os.environ["XDG_CACHE_HOME"]
        if before is not None:
            os.environ["XDG_CACHE_HOME"] = before


def check(bundle: Bundle, keys: Keys) -> Claims:
    """Who has signed it: a job of a workflow. Raises NotVerified."""
    try:
        official = SigstoreBundle.from_json(bundle.text)
        root = TrustedRoot(_keys_at(bundle.integrated_s, keys))
        found = Verifier(trusted_root=root).verify_dsse(official, OIDCIssuerV2(ISSUER))
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


def _keys_at(moment_s: int, keys: Keys) -> Keys:
    """Those of that moment: the client takes keys of any time. 0 is one that is not known."""

    def is_valid(period: TimeRange | None) -> bool:
        if period is None or not moment_s:
            return True
        end = period.end
        return period.start.timestamp() <= moment_s and (end is None or moment_s <= end.timestamp())

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
        text = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return clip(visible(" ".join(text.split())), _MAX_REASON)
