"""Files that were built elsewhere, as the `dist` input names them: held against the packages of the
workspace, and put in the place of what would be built.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from copy import copy
from typing import TYPE_CHECKING

from msgspec import Struct, field

from releasekit.ecosystems.dist_files import collect_files, dist_error, refuse_other_bytes
from releasekit.ecosystems.shared.artifacts import digests
from releasekit.errors import PackageError, PlanError, did_you_mean
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.model import Artifact, Dependency, Package, PackageId
from releasekit.problems import Problem
from releasekit.text.commands import spell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.config.declaration import EcosystemDeclaration
    from releasekit.config.package_filter import PackageFilter
    from releasekit.config.values import Dist
    from releasekit.ecosystems.dist_files import DistFile
    from releasekit.ecosystems.interface import Built, Contained, Into, Prebuilt, Target, Workspace

_HINT = "Build it again from these sources, or take it out of `dist`."


async def with_prebuilt(
    targets: Mapping[str, Target],
    dist: Sequence[Dist],
    about: PackageFilter,
    ecosystems: Mapping[str, EcosystemDeclaration],
) -> dict[str, Target]:
    """`targets` whose packages have the files that `dist` holds of them.

    Raises ConfigError and PlanError for the first file that cannot be published as it is.
    """
    if not dist:
        return dict(targets)
    return await asyncio.to_thread(_with_prebuilt, targets, dist, about, ecosystems)


def _with_prebuilt(
    targets: Mapping[str, Target],
    dist: Sequence[Dist],
    about: PackageFilter,
    ecosystems: Mapping[str, EcosystemDeclaration],
) -> dict[str, Target]:
    files: defaultdict[str, list[DistFile]] = defaultdict(list)
    for file in collect_files(dist, ecosystems):
        files[file.ecosystem].append(file)
    for place in dist:
        owner = PackageId.parse(place.owner)
        if owner.name and owner.ecosystem in targets:
            names = [each.id.name for each in targets[owner.ecosystem].workspace.packages]
            if owner.name not in names:
                raise dist_error(
                    f"{place.label} is not a package here{did_you_mean(owner.name, names)}",
                    f"{spell('plan')} lists them.",
                )
    completed = dict(targets)
    for name, target in targets.items():
        if not files[name] or not about.has_ecosystem(name):
            continue
        if target.prebuilt is None:
            raise dist_error(
                f"{files[name][0].path}: nothing is built for {name}, so there is no file to bring",
                "Take it out of `dist`.",
            )
        workspace = target.workspace
        found = _Found(name, target.prebuilt, workspace.packages)
        for file in files[name]:
            found.add(file)
        completed[name] = copy(target)
        completed[name].workspace = CompletedWorkspace(
            tuple(map(found.complete, workspace.packages)), workspace, target.prebuilt
        )
    return completed


class CompletedWorkspace(Struct, frozen=True):
    """Implements `interface.Workspace` around another one, which builds what did not come."""

    packages: tuple[Package, ...]
    around: Workspace
    prebuilt: Prebuilt

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        return self.around.pin(manifest, versions)

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        return self.around.batches(packages)

    async def build(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        brought = [package for package in packages if package.prebuilt]
        others = [package for package in packages if not package.prebuilt]
        built: dict[PackageId, Built] = {}
        if others:
            built |= await self.around.build(others, into)
        if brought:
            built |= await self.prebuilt.complete(brought, into)
        return built


class _Found(Struct):
    """The files of one ecosystem, by package and filename, and what they need."""

    ecosystem: str
    prebuilt: Prebuilt
    packages: Sequence[Package]
    files: defaultdict[str, dict[str, Artifact]] = field(default_factory=lambda: defaultdict(dict))
    needs: defaultdict[str, list[Dependency]] = field(default_factory=lambda: defaultdict(list))

    def complete(self, package: Package) -> Package:
        """With its files, and with what these need beyond its manifest."""
        if package.prebuilt:  # which its ecosystem has found
            return package
        files = self.files.get(package.id.name, {})
        known = {need.on for need in (*package.dependencies, *package.elsewhere)} | {package.id}
        more = {need.on: need for need in self.needs[package.id.name] if need.on not in known}
        return replace(
            package,
            prebuilt=tuple(files[name] for name in sorted(files)),
            dependencies=(*package.dependencies, *more.values()),
        )

    def add(self, file: DistFile) -> None:
        contained, artifact = self._inspect(file)
        package = self._find_package(file, contained)
        refuse_other_bytes(file, artifact.sha256)
        self._refuse_conflict(file, contained, package)
        first = self.files[package.id.name].setdefault(artifact.filename, artifact)
        if first.sha256 != artifact.sha256:
            raise _misfit(
                f"{file.path} and {first.path} are two files of one name with different bytes",
                "Keep the one that is to be published.",
            )
        self.needs[package.id.name] += contained.dependencies

    def _inspect(self, file: DistFile) -> tuple[Contained, Artifact]:
        try:
            with durable.reading(file.path) as data:
                contained = self.prebuilt.contained(data, file.path)
                data.seek(0)
                found = digests(data, *self.prebuilt.algorithms)
                size = data.tell()
        except OSError as error:
            raise dist_error(f"{file.path}: cannot be read ({error.strerror})") from error
        except PackageError as error:
            raise _misfit(str(error), error.hint or _HINT) from error
        return contained, Artifact(path=file.path, size=size, digests=found)

    def _find_package(self, file: DistFile, contained: Contained) -> Package:
        """The one it is of; raises PlanError where that is not planned."""
        what = f"{file.path} is {self.ecosystem}:{contained.name} {contained.version}"
        by_name = {package.id.name: package for package in self.packages}
        package = by_name.get(contained.name)
        if package is None:
            near = did_you_mean(contained.name, by_name)
            raise _misfit(f"{what}, and no package here has that name{near}")
        if ":" in file.owner and file.owner != str(package.id):
            raise _misfit(
                f"{what}, and releasekit.toml says that its directory is for {file.owner}",
                "Move it, or correct the entry in [dist].",
            )
        if package.unpublishable:
            raise _misfit(
                f"{what}, which is never published: {package.unpublishable}",
                "Take it out of `dist`.",
            )
        if package.prebuilt:
            raise _misfit(f"{what}, whose files {package.directory} has", "Take it out of `dist`.")
        if package.version != contained.version:
            raise _misfit(f"{what}, but {package.version} is planned")
        return package

    def _refuse_conflict(self, file: DistFile, contained: Contained, package: Package) -> None:
        """What its manifest takes from the registry on purpose, it may too."""
        versions = {p.id: p.version for p in self.packages if not p.unpublishable}
        for need in package.elsewhere:
            versions.pop(need.on, None)
        for need in contained.dependencies:
            version = versions.get(need.on)
            try:
                fits = version is None or self.prebuilt.admits(need.requirement, version)
            except ValueError as error:
                raise _misfit(f"{file.path}: it requires {need.on.name}: {error}") from error
            if not fits:
                raise _misfit(
                    f"{file.path} requires {need.on.name} {need.requirement}, but the workspace "
                    f"has {need.on.name} {version}"
                )


def _misfit(message: str, hint: str = _HINT) -> PlanError:
    return PlanError(message, hint=hint, problem=Problem.DIST_DOES_NOT_FIT)
