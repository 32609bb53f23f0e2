"""A Maven 2 repository as plain files: mvn and Gradle use it over file:// and any web server."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from releasekit.ecosystems.directory import read_page
from releasekit.ecosystems.maven import layout, metadata
from releasekit.ecosystems.shared.artifacts import digests
from releasekit.host import durable
from releasekit.model import Published

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path, PurePosixPath

    from releasekit.model import Package
    from releasekit.provenance.bundle import Bundle


class MavenDirectory:
    """Implements `directory.Layout`."""

    def path_for(self, package: Package, filename: str) -> PurePosixPath:
        return layout.path_for(package, filename)

    def attestation(self, package: Package, filename: str, bundle: Bundle) -> None:
        """No client of a repository looks for one."""

    def pages(self, root: Path, package: Package) -> Iterable[tuple[PurePosixPath, bytes]]:
        """The checksums of the POM come last: they say that the rest is there."""
        pom = layout.pom_name(package)
        for name in _files(root, package):
            if name != pom:
                yield from _checksums(root, layout.version_directory(package) / name)
        page = layout.artifact_directory(package) / layout.METADATA
        yield page, _metadata(root, package)
        yield from _checksums(root, page)
        if durable.is_file(root / layout.version_directory(package) / pom):
            yield from _checksums(root, layout.version_directory(package) / pom)

    def lookup(self, root: Path, package: Package) -> Published | None:
        where = root / layout.version_directory(package)
        files = {
            name: f"sha1:{layout.parse_checksum(page)}"
            for name in _files(root, package)
            if (page := read_page(where / f"{name}.sha1")) is not None
        }
        if not files:
            return None
        complete = layout.is_complete(package, files)
        return Published(files=files, complete=complete, url=where.as_uri() + "/")


def _files(root: Path, package: Package) -> list[str]:
    found = durable.names(root / layout.version_directory(package))
    ours = layout.prefix(package)
    return [name for name in found if name.startswith(ours) and not layout.is_checksum(name)]


def _checksums(root: Path, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, bytes]]:
    with durable.reading(root / path) as file:
        found = digests(file, *layout.ALGORITHMS)
    for algorithm, value in found.items():
        yield path.with_name(f"{path.name}.{algorithm}"), value.encode()


def _metadata(root: Path, package: Package) -> bytes:
    """The page as it is, unless versions have come or gone since it was written."""
    home = root / layout.artifact_directory(package)
    artifact = layout.group_and_artifact(package)[1]
    found = {
        version
        for version in durable.directories(home)
        if durable.is_file(home / version / f"{artifact}-{version}.pom")
    } | {package.version}
    page = read_page(home / layout.METADATA)
    with contextlib.suppress(ValueError):
        if page is not None and set(metadata.listed_versions(page)) == found:
            return page
    return metadata.new_page(package, found, now=datetime.now(UTC))
