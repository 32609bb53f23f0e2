"""A registry of bundles as plain files: CHANNEL/NAME/ with its archives and an index of them."""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from releasekit.ecosystems.directory import read_page
from releasekit.model import Published

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from releasekit.model import Package
    from releasekit.provenance.bundle import Bundle


class Channel:
    """Implements `directory.Layout`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def path_for(self, package: Package, filename: str) -> PurePosixPath | None:
        if not filename.startswith(f"{package.id.name}-{package.version}.tar"):
            return None
        return self._directory(package) / filename

    def attestation(self, package: Package, filename: str, bundle: Bundle) -> None:
        """No client looks for one."""

    def pages(self, root: Path, package: Package) -> Iterable[tuple[PurePosixPath, bytes]]:
        files = sorted((root / self._directory(package)).glob(f"*-{package.version}.tar*"))
        digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        versions = {**self._versions(root, package), package.version: digests}
        page = json.dumps(versions, indent=1, sort_keys=True).encode()
        yield self._directory(package) / "index.json", page

    def lookup(self, root: Path, package: Package) -> Published | None:
        digests = self._versions(root, package).get(package.version)
        if digests is None:
            return None
        return Published(files={name: f"sha256:{digest}" for name, digest in digests.items()})

    def _directory(self, package: Package) -> PurePosixPath:
        return PurePosixPath(self._name, package.id.name)

    def _versions(self, root: Path, package: Package) -> Mapping[str, Mapping[str, str]]:
        page = read_page(root / self._directory(package) / "index.json")
        versions: dict[str, dict[str, str]] = json.loads(page or b"{}")
        return versions
