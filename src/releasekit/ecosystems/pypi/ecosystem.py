"""The Ecosystem of Python packages: discovery, pins and builds behind one door."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from releasekit.aio import GroupClosed, Resource, gather_all
from releasekit.config.package_filter import chosen, will_build
from releasekit.ecosystems.pypi import discover, manifest, pin, sources
from releasekit.ecosystems.pypi.build import Builder, InRepoWheels
from releasekit.ecosystems.pypi.distribution import metadata_told
from releasekit.ecosystems.pypi.environment import Environments, Installer, Requirements
from releasekit.ecosystems.shared import artifacts
from releasekit.errors import BuildFailed, CommandFailed
from releasekit.model import Action, PackageId
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.config.values import PinMode
    from releasekit.ecosystems.interface import Built, Into, Services
    from releasekit.ecosystems.pypi import Options
    from releasekit.ecosystems.pypi.manifest import Limits, PyProject
    from releasekit.model import Artifact, Package, PlannedPackage


class PyPI(Resource):
    """Implements `interface.Ecosystem`; all its workspaces are built in the same environments."""

    def __init__(self, config: Config, options: Options, services: Services) -> None:
        super().__init__()
        self._config = config
        self._options = options
        self._processes = services.processes
        self._logs = services.logs
        self._preparing = asyncio.Lock()
        self._builder: Builder | None = None

    async def discover(self, root: Path) -> PyPIWorkspace:
        found, twins = await asyncio.to_thread(self._read, root)
        wanted = self._wanted_most(found) if will_build(self._config, "pypi") else None
        if wanted is not None:
            _ = self.group.start(self._made_early(*wanted))
        wheels = InRepoWheels(self._prepared)
        limit = asyncio.Semaphore(self._config.build_concurrency)

        dynamic = {
            name
            for name, project in found.items()
            if project.dynamic & manifest.COMPUTED and not project.unpublishable
        }
        told = await asyncio.to_thread(metadata_told, self._config.dist, dynamic)

        async def completed(project: PyProject) -> PyProject:
            if project.name not in dynamic:
                return project
            if project.name in told:
                return manifest.with_computed_fields(project, told[project.name])
            async with limit:
                builder = await self._prepared()
                needed = await wheels.needed_by(project, found)
                metadata = await builder.metadata(project, wheels=needed)
                return manifest.with_computed_fields(project, metadata)

        complete = discover.between_tags(
            await gather_all(map(completed, found.values())),
            lambda project: chosen(self._config, PackageId("pypi", project.name)),
        )
        named = {project.name: project for project in complete}
        projects = {name: discover.settled(project, named) for name, project in named.items()}
        return PyPIWorkspace(
            packages=tuple(discover.packages(projects, twins)),
            projects=projects,
            pins=self._config.pin,
            builder=self._prepared,
            wheels=wheels,
        )

    def _read(self, root: Path) -> tuple[Mapping[str, PyProject], Sequence[PyProject]]:
        """What the manifests say, before any build hook is asked."""
        read, twins = discover.projects(root, self._options)
        sources.check_sources(read, root, self._options)
        found = {name: discover.settled(project, read) for name, project in read.items()}
        discover.check_build_order(found)
        return found, twins

    def _wanted_most(self, found: Mapping[str, PyProject]) -> tuple[tuple[str, ...], Limits] | None:
        """What most of the packages of this run are built with, as far as it can be installed
        before anything is built.
        """
        wanted = Counter(
            (project.build_system.requires, project.limits)
            for project in found.values()
            if not project.unpublishable
            and chosen(self._config, PackageId("pypi", project.name))
            and not discover.build_closure(project, found)
        )
        return max(wanted, key=wanted.__getitem__, default=None)

    async def _made_early(self, wanted: Sequence[str], limits: Limits) -> None:
        """An environment, while the plan is made; where that fails, its first build says why."""
        with suppress(BuildFailed, GroupClosed, OSError):
            builder = await self._prepared()
            # Opened after the directory that it writes to, it is ended before that is removed.
            _ = self.group.start(_worker_made(builder, Requirements.parse(wanted, {}, limits)))

    async def _prepared(self) -> Builder:
        async with self._preparing:
            if self._builder is None:
                config, options = self._config, self._options
                installer = Installer(
                    uv=config.uv_path or self._processes.which("uv") or "",
                    index_url=config.index_url,
                    find_links=config.find_links,
                    pass_env=options.pass_env,
                )
                epoch = await self._source_date_epoch()
                scratch = await self.group.enter(artifacts.scratch(self._processes.environment))
                environments = Environments(installer, self._processes, scratch)
                self._builder = Builder(
                    environments=await self.group.enter(environments),
                    config_settings=options.config_settings,
                    environment={"SOURCE_DATE_EPOCH": epoch} if epoch else {},
                    state=config.state_directory,
                    scratch=scratch,
                    logs=self._logs,
                )
            return self._builder

    async def _source_date_epoch(self) -> str:
        """The last commit's time in seconds; empty where the user set it, or nothing is committed.

        https://reproducible-builds.org/specs/source-date-epoch/
        """
        if "SOURCE_DATE_EPOCH" in self._processes.environment:
            return ""
        with suppress(CommandFailed):
            log = await self._processes.run(
                ["git", "log", "-1", "--format=%ct"], cwd=self._config.root, timeout_s=30
            )
            return log.stdout.strip()
        return ""


async def _worker_made(builder: Builder, wanted: Requirements) -> None:
    with suppress(BuildFailed, GroupClosed, OSError):
        await builder.environments.worker(wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class PyPIWorkspace:
    """Implements `interface.Workspace`; `projects` are all there are, by name, versions known.

    `wheels` are those of them that builds of others need, made as they are asked for.
    """

    packages: tuple[Package, ...]
    projects: Mapping[str, PyProject]
    pins: PinMode
    builder: Callable[[], Awaitable[Builder]]
    wheels: InRepoWheels

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        return pin.pin(manifest, versions, self.pins)

    def note_of_pins(self, planned: Sequence[PlannedPackage]) -> str:
        """What `auto` adds to requirements that name no version; nobody has asked for that."""
        if self.pins != "auto":
            return ""
        versions = {each.id.name: each.version for each in self.packages if not each.unpublishable}
        found: dict[str, None] = {}
        for each in planned:
            if each.action is Action.PUBLISH and not each.package.prebuilt:
                project = self.projects[each.package.id.name]
                for name in discover.needs_without_version(project):
                    if name in versions and name != project.name:
                        found[f"{name}=={versions[name]} in {project.name}"] = None
        if not found:
            return ""
        return (
            f"pinned in what is built: {few([*found])}; `pin: none` leaves requirements as written"
        )

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        return [[package] for package in packages]

    async def build(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        return {package.id: await self._build(package, into) for package in packages}

    async def _build(self, package: Package, into: Into) -> Built:
        # Read again: what discovery saw is not pinned.
        document = manifest.read_pyproject(package.manifest)
        project = discover.settled(
            replace(
                manifest.parse_project(document, package.manifest),
                version=package.version,
                sources=self.projects[package.id.name].sources,
                limits=self.projects[package.id.name].limits,
            ),
            self.projects,
        )
        by_name = {each.id.name: each for each in self.packages}
        try:
            builder = await self.builder()
            wheels = await self.wheels.needed_by(
                project, self.projects, lambda name: into(by_name[name])
            )
            built = await builder.build(
                project, into(package), wheels=wheels, given=package.prebuilt
            )
        except BuildFailed as error:
            return error
        self.built(package, built)
        return built

    def built(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        """Its wheels are there for the builds of others."""
        paths = [artifact.path for artifact in artifacts]
        self.wheels.built(package.id.name, [path for path in paths if path.suffix == ".whl"])
