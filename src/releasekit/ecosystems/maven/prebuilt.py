"""Files of Maven packages that another job built: POMs, jars and others.

https://maven.apache.org/repository/layout.html
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from releasekit.ecosystems.interface import Contained
from releasekit.ecosystems.maven import layout, versions
from releasekit.ecosystems.maven.discover import ECOSYSTEM
from releasekit.ecosystems.maven.document import MAX_BYTES, parse_document
from releasekit.ecosystems.maven.pom import parse_pom
from releasekit.ecosystems.shared.archives import BAD_ZIP, opened_entry, opened_zip
from releasekit.errors import ConfigError, PackageError
from releasekit.model import Dependency, PackageId
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Built, Into
    from releasekit.model import Package

    _Complete = Callable[[Sequence[Package], Into], Awaitable[Mapping[PackageId, Built]]]

# maven-archiver writes a directory for each package in the file.
# https://maven.apache.org/shared/maven-archiver/#pom-properties-content
_PROPERTIES: Final = "/pom.properties"
_ARCHIVER: Final = "META-INF/maven/"
_MAX_PROPERTIES_BYTES: Final = 64 * 1024


class MavenFiles:
    """Implements `interface.Prebuilt`: a release has a POM, a main artifact and attached files."""

    algorithms = layout.ALGORITHMS

    def __init__(self, packages: Sequence[Package], complete: _Complete) -> None:
        self._packages = packages
        self._complete = complete

    def contained(self, file: IO[bytes], path: Path) -> Contained:
        if path.suffix == ".pom":
            return self._read_pom(file, path)
        inside: list[tuple[str, str]] = []
        if path.suffix != ".module":
            try:
                inside = list(_read_coordinates(file))
            except BAD_ZIP as error:
                raise PackageError(
                    f"{path}: not a readable archive ({error})", problem=Problem.NOT_A_PACKAGE
                ) from error
        # A jar may hold the coordinates of others, too; its name decides.
        for name, version in inside:
            if path.name.startswith(f"{name.partition(':')[2]}-{version}"):
                return Contained(name=name, version=version)
        return self._match_name(path)

    def admits(self, requirement: str, version: str) -> bool:
        """A version that is not a range is only a preference, as it is for built packages."""
        return not versions.is_range(requirement) or versions.contains(requirement, version)

    async def complete(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        return await self._complete(packages, into)

    def _read_pom(self, file: IO[bytes], path: Path) -> Contained:
        try:
            pom = parse_pom(parse_document(file.read(MAX_BYTES + 1)), path)
        except (ValueError, ConfigError) as error:
            raise PackageError(
                f"{path}: it is not a POM ({error})", problem=Problem.NOT_A_PACKAGE
            ) from error
        group, _ = pom.key
        version = pom.version or (pom.parent.version if pom.parent else "")
        if "${" in f"{group}:{pom.artifact}:{version}":
            raise PackageError(
                f"{path}: its coordinates are {group}:{pom.artifact}:{version}, with expressions",
                hint="Take it out of `dist`: one that users can read is made of the sources.",
                problem=Problem.NOT_A_PACKAGE,
            )
        if path.name != f"{pom.artifact}-{version}.pom":
            raise PackageError(
                f"{path} is {group}:{pom.artifact} {version}, which is published as "
                f"{pom.artifact}-{version}.pom",
                problem=Problem.NOT_A_PACKAGE,
            )
        here = {package.id.name for package in self._packages}
        needs = tuple(
            Dependency(on=PackageId(ECOSYSTEM, name), requirement=reference.version)
            for reference in pom.references
            if reference.needed and (name := f"{reference.group}:{reference.artifact}") in here
        )
        return Contained(name=f"{group}:{pom.artifact}", version=version, dependencies=needs)

    def _match_name(self, path: Path) -> Contained:
        """By the name of the file, and the directories in which a repository has it."""
        fitting = [
            package
            for package in self._packages
            if path.name.startswith((f"{layout.prefix(package)}.", f"{layout.prefix(package)}-"))
        ]
        longest = max((len(layout.prefix(package)) for package in fitting), default=0)
        fitting = [package for package in fitting if len(layout.prefix(package)) == longest]
        if len(fitting) > 1:
            where = path.parent.as_posix()
            fitting = [p for p in fitting if where.endswith(str(layout.version_directory(p)))]
        if len(fitting) != 1:
            raise PackageError(
                f"{path}: neither its name nor a pom.properties in it says which package of this "
                "workspace it is of",
                hint="Name it ARTIFACT-VERSION, as Maven does; where groups share it, put it into "
                "GROUP/ARTIFACT/VERSION.",
                problem=Problem.NOT_A_PACKAGE,
            )
        return Contained(name=fitting[0].id.name, version=fitting[0].version)


def _read_coordinates(file: IO[bytes]) -> Iterator[tuple[str, str]]:
    """Name and version in each pom.properties of an archive."""
    with opened_zip(file) as archive:
        for entry in archive.infolist():
            if entry.filename.startswith(_ARCHIVER) and entry.filename.endswith(_PROPERTIES):
                with opened_entry(archive, entry) as member:
                    text = member.read(_MAX_PROPERTIES_BYTES).decode("latin-1")
                pairs = (line.partition("=") for line in text.splitlines())
                properties = {key.strip(): value.strip() for key, _, value in pairs}
                name = f"{properties.get('groupId')}:{properties.get('artifactId')}"
                yield name, properties.get("version", "")
