"""The Ecosystem of Go modules: discovery, checks and releases, from what git has committed."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from releasekit.ecosystems.go import discover, gomod, source
from releasekit.ecosystems.go.batch import Batch, Sources
from releasekit.ecosystems.shared import artifacts
from releasekit.errors import BuildFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.ecosystems.go.discover import Module
    from releasekit.ecosystems.go.options import Options
    from releasekit.host.process import Processes
    from releasekit.model import Artifact, Package, PackageId, Published


class Go:
    """Implements `interface.Ecosystem`.

    `lookup` tells the hashes of modules that are published already.
    """

    def __init__(
        self,
        config: Config,
        options: Options,
        *,
        processes: Processes,
        lookup: Callable[[Package], Awaitable[Published | None]],
    ) -> None:
        self._config = config
        self._options = options
        self._processes = processes
        self._lookup = lookup
        self._modules: Mapping[str, Module] = {}
        self._packages: Mapping[str, Package] = {}

    async def discover(self, root: Path) -> Sequence[Package]:
        found = await asyncio.to_thread(discover.modules, root, self._options)
        self._modules = {module.path: module for module in found}
        packages = discover.packages(self._modules)
        self._packages = {package.id.name: package for package in packages}
        return packages

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        """The same text: what is published comes from a commit, and is changed on the way there.

        Raises PlanError for requirements and replacements that cannot be published.
        """
        path = gomod.parse_mod(manifest, "go.mod").module
        discover.check(self._modules[path], manifest, versions, self._modules)
        return manifest

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        return [packages] if packages else []

    async def build(
        self, packages: Sequence[Package], into: Path
    ) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        try:
            async with artifacts.scratch(self._processes.environment) as scratch:
                sources = await self._sources(packages, scratch)
                batch = Batch(
                    sources=sources,
                    modules=self._modules,
                    packages=self._packages,
                    edits=self._config.pin != "none",
                    lookup=self._lookup,
                )
                with contextlib.closing(sources.archive):
                    return await batch.build(packages, into)
        except BuildFailed as error:
            return {package.id: error for package in packages}

    async def _sources(self, packages: Sequence[Package], scratch: Path) -> Sources:
        if self._processes.which("git") is None:
            raise BuildFailed("git is not installed; Go modules are published from a commit")
        head = await source.head_of(self._config.root, self._processes)
        wanted = {source.path_in_repository(package.directory, head.top) for package in packages}
        trees = await source.Trees.of(head, wanted, self._processes)
        there = sorted(wanted & trees.listed.keys())
        archive = await source.archive(trees, there, scratch, self._processes)
        return Sources(trees, archive, await source.changed(head, self._processes))
