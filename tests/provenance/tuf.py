"""A client's copy of a TUF repository that names the root of trust of Sigstore's double, as npm's
verifier keeps that of the public instance: it then asks nobody.

https://github.com/sigstore/sigstore-js/tree/main/packages/tuf
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from securesystemslib.signer import CryptoSigner
from tuf.api.metadata import Metadata, Root, Snapshot, TargetFile, Targets, Timestamp

if TYPE_CHECKING:
    from pathlib import Path

_MIRROR = "tuf-repo-cdn.sigstore.dev"
_TARGET = "trusted_root.json"

T = TypeVar("T", Root, Targets, Snapshot, Timestamp)


def seeded(directory: Path, trusted_root: bytes) -> Path:
    """What `tufCache` says to npm's client."""
    cache = directory / _MIRROR
    (cache / "targets").mkdir(parents=True)
    expires = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    key = CryptoSigner.generate_ed25519()
    root = Root(expires=expires, consistent_snapshot=True)
    for role in ("root", "timestamp", "snapshot", "targets"):
        root.add_key(key.public_key, role)
    targets = Targets(expires=expires)
    targets.targets[_TARGET] = TargetFile.from_data(_TARGET, trusted_root)
    _sign(cache / "root.json", Metadata(root), key)
    _sign(cache / "targets.json", Metadata(targets), key)
    _sign(cache / "snapshot.json", Metadata(Snapshot(expires=expires)), key)
    _sign(cache / "timestamp.json", Metadata(Timestamp(expires=expires)), key)
    (cache / "targets" / _TARGET).write_bytes(trusted_root)
    return directory


def _sign(path: Path, metadata: Metadata[T], key: CryptoSigner) -> None:
    metadata.sign(key)
    path.write_bytes(metadata.to_bytes())
