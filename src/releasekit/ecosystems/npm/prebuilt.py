"""Tarballs that were packed elsewhere."""

from __future__ import annotations

import asyncio
from typing import IO, TYPE_CHECKING, Final

from releasekit.ecosystems.interface import Contained
from releasekit.ecosystems.npm.discover import ECOSYSTEM
from releasekit.ecosystems.npm.ecosystem import DIGESTS, filename_of
from releasekit.ecosystems.npm.manifest import declared
from releasekit.ecosystems.npm.reference import Range, Reference
from releasekit.ecosystems.npm.tarball import read_tarball
from releasekit.ecosystems.shared.artifacts import copied
from releasekit.ecosystems.shared.semver import Version
from releasekit.errors import PackageError
from releasekit.model import Dependency, DependencyKind, PackageId
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Built, Into
    from releasekit.ecosystems.npm.ecosystem import NpmWorkspace
    from releasekit.model import Package

_KINDS: Final = {
    "dependencies": DependencyKind.RUNTIME,
    "optionalDependencies": DependencyKind.OPTIONAL,
    "peerDependencies": DependencyKind.PEER,
}


class Tarballs:
    """Implements `interface.Prebuilt`: a release is one tarball."""

    algorithms = DIGESTS

    def __init__(self, workspace: NpmWorkspace) -> None:
        self._workspace = workspace

    def contained(self, file: IO[bytes], path: Path) -> Contained:
        document = read_tarball(file, str(path)).manifest
        name, version = str(document.get("name", "")), str(document.get("version", ""))
        if path.name != filename_of(name, version):
            raise PackageError(
                f"{path} is npm:{name} {version}, which is published as "
                f"{filename_of(name, version)}",
                hint="Name it so, as `npm pack` does.",
                problem=Problem.NOT_A_PACKAGE,
            )
        needs = tuple(self._needs(document, path))
        return Contained(name=name, version=version, dependencies=needs)

    def admits(self, requirement: str, version: str) -> bool:
        # Nobody pins `*` in a tarball any more, and npm takes no prerelease for it.
        return Version.parse(version) in Range.parse(requirement)

    async def complete(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        return {
            package.id: await asyncio.to_thread(copied, package.prebuilt, into(package), *DIGESTS)
            for package in packages
        }

    def _needs(self, document: Mapping[str, object], path: Path) -> Iterator[Dependency]:
        for entry in declared(document, path):
            reference = Reference.parse(entry.key, entry.spec)
            if entry.field == "devDependencies":
                continue
            if reference.kind in {"workspace", "catalog", "path"}:
                raise PackageError(
                    f"{path}: {entry.field}.{entry.key} is {entry.spec!r}, which nobody can "
                    "install",
                    hint="Pack it with the tool of its workspace, `pnpm pack` or `yarn pack`, "
                    "which writes the version there.",
                    problem=Problem.NOT_A_PACKAGE,
                )
            if reference.kind == "range" and reference.name in self._workspace.found.by_name:
                kind = _KINDS[entry.field]
                yield Dependency(
                    on=PackageId(ECOSYSTEM, reference.name),
                    kind=kind,
                    requirement=reference.wanted,
                    soft=kind is not DependencyKind.RUNTIME,
                )
