"""A root of trust as npm finds it: in the cache of its TUF client, signed by keys of our own."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from securesystemslib.signer import CryptoSigner
from tuf.api.metadata import Metadata, Root, Snapshot, TargetFile, Targets, Timestamp

if TYPE_CHECKING:
    from pathlib import Path

    from provenance.sigstore_double import Sigstore

# The mirror that npm would ask, if it had to ask any.
_MIRROR = "tuf-repo-cdn.sigstore.dev"
_TARGET = "trusted_root.json"

T = TypeVar("T", Root, Targets, Snapshot, Timestamp)


def write(sigstore: Sigstore, directory: Path) -> Path:
    """`directory`, with a repository that trusts the double and is good for some days."""
    folder = directory / _MIRROR
    (folder / "targets").mkdir(parents=True)
    expires = datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)
    signer = CryptoSigner.generate_ed25519()
    root = Root(expires=expires, consistent_snapshot=True)
    for role in ("root", "timestamp", "snapshot", "targets"):
        root.add_key(signer.public_key, role)
    data = json.dumps(sigstore.root).encode()
    targets = Targets(expires=expires)
    targets.targets[_TARGET] = TargetFile.from_data(_TARGET, data)
    (folder / "targets" / _TARGET).write_bytes(data)
    _sign(folder, "root", Metadata(root), signer)
    _sign(folder, "targets", Metadata(targets), signer)
    _sign(folder, "snapshot", Metadata(Snapshot(expires=expires)), signer)
    _sign(folder, "timestamp", Metadata(Timestamp(expires=expires)), signer)
    return directory


def _sign(folder: Path, name: str, metadata: Metadata[T], signer: CryptoSigner) -> None:
    metadata.sign(signer)
    (folder / f"{name}.json").write_bytes(metadata.to_bytes())
