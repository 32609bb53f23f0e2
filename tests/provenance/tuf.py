"""A TUF repository that names the root of trust of Sigstore's double: as it is served, and the copy
of a client, as npm's verifier keeps that of the public instance: it then asks nobody.

https://github.com/sigstore/sigstore-js/tree/main/packages/tuf
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from securesystemslib.signer import CryptoSigner  # type: ignore[attr-defined]
from tuf.api.metadata import (  # type: ignore[attr-defined]
    Metadata,
    Root,
    Snapshot,
    TargetFile,
    Targets,
    Timestamp,
)

if TYPE_CHECKING:
    from pathlib import Path

_MIRROR = "tuf-repo-cdn.sigstore.dev"
_TARGET = "trusted_root.json"


def seeded(directory: Path, trusted_root: bytes) -> Path:
    """What `tufCache` says to npm's client."""
    cache = directory / _MIRROR
    (cache / "targets").mkdir(parents=True)
    for name, data in signed_roles(trusted_root).items():
        (cache / f"{name}.json").write_bytes(data)
    (cache / "targets" / _TARGET).write_bytes(trusted_root)
    return directory


def served(trusted_root: bytes) -> dict[str, bytes]:
    """The files of a repository by their names there, beneath its address."""
    named = {"snapshot": "1.snapshot", "targets": "1.targets"}
    files = {
        f"{named.get(role, role)}.json": data for role, data in signed_roles(trusted_root).items()
    }
    return {**files, f"targets/{hashlib.sha256(trusted_root).hexdigest()}.{_TARGET}": trusted_root}


def signed_roles(trusted_root: bytes) -> dict[str, bytes]:
    expires = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    key = CryptoSigner.generate_ed25519()
    root = Root(expires=expires, consistent_snapshot=True)
    for role in ("root", "timestamp", "snapshot", "targets"):
        root.add_key(key.public_key, role)
    targets = Targets(expires=expires)
    targets.targets[_TARGET] = TargetFile.from_data(_TARGET, trusted_root)
    roles: dict[str, Any] = {
        "root": root,
        "targets": targets,
        "snapshot": Snapshot(expires=expires),
        "timestamp": Timestamp(expires=expires),
    }
    found = {}
    for name, signed in roles.items():
        metadata = Metadata(signed)
        metadata.sign(key)
        found[name] = metadata.to_bytes()
    return found
