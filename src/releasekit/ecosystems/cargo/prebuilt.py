"""Crates that were packaged elsewhere."""

from __future__ import annotations

import asyncio
import re
from typing import IO, TYPE_CHECKING, Any, Final

from releasekit.ecosystems.cargo.crate_file import read_crate
from releasekit.ecosystems.cargo.discover import ECOSYSTEM
from releasekit.ecosystems.cargo.requirement import Requirement
from releasekit.ecosystems.interface import Contained
from releasekit.ecosystems.shared.artifacts import copied
from releasekit.ecosystems.shared.documents import table_in
from releasekit.ecosystems.shared.semver import BUILD, NUMBER, PRE, Version
from releasekit.errors import PackageError
from releasekit.model import Dependency, PackageId
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.cargo.ecosystem import CargoWorkspace
    from releasekit.ecosystems.interface import Built, Into
    from releasekit.model import Package

_NAME: Final = re.compile(
    r"(?P<name>[\w-]+?)"
    rf"-(?P<version>{NUMBER}\.{NUMBER}\.{NUMBER}(?:-{PRE})?(?:\+{BUILD})?)\.crate"
)
_TABLES: Final = ("dependencies", "build-dependencies", "dev-dependencies")


class Crates:
    """Implements `interface.Prebuilt`: a release is one crate."""

    # The one digest that cargo's indexes know.
    algorithms = ("sha256",)

    def __init__(self, workspace: CargoWorkspace) -> None:
        self._workspace = workspace

    def contained(self, file: IO[bytes], path: Path) -> Contained:
        match = _NAME.fullmatch(path.name)
        if match is None:
            raise PackageError(
                f"{path}: a crate is named NAME-VERSION.crate", problem=Problem.NOT_A_PACKAGE
            )
        name, version = match["name"], match["version"]
        try:
            manifest = read_crate(file, name, version).manifest
        except PackageError as error:
            raise PackageError(f"{path}: {error}", problem=Problem.NOT_A_PACKAGE) from error
        return Contained(
            name=name, version=version, dependencies=tuple(self._needs(name, manifest))
        )

    def admits(self, requirement: str, version: str) -> bool:
        return Requirement.parse(requirement).matches(Version.parse(version))

    async def complete(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        return {
            package.id: await asyncio.to_thread(
                copied, package.prebuilt, into(package), *self.algorithms
            )
            for package in packages
        }

    def _needs(self, name: str, manifest: Mapping[str, Any]) -> Iterator[Dependency]:
        """Of what its sources need of the workspace: there are no paths in a crate, so another
        crate of such a name may be meant.
        """
        edges = {
            edge.on.name
            for package in self._workspace.packages
            if package.id.name == name
            for edge in package.dependencies
        }
        for tables in (manifest, *table_in(manifest, "target").values()):
            for table in _TABLES:
                for key, value in table_in(tables, table).items():
                    entry = {"version": value} if isinstance(value, str) else value
                    if (on := str(entry.get("package", key))) in edges:
                        requirement = str(entry.get("version", "*"))
                        yield Dependency(on=PackageId(ECOSYSTEM, on), requirement=requirement)
