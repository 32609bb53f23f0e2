"""Where the files of a Maven repository lie, with their checksums and maven-metadata.xml; and such
a repository as plain files, which mvn and Gradle use over file:// and any web server.

https://maven.apache.org/repository/layout.html and
https://maven.apache.org/repositories/metadata.html
"""

from __future__ import annotations

import contextlib
import io
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

from releasekit.ecosystems.directory import misnamed, read_page
from releasekit.ecosystems.maven import CHECKSUMS, PROOF, versions
from releasekit.ecosystems.maven.document import parse_document
from releasekit.ecosystems.shared.artifacts import digests
from releasekit.ecosystems.shared.documents import known_digest
from releasekit.host import durable
from releasekit.model import Published
from releasekit.text.escape import clip

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from releasekit.model import Package
    from releasekit.provenance.bundle import Bundle


METADATA: Final = "maven-metadata.xml"
ALGORITHMS: Final = CHECKSUMS
# Packagings whose main artifact is a jar; any other packaging is also its extension.
# https://maven.apache.org/ref/3.9.9/maven-core/artifact-handlers.html, and the packagings of
# widely used plugins.
_JARS: Final = frozenset(
    (
        *("jar", "maven-plugin", "maven-archetype", "ejb", "bundle", "eclipse-plugin"),
        *("takari-jar", "takari-maven-plugin", "test-jar"),
    )
)


def group_and_artifact(package: Package) -> tuple[str, str]:
    group, _, artifact = package.id.name.partition(":")
    return group, artifact


def artifact_directory(package: Package) -> PurePosixPath:
    """The directory of all versions and the metadata."""
    group, artifact = group_and_artifact(package)
    return PurePosixPath(*group.split("."), artifact)


def version_directory(package: Package) -> PurePosixPath:
    """The directory of the planned version."""
    return artifact_directory(package) / package.version


def path_for(package: Package, filename: str) -> PurePosixPath:
    """The place of a built file; raises PackageError for a name that clients do not look for."""
    stem = prefix(package)
    is_own = filename.startswith((f"{stem}.", f"{stem}-"))
    if not is_own or PurePosixPath(filename).name != filename:
        raise misnamed(package, filename)
    return version_directory(package) / filename


def prefix(package: Package) -> str:
    """What the names of the files of a package begin with."""
    return f"{group_and_artifact(package)[1]}-{package.version}"


def pom_name(package: Package) -> str:
    return f"{prefix(package)}.pom"


def main_names(package: Package) -> tuple[str, ...]:
    """The possible names of the main artifact; empty for a project that is only a POM."""
    return tuple(f"{prefix(package)}.{each}" for each in list_extensions(package.packaging))


def list_extensions(packaging: str) -> tuple[str, ...]:
    """Those that the main artifact may have."""
    if packaging == "pom":
        return ()
    return ("jar",) if packaging in _JARS else (packaging, "jar")


def usual_names(package: Package) -> tuple[str, ...]:
    """Other files that a release may hold: sources and documentation."""
    if package.packaging == "pom":
        return ()
    return tuple(f"{prefix(package)}-{each}.jar" for each in ("sources", "javadoc"))


def is_complete(package: Package, held: Collection[str]) -> bool:
    """Whether a client finds the POM and the main artifact."""
    main = main_names(package)
    return pom_name(package) in held and (not main or any(name in held for name in main))


def is_checksum(filename: str) -> bool:
    return filename.rpartition(".")[2] in ALGORITHMS


def has_checksums(filename: str) -> bool:
    """Clients want none of a signature.

    https://maven.apache.org/resolver/configuration.html (omitChecksumsForExtensions)
    """
    return not filename.endswith(".asc")


def parse_checksum(page: bytes) -> str:
    """The hexadecimal digest in a checksum file, which may name the file too; raises ValueError."""
    word = b"".join(page[:1024].split()[:1]).decode("ascii", "replace").lower()
    if not known_digest("sha1", word):
        raise ValueError("not a checksum")
    return word


_PAGE: Final = """\
<?xml version="1.0" encoding="UTF-8"?>
<metadata>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <versioning>
    <latest>{latest}</latest>
    <release>{release}</release>
    <versions>
{versions}
    </versions>
    <lastUpdated>{updated}</lastUpdated>
  </versioning>
</metadata>
"""


