"""The Ecosystem of Maven packages: discovery, pins and builds behind one door."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from releasekit.aio import gather_all
from releasekit.ecosystems.maven import discover, document, pin, pom, workspace
from releasekit.ecosystems.maven.build import Builder
from releasekit.ecosystems.maven.signing import Signer
from releasekit.errors import BuildFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.ecosystems.maven.options import Options
    from releasekit.ecosystems.maven.workspace import Project
    from releasekit.ecosystems.shared.logs import Logs
    from releasekit.host.process import Processes
    from releasekit.model import Artifact, Package, PackageId


class Maven:
    """Implements `interface.Ecosystem`."""

    def __init__(
        self, config: Config, options: Options, *, processes: Processes, logs: Logs
    ) -> None:
        self._config = config
        self._options = options
        self._processes = processes
        self._logs = logs
        self._projects: dict[str, Project] = {}

    async def discover(self, root: Path) -> Sequence[Package]:
        found = await asyncio.to_thread(workspace.load, root, self._options)
        self._projects = {project.name: project for project in found}
        return discover.packages(found)

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        root = document.parse(manifest.encode())
        key = pom.of(root, self._config.root / "pom.xml").key
        project = next(it for it in self._projects.values() if it.pom.key == key)
        return pin.pin(manifest, project, versions, self._config.pin)

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        """One for each reactor."""
        reactors: dict[Path, list[Package]] = {}
        for package in packages:
            reactors.setdefault(self._projects[package.id.name].top, []).append(package)
        return list(reactors.values())

    async def build(
        self, packages: Sequence[Package], into: Path
    ) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        builder = Builder(
            config=self._config,
            options=self._options,
            processes=self._processes,
            logs=self._logs,
            projects=self._projects,
        )
        try:
            built = await builder.build(packages, into)
        except BuildFailed as error:
            return {package.id: error for package in packages}
        if self._options.sign:
            signer = Signer(
                self._processes, self._options.sign, concurrency=self._config.build_concurrency
            )
            signed = await gather_all(
                self._sign(signer, package, built[package.id]) for package in packages
            )
            built = {package.id: each for package, each in zip(packages, signed, strict=True)}
        return built

    async def _sign(
        self, signer: Signer, package: Package, built: tuple[Artifact, ...] | BuildFailed
    ) -> tuple[Artifact, ...] | BuildFailed:
        if isinstance(built, BuildFailed):
            return built
        try:
            return await signer.sign(package, built)
        except BuildFailed as error:
            return error
