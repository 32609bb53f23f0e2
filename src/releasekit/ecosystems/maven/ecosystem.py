"""The Ecosystem of Maven packages: discovery, pins and builds behind one door."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from releasekit.aio import Resource, gather_all
from releasekit.ecosystems.maven import discover, layout, pin, tools
from releasekit.ecosystems.maven.build import Builder, overlaid
from releasekit.ecosystems.maven.document import parse_document
from releasekit.ecosystems.maven.pom import parse_pom
from releasekit.ecosystems.maven.running import RunningBuild
from releasekit.ecosystems.maven.signing import Signer
from releasekit.ecosystems.maven.workspace import load_projects
from releasekit.ecosystems.shared.packages import batched, unique_by_name
from releasekit.errors import BuildFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Built, Into, Services
    from releasekit.ecosystems.maven import Options
    from releasekit.ecosystems.maven.workspace import PomProject
    from releasekit.errors import ConfigError
    from releasekit.model import Package, PackageId


class Maven(Resource):
    """Implements `interface.Ecosystem`; its group has a task for each reactor that is built."""

    def __init__(self, config: Config, options: Options, services: Services) -> None:
        super().__init__(together=True)
        self.config = config
        self.options = options
        self.services = services

    async def discover(self, root: Path) -> MavenWorkspace:
        found = await asyncio.to_thread(load_projects, root, self.options)
        projects, twins = unique_by_name(
            found, cure="take its reactor out of maven.reactors", private=discover.unpublishable
        )
        return MavenWorkspace(
            packages=tuple(discover.packages(projects, twins)),
            projects=projects,
            root=root,
            maven=self,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MavenWorkspace:
    """Implements `interface.Workspace`; `projects` are all there are, by name."""

    packages: tuple[Package, ...]
    projects: Mapping[str, PomProject]
    root: Path
    maven: Maven
    running: dict[Path, RunningBuild] = field(default_factory=dict, compare=False)

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        key = parse_pom(parse_document(manifest.encode()), self.root / "pom.xml").key
        by_key = {project.pom.key: project for project in self.projects.values()}
        return pin.pin(manifest, by_key[key], versions, self.maven.config.pin)

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        """One for each reactor."""
        return batched(packages, lambda package: self.projects[package.id.name].top)

    def singly(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        """Each alone, though one mvn builds those of a reactor: they are there one after the other.

        Not where manifests are pinned, which lasts as long as the build of a batch; nor where there
        is one slot, because mvn would run on beside what is done with each.
        """
        config, group = self.maven.config, self.maven.group
        if config.pin == "exact" or config.build_concurrency == 1 or not group.is_open:
            return self.batches(packages)
        for batch in self.batches(packages):
            wanted = [each for each in batch if not each.prebuilt or self._lacks(each)]
            if len(wanted) > 1:
                builder = self._builder(wanted)
                self.running[builder.top] = RunningBuild(builder, wanted, group)
        return [[package] for package in packages]

    def missing_tool(self, packages: Sequence[Package]) -> ConfigError | None:
        """As `interface.Target` has it."""
        services = self.maven.services
        return tools.missing_tool(
            packages, self.maven.options, services.processes, services.environment
        )

    async def build(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        return await self._signed(packages, await self._built(packages, into))

    async def completed(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        """`packages` with their prebuilt files; Maven builds those that lack any."""
        lacking = [package for package in packages if self._lacks(package)]
        built = await self._built(lacking, into) if lacking else {}
        for package in packages:
            made = built.get(package.id, ())
            if not isinstance(made, BuildFailed):
                built[package.id] = await asyncio.to_thread(overlaid, package, into(package), made)
        return await self._signed(packages, built)

    def _lacks(self, package: Package) -> bool:
        options, names = self.maven.options, {each.filename for each in package.prebuilt}
        sources, javadoc = layout.usual_names(package) or ("", "")
        wanted = {sources} if options.sources else set()
        wanted |= {javadoc} if options.javadoc else set()
        return not layout.is_complete(package, names) or not wanted - {""} <= names

    async def _built(self, packages: Sequence[Package], into: Into) -> dict[PackageId, Built]:
        builder = self._builder(packages)
        running = self.running.get(builder.top)
        try:
            if running is not None and len(packages) == 1 and running.has(packages[0]):
                return {packages[0].id: await running.take(packages[0], into)}
            return await builder.build(packages, into)
        except BuildFailed as error:
            return {package.id: error for package in packages}

    def _builder(self, packages: Sequence[Package]) -> Builder:
        maven, top = self.maven, self.projects[packages[0].id.name].top
        return Builder(self.root, top, self.projects, maven.config, maven.options, maven.services)

    async def _signed(
        self, packages: Sequence[Package], built: Mapping[PackageId, Built]
    ) -> Mapping[PackageId, Built]:
        config, options, services = self.maven.config, self.maven.options, self.maven.services
        if not options.sign:
            return built
        signer = Signer(services.processes, options.sign, concurrency=config.build_concurrency)
        signed = await gather_all(
            self._sign(signer, package, built[package.id]) for package in packages
        )
        return {package.id: each for package, each in zip(packages, signed, strict=True)}

    async def _sign(self, signer: Signer, package: Package, built: Built) -> Built:
        if isinstance(built, BuildFailed):
            return built
        try:
            return await signer.sign(package, built)
        except BuildFailed as error:
            return error
