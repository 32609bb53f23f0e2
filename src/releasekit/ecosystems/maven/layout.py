"""Where the files of a Maven repository lie, and what lies beside them.

https://maven.apache.org/repository/layout.html
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.directory import misnamed
from releasekit.ecosystems.maven import CHECKSUMS
from releasekit.ecosystems.shared.documents import known_digest

if TYPE_CHECKING:
    from collections.abc import Collection

    from releasekit.model import Package

METADATA: Final = "maven-metadata.xml"
ALGORITHMS: Final = CHECKSUMS
# Packagings whose main artifact is a jar; any other one is taken for an extension.
# https://maven.apache.org/ref/3.9.9/maven-core/artifact-handlers.html, and the packagings of
# widely used plugins.
_JARS: Final = frozenset(
    (
        *("jar", "maven-plugin", "maven-archetype", "ejb", "bundle", "eclipse-plugin"),
        *("takari-jar", "takari-maven-plugin", "test-jar"),
    )
)


def group_and_artifact(package: Package) -> tuple[str, str]:
    """Group and artifact."""
    group, _, artifact = package.id.name.partition(":")
    return group, artifact


def artifact_directory(package: Package) -> PurePosixPath:
    """The directory that holds all its versions, and the metadata."""
    group, artifact = group_and_artifact(package)
    return PurePosixPath(*group.split("."), artifact)


def version_directory(package: Package) -> PurePosixPath:
    """The directory of the planned version."""
    return artifact_directory(package) / package.version


def path_for(package: Package, filename: str) -> PurePosixPath:
    """Where a built file goes. Raises PackageError for one that no client would look for."""
    stem = prefix(package)
    named_so = filename.startswith((f"{stem}.", f"{stem}-"))
    if not named_so or PurePosixPath(filename).name != filename:
        raise misnamed(package, filename)
    return version_directory(package) / filename


def prefix(package: Package) -> str:
    """What the names of its files begin with."""
    return f"{group_and_artifact(package)[1]}-{package.version}"


def pom_name(package: Package) -> str:
    return f"{prefix(package)}.pom"


def main_names(package: Package) -> tuple[str, ...]:
    """The main artifact by its possible names; nothing for a project that is only a POM."""
    if package.packaging == "pom":
        return ()
    extensions = dict.fromkeys(
        ("jar",) if package.packaging in _JARS else (package.packaging, "jar")
    )
    return tuple(f"{prefix(package)}.{extension}" for extension in extensions)


def usual_names(package: Package) -> tuple[str, ...]:
    """What a release may hold besides: sources and documentation."""
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
    """Whether clients look for checksums beside it; a signature proves more than they would.

    https://maven.apache.org/resolver/configuration.html (omitChecksumsForExtensions)
    """
    return not filename.endswith(".asc")


def parse_checksum(page: bytes) -> str:
    """The hexadecimal digest in such a file, which may name the file too; raises ValueError."""
    word = b"".join(page[:1024].split()[:1]).decode("ascii", "replace").lower()
    if not known_digest("sha1", word):
        raise ValueError("not a checksum")
    return word
