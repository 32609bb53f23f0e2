"""The Ecosystem of Rust crates: discovery, pins and builds behind one door."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.aio import Resource
from releasekit.ecosystems.cargo import discover, metadata, pin
from releasekit.ecosystems.cargo.build import Packager
from releasekit.ecosystems.cargo.configuration import CargoConfig
from releasekit.ecosystems.shared.artifacts import scratch
from releasekit.model import PackageId

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.ecosystems.cargo.destination import Destination
    from releasekit.ecosystems.cargo.metadata import Crate
    from releasekit.ecosystems.cargo.options import Options
    from releasekit.ecosystems.interface import Services
    from releasekit.errors import BuildFailed
    from releasekit.model import Artifact, Package

# What is read in its output, whatever a configuration file says.
# https://doc.rust-lang.org/cargo/reference/config.html#term
_TERMINAL: Final = {
    "CARGO_TERM_QUIET": "false",
    "CARGO_TERM_VERBOSE": "false",
    "CARGO_TERM_PROGRESS_WHEN": "never",
}


class Cargo(Resource):
    """Implements `interface.Ecosystem`."""

    def __init__(
        self,
        config: Config,
        options: Options,
        destination: Destination,
        *,
        services: Services,
    ) -> None:
        super().__init__()
        self._config = config
        self._options = options
        self._destination = destination
        self._processes = services.processes
        self._logs = services.logs
        self._crates: Mapping[str, Crate] = {}
        self._packages: Mapping[str, Package] = {}
        self._scratch: Path | None = None

    async def discover(self, root: Path) -> Sequence[Package]:
        found: list[Crate] = []
        for directory in discover.directories(root, self._options.workspaces):
            found += await metadata.read(directory, self._processes)
        self._crates = discover.merged(root, found)
        packages = discover.packages(self._crates, self._destination)
        self._packages = {package.id.name: package for package in packages}
        return packages

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        return pin.pin(manifest, versions, self._config.pin, shared=self._needed())

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        by_workspace: dict[Path, list[Package]] = {}
        for package in packages:
            workspace = self._crates[package.id.name].workspace
            by_workspace.setdefault(workspace, []).append(package)
        return list(by_workspace.values())

    async def build(
        self, packages: Sequence[Package], into: Path
    ) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        packager = await self._packager()
        built = await packager.package([package.id.name for package in packages], into)
        return {PackageId(discover.ECOSYSTEM, name): result for name, result in built.items()}

    def _needed(self) -> set[str]:
        """What some published package needs without a version, wherever that is written."""
        return {
            need.name
            for crate in self._crates.values()
            if not self._packages[crate.name].unpublishable
            for need in crate.needs
            if not need.versioned and not need.stripped
        }

    async def _packager(self) -> Packager:
        if self._scratch is None:
            self._scratch = await self.group.enter(scratch(self._processes.environment))
        return Packager(
            processes=self._processes,
            crates=self._crates,
            edges={
                name: [it.on.name for it in package.dependencies]
                for name, package in self._packages.items()
            },
            scratch=self._scratch,
            logs=self._logs,
            environment={**self._processes.passing(self._options.pass_env), **_TERMINAL},
            stand_in=CargoConfig.read(self._config.root, self._processes.environment).stand_in,
            verify=self._options.verify,
            demanding=self._destination.is_crates_io,
        )
