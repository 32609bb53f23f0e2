"""Where a job gets certificates and has signatures logged: Sigstore's public instance, or another
one that a client trust config describes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import httpx

from releasekit.errors import ConfigError, Unreadable
from releasekit.host.files import read_file
from releasekit.http.origins import require_safe
from releasekit.problems import Problem
from releasekit.provenance.document import Document
from releasekit.provenance.trust import CONFIG_TYPE, MAX_BYTES, TrustedRoot, Validity
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from pathlib import Path

# https://docs.sigstore.dev/certificate_authority/overview/ and
# https://docs.sigstore.dev/logging/overview/
_AUTHORITY: Final = "https://fulcio.sigstore.dev"
_LOG: Final = "https://rekor.sigstore.dev"
# Later ones need a timestamp beside the entry, for which PEP 740 has no place.
# https://peps.python.org/pep-0740/#provenance-objects
_API_VERSION: Final = 1
_SIGNING_TYPE: Final = "application/vnd.dev.sigstore.signingconfig.v0.2+json"
_WRITE: Final = "write the path of a client trust config"


@dataclass(frozen=True, slots=True)
class Instance:
    """The URLs of its certificate authority and of its transparency log, and what its signatures
    are checked against.
    """

    authority: httpx.URL
    log: httpx.URL
    trust: TrustedRoot


def instance_at(path: Path | None) -> Instance:
    """The public instance, or the one that the client trust config at `path` names, as
    `sigstore --trust-config` reads it. Blocks. Raises ConfigError that names file, key and value.
    """
    if path is None:
        return Instance(httpx.URL(_AUTHORITY), httpx.URL(_LOG), TrustedRoot.public())
    try:
        config = Document(parse_json(read_file(path, max_bytes=MAX_BYTES), max_bytes=None), "")
    except Unreadable as error:
        raise ConfigError(
            f"trust-config: {error}; {_WRITE}", problem=Problem.TRUST_CONFIG
        ) from error
    except ValueError as error:
        raise ConfigError(
            f"trust-config: {path}: is not JSON: {error}; {_WRITE}", problem=Problem.TRUST_CONFIG
        ) from error
    try:
        config["mediaType"].require(CONFIG_TYPE)
        signing = config["signingConfig"]
        signing["mediaType"].require(_SIGNING_TYPE)
        return Instance(
            _service(signing["caUrls"], "certificate authority", path),
            _service(signing["rekorTlogUrls"], "transparency log", path),
            TrustedRoot.of(config["trustedRoot"]),
        )
    except ValueError as error:
        raise ConfigError(f"trust-config: {path}: {error}", problem=Problem.TRUST_CONFIG) from error


def _service(services: Document, called: str, path: Path) -> httpx.URL:
    """The first that counts now, of the version that is spoken here."""
    now = datetime.now(UTC)
    for service in services.items():
        is_valid = Validity.of(service["validFor"]).covers(now)
        if is_valid and service["majorApiVersion"].value == _API_VERSION:
            url = service["url"]
            return require_safe(url.text(), name=f"trust-config: {path}: {url.path}")
    raise services.wrong(
        f"a list with a {called} of majorApiVersion {_API_VERSION} that is valid today"
    )
