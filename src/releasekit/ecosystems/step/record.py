"""What stands for a step among built files: a record of it, the same whenever it is made, and how
records lie in a directory where no step runs.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from releasekit.ecosystems.directory import page_there
from releasekit.model import Published

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from releasekit.model import Package
    from releasekit.provenance.bundle import Bundle


def name_record(package: Package) -> str:
    return f"{package.id.name}-{package.version.replace('/', '_')}"


def make_record(package: Package) -> bytes:
    record = {"step": package.id.name, "version": package.version}
    return f"{json.dumps(record)}\n".encode()


def published(package: Package, record: bytes) -> Published:
    """What a step has published is there as a whole, or not at all."""
    digest = hashlib.sha256(record).hexdigest()
    return Published(files={name_record(package): f"sha256:{digest}"})


class RecordLayout:
    """Implements `directory.Layout`."""

    def path_for(self, package: Package, filename: str) -> PurePosixPath | None:
        return PurePosixPath(filename) if filename == name_record(package) else None

    def attestation(self, package: Package, filename: str, bundle: Bundle) -> None:
        """No client looks for one."""

    def pages(self, _root: Path, _package: Package) -> Iterable[tuple[PurePosixPath, bytes]]:
        return ()

    def lookup(self, root: Path, package: Package) -> Published | None:
        return published(package, page_there(root / name_record(package)))
