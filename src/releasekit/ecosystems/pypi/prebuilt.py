"""Wheels and source distributions that were built elsewhere.

https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

from __future__ import annotations

import asyncio
from typing import IO, TYPE_CHECKING

from packaging.metadata import parse_email
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from releasekit.ecosystems.interface import Contained
from releasekit.ecosystems.pypi.build import DIGESTS
from releasekit.ecosystems.pypi.discover import ECOSYSTEM
from releasekit.ecosystems.pypi.distribution import metadata_of
from releasekit.ecosystems.pypi.simple_index import release_of
from releasekit.ecosystems.shared.artifacts import copied
from releasekit.errors import BuildFailed, PackageError
from releasekit.model import Dependency, DependencyKind, PackageId
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Built, Into
    from releasekit.ecosystems.pypi.ecosystem import PyPIWorkspace
    from releasekit.model import Package


class PythonFiles:
    """Implements `interface.Prebuilt`: a release has an sdist, and a wheel at least."""

    algorithms = DIGESTS

    def __init__(self, workspace: PyPIWorkspace) -> None:
        self._workspace = workspace

    def contained(self, file: IO[bytes], path: Path) -> Contained:
        release = release_of(path.name)
        if release is None:
            raise PackageError(
                f"{path}: this is not the name of a wheel or an sdist",
                problem=Problem.NOT_A_PACKAGE,
            )
        try:
            raw, _ = parse_email(metadata_of(file, str(path)))
            name, version = canonicalize_name(raw.get("name", "")), Version(raw.get("version", ""))
            needs = tuple(self._needs(raw.get("requires_dist", ())))
        except ValueError as error:  # of packaging, and for numbers of thousands of digits
            # A requirement's says in two more lines where it is wrong.
            reason = str(error).splitlines()[0]
            raise PackageError(
                f"{path}: its metadata cannot be used: {reason}", problem=Problem.NOT_A_PACKAGE
            ) from error
        if (name, version) != release[:2]:
            raise PackageError(
                f"{path}: its metadata says {name} {version}, its name {release[0]} {release[1]}",
                problem=Problem.NOT_A_PACKAGE,
            )
        return Contained(name=name, version=self._spelled(name, version), dependencies=needs)

    def admits(self, requirement: str, version: str) -> bool:
        return SpecifierSet(requirement).contains(version, prereleases=True)

    async def complete(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        return {package.id: await self._complete(package, into) for package in packages}

    async def _complete(self, package: Package, into: Into) -> Built:
        wheels = [each for each in package.prebuilt if each.filename.endswith(".whl")]
        if not wheels or len(wheels) == len(package.prebuilt):
            return (await self._workspace.build([package], into))[package.id]
        built = await asyncio.to_thread(copied, package.prebuilt, into(package), *DIGESTS)
        if not isinstance(built, BuildFailed):
            self._workspace.built(package, built)
        return built

    def _spelled(self, name: str, version: Version) -> str:
        """As it is planned, if that is the same version: 1.0 and 1.0.0 are."""
        planned = [each.version for each in self._workspace.packages if each.id.name == name]
        return planned[0] if planned and _same(planned[0], version) else str(version)

    def _needs(self, requires: Sequence[str]) -> Iterator[Dependency]:
        here = {package.id.name for package in self._workspace.packages}
        for text in requires:
            wanted = Requirement(text)
            name = canonicalize_name(wanted.name)
            if name in here and wanted.url is None:
                optional = wanted.marker is not None and "extra" in str(wanted.marker)
                yield Dependency(
                    on=PackageId(ECOSYSTEM, name),
                    kind=DependencyKind.OPTIONAL if optional else DependencyKind.RUNTIME,
                    requirement=str(wanted.specifier),
                    soft=optional,
                )


def _same(planned: str, version: Version) -> bool:
    try:
        return Version(planned) == version
    except InvalidVersion:
        return False
