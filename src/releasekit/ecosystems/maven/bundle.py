"""A release as one zip in the layout of a repository, as the Central Portal takes it.

https://central.sonatype.org/publish/publish-portal-upload/
"""

from __future__ import annotations

import hashlib
import zipfile
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.maven import layout
from releasekit.errors import PackageError
from releasekit.host import contents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path, PurePosixPath

    from releasekit.model import Artifact, Package

# https://central.sonatype.org/publish/publish-portal-api/#uploading-a-deployment-bundle
MAX_BYTES: Final = 1024**3
# The same release makes the same bundle: the earliest time a zip can tell.
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_CHUNK: Final = 1024 * 1024


def release_digest(release: Mapping[Package, Sequence[Artifact]]) -> str:
    """What tells one release from another, whoever bundles it."""
    lines = [f"{artifact.sha256}  {path}\n" for path, artifact in _files(release)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def write_bundle(path: Path, release: Mapping[Package, Sequence[Artifact]]) -> None:
    """Put the release with its checksums into a new zip; raises PackageError when it is too large,
    or a file is not what was built. Blocks.
    """
    size = sum(artifact.size for _, artifact in _files(release))
    if size > MAX_BYTES:
        raise PackageError(
            f"maven: the release has {size} bytes, and a bundle takes {MAX_BYTES}",
            hint="Publish it in parts, with `packages`.",
        )
    # Jars are compressed as they are.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as bundle:
        for location, artifact in _files(release):
            with contents.opened(artifact) as file, bundle.open(_entry(location), "w") as entry:
                while chunk := file.read(_CHUNK):
                    entry.write(chunk)
            for algorithm in layout.ALGORITHMS:
                beside = location.with_name(f"{location.name}.{algorithm}")
                bundle.writestr(_entry(beside), artifact.digests[algorithm])


def _files(
    release: Mapping[Package, Sequence[Artifact]],
) -> Iterator[tuple[PurePosixPath, Artifact]]:
    for package in sorted(release, key=lambda package: package.id):
        for artifact in sorted(release[package], key=lambda artifact: artifact.filename):
            yield layout.path_for(package, artifact.filename), artifact


def _entry(path: PurePosixPath) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(str(path), _EPOCH)
