"""The Ecosystem of Python packages: discovery, pins and builds behind one door."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from releasekit.aio import Resource
from releasekit.ecosystems.pypi import discover, manifest, pin
from releasekit.ecosystems.pypi.build import Builder
from releasekit.ecosystems.pypi.environment import Environments, Installer
from releasekit.ecosystems.shared import artifacts
from releasekit.errors import BuildFailed, CommandFailed, ReleasekitError
from releasekit.state.lock_order import Kind, turn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.ecosystems.pypi.manifest import Project
    from releasekit.ecosystems.pypi.options import Options
    from releasekit.ecosystems.shared.logs import Logs
    from releasekit.host.process import Processes
    from releasekit.model import Artifact, Package, PackageId


class PyPI(Resource):
    """Implements `interface.Ecosystem`."""

    def __init__(
        self, config: Config, options: Options, *, processes: Processes, logs: Logs
    ) -> None:
        super().__init__()
        self._config = config
        self._options = options
        self._processes = processes
        self._logs = logs
        self._projects: Mapping[str, Project] = {}
        self._wheels: dict[str, Path] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._builder: Builder | None = None

    async def discover(self, root: Path) -> Sequence[Package]:
        found = discover.projects(root, self._options)
        self._projects = {project.name: project for project in found}
        discover.check_build_order(self._projects)
        limit = asyncio.Semaphore(self._config.build_concurrency)
        async with asyncio.TaskGroup() as hooks:
            tasks = [hooks.create_task(self._complete(project, limit)) for project in found]
        self._projects = {project.name: project for project in map(_succeeded, tasks)}
        return discover.packages(self._projects)

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        return pin.pin(manifest, versions, self._config.pin)

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        return [[package] for package in packages]

    async def build(
        self, packages: Sequence[Package], into: Path
    ) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        return {package.id: await self._build(package, into) for package in packages}

    async def _build(self, package: Package, into: Path) -> tuple[Artifact, ...] | BuildFailed:
        name = package.id.name
        # Read again: what discovery saw is not pinned.
        document = manifest.read(package.manifest)
        project = replace(manifest.project(document, package.manifest), version=package.version)
        try:
            builder = await self._prepared()
            wheels = await self._in_repo_wheels(project, into)
            artifacts = await builder.build(project, into / name / package.version, wheels=wheels)
        except BuildFailed as error:
            return error
        self._wheels[name] = artifacts[-1].path
        return artifacts

    async def _complete(
        self, project: Project, limit: asyncio.Semaphore
    ) -> Project | ReleasekitError:
        if project.unpublishable or not project.dynamic & manifest.COMPUTED:
            return project
        async with limit:
            try:
                builder = await self._prepared()
                wheels = await self._in_repo_wheels(project, None)
                metadata = await builder.metadata(project, wheels=wheels)
                return manifest.computed(project, metadata)
            except ReleasekitError as error:
                return error

    async def _in_repo_wheels(self, project: Project, into: Path | None) -> dict[str, Path]:
        """The packages of the workspace that its build environment needs, built."""
        closure = discover.build_closure(project, self._projects)
        return {name: await self._wheel(self._projects[name], into) for name in closure}

    async def _wheel(self, project: Project, into: Path | None) -> Path:
        """What this run built, or an earlier one, or else a build that is never published: the
        package may be on its registry already, or be planned for later.
        """
        if project.name not in self._wheels and into and project.version:
            earlier = into / project.name / project.version
            self._wheels.update((project.name, wheel) for wheel in earlier.glob("*.whl"))
        if project.name in self._wheels:
            return self._wheels[project.name]
        # Before its own turn, so that nobody has the turns of two wheels.
        wheels = await self._in_repo_wheels(project, into)
        builder = await self._prepared()
        async with turn(Kind.WHEEL, project.name, self._locks[project.name]):
            if project.name not in self._wheels:
                target = builder.scratch / "in-repo" / project.name
                built = await builder.build(project, target, wheels=wheels)
                self._wheels[project.name] = built[-1].path
            return self._wheels[project.name]

    async def _prepared(self) -> Builder:
        async with self._locks[""]:
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


def _succeeded(task: asyncio.Task[Project | ReleasekitError]) -> Project:
    result = task.result()
    if isinstance(result, ReleasekitError):
        raise result
    return result
