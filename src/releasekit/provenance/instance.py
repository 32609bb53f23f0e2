"""The Sigstore instance that a job signs with: its certificate authority and its log."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import httpx
from msgspec import Struct

from releasekit.errors import ConfigError, Unreadable
from releasekit.host.files import read_file
from releasekit.http.origins import require_safe
from releasekit.problems import Problem
from releasekit.provenance.document import Document
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from pathlib import Path

# https://github.com/sigstore/protobuf-specs/blob/main/protos/sigstore_trustroot.proto
CONFIG_TYPE: Final = "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json"
_ROOT_TYPES: Final = (
    "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    "application/vnd.dev.sigstore.trustedroot+json;version=0.2",
    "application/vnd.dev.sigstore.trustedroot.v0.2+json",
)
MAX_BYTES: Final = 4 * 1024 * 1024
# https://docs.sigstore.dev/certificate_authority/overview/ and
# https://docs.sigstore.dev/logging/overview/
_AUTHORITY: Final = "https://fulcio.sigstore.dev"
_LOG: Final = "https://rekor.sigstore.dev"
# Later ones need a timestamp beside the entry, for which PEP 740 has no place.
# https://peps.python.org/pep-0740/#provenance-objects
_API_VERSION: Final = 1
_SIGNING_TYPE: Final = "application/vnd.dev.sigstore.signingconfig.v0.2+json"


class Instance(Struct, frozen=True):
    """The URLs of its certificate authority and of its transparency log."""

    authority: httpx.URL
    log: httpx.URL


def instance_at(path: Path | None) -> Instance:
    """The public instance, or the one that the client trust config at `path` names, as
    `sigstore --trust-config` reads it. Blocks. Raises ConfigError that names file, key and value.
    """
    if path is None:
        return Instance(httpx.URL(_AUTHORITY), httpx.URL(_LOG))
    config = read_trust_config(path, "a client trust config")
    try:
        config["mediaType"].require(CONFIG_TYPE)
        # Nothing here is verified with it; a file without it is not the one that was meant.
        config["trustedRoot"]["mediaType"].require(*_ROOT_TYPES)
        signing = config["signingConfig"]
        signing["mediaType"].require(_SIGNING_TYPE)
        return Instance(
            _service(signing["caUrls"], "certificate authority", path),
            _service(signing["rekorTlogUrls"], "transparency log", path),
        )
    except ValueError as error:
        raise ConfigError(f"trust-config: {path}: {error}", problem=Problem.TRUST_CONFIG) from error


def read_trust_config(path: Path, wanted: str) -> Document:
    """What the input `trust-config` names, which has to be `wanted`. Blocks. Raises ConfigError."""
    try:
        return Document(parse_json(read_file(path, max_bytes=MAX_BYTES), max_bytes=None), "")
    except (Unreadable, ValueError) as error:
        what = error if isinstance(error, Unreadable) else f"{path}: is not JSON: {error}"
        raise ConfigError(
            f"trust-config: {what}; write the path of {wanted}", problem=Problem.TRUST_CONFIG
        ) from error


def _service(services: Document, called: str, path: Path) -> httpx.URL:
    """The first that counts now, of the version that is spoken here."""
    now = datetime.now(UTC)
    for service in services.items():
        valid = service["validFor"]
        start, end = valid["start"].moment(), valid["end"].moment()
        is_valid = (start is None or start <= now) and (end is None or now <= end)
        if is_valid and service["majorApiVersion"].value == _API_VERSION:
            url = service["url"]
            return require_safe(url.text(), name=f"trust-config: {path}: {url.path}")
    raise services.wrong(
        f"a list with a {called} of majorApiVersion {_API_VERSION} that is valid today"
    )