def list_versions(page: bytes) -> tuple[str, ...]:
    """The versions in maven-metadata.xml, in its order; raises ValueError for any other page."""
    root = parse_document(page)
    if root.tag != "metadata":
        raise ValueError(f"its root is <{clip(root.tag, 60)}>, not <metadata>")
    named = root.all("versioning", "versions", "version")
    return tuple(version.text.strip() for version in named)


def add_version(page: bytes | None, package: Package, *, now: datetime) -> bytes | None:
    """`page`, if there is one, with the version of `package`; None if it lists the version. Raises
    ValueError.
    """
    known = list_versions(page) if page is not None else ()
    if package.version in known:
        return None
    return make_metadata(package, {*known, package.version}, now=now)


def make_metadata(package: Package, found: Collection[str], *, now: datetime) -> bytes:
    """maven-metadata.xml with these versions. `latest` and `release` are the highest of them, so
    that a release of an older line does not take their place.
    """
    ordered = versions.sort_versions(found)
    releases = [version for version in ordered if not versions.is_snapshot(version)]
    group, artifact = group_and_artifact(package)
    return _PAGE.format(
        group=escape(group),
        artifact=escape(artifact),
        latest=escape(ordered[-1]),
        release=escape((releases or ordered)[-1]),
        versions="\n".join(f"      <version>{escape(each)}</version>" for each in ordered),
        updated=f"{now:%Y%m%d%H%M%S}",
    ).encode()


def find_fault(page: bytes, checksum: bytes | None, package: Package) -> str:
    """What is wrong with maven-metadata.xml and its sha1, in words; empty for nothing.

    Several servers make that page themselves, and no checksum of it. One that begins as in
    `make_metadata` is that of an upload which was interrupted.
    """
    known: tuple[str, ...] = ()
    with contextlib.suppress(ValueError):
        known = list_versions(page)
    if package.version not in known:
        return "does not list it"
    if checksum is None:
        ours = make_metadata(package, {package.version}, now=datetime.now(UTC))
        head, _, _ = ours.partition(b"<latest>")
        return "has no checksum" if page.startswith(head) else ""
    own = digests(io.BytesIO(page), PROOF)[PROOF].encode()
    return "" if checksum.lower().startswith(own) else "has another checksum"


class MavenDirectory:
    """Implements `directory.Layout`."""

    def path_for(self, package: Package, filename: str) -> PurePosixPath:
        return path_for(package, filename)

    def attestation(self, package: Package, filename: str, bundle: Bundle) -> None:
        """Clients of a repository look for none."""

    def pages(self, root: Path, package: Package) -> Iterable[tuple[PurePosixPath, bytes]]:
        """The checksums of the POM come last: they prove that the rest is there."""
        pom = pom_name(package)
        for name in _list_files(root, package):
            if name != pom:
                yield from _make_checksums(root, version_directory(package) / name)
        page = artifact_directory(package) / METADATA
        yield page, _read_or_make_metadata(root, package)
        yield from _make_checksums(root, page)
        if durable.is_file(root / version_directory(package) / pom):
            yield from _make_checksums(root, version_directory(package) / pom)

    def lookup(self, root: Path, package: Package) -> Published | None:
        where = root / version_directory(package)
        files = {
            name: f"sha1:{parse_checksum(page)}"
            for name in _list_files(root, package)
            if (page := read_page(where / f"{name}.sha1")) is not None
        }
        if not files:
            return None
        complete = is_complete(package, files)
        return Published(files=files, complete=complete, url=f"{where.as_uri()}/")


def _list_files(root: Path, package: Package) -> list[str]:
    return [
        name
        for name in durable.names(root / version_directory(package))
        if name.startswith(prefix(package)) and not is_checksum(name)
    ]


def _make_checksums(root: Path, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, bytes]]:
    with durable.reading(root / path) as file:
        found = digests(file, *ALGORITHMS)
    for algorithm, value in found.items():
        yield path.with_name(f"{path.name}.{algorithm}"), value.encode()


def _read_or_make_metadata(root: Path, package: Package) -> bytes:
    """The page as it is, unless versions have come or gone since it was written."""
    home = root / artifact_directory(package)
    artifact = group_and_artifact(package)[1]
    found = {
        version
        for version in durable.directories(home)
        if durable.is_file(home / version / f"{artifact}-{version}.pom")
    } | {package.version}
    page = read_page(home / METADATA)
    with contextlib.suppress(ValueError):
        if page is not None and set(list_versions(page)) == found:
            return page
    return make_metadata(package, found, now=datetime.now(UTC))
