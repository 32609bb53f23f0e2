"""The Ecosystem of Rust crates: discovery, pins and builds behind one door."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.aio import Resource
from releasekit.ecosystems.cargo import discover, pin
from releasekit.ecosystems.cargo.build import Packager
from releasekit.ecosystems.cargo.configuration import CargoConfig
from releasekit.ecosystems.cargo.metadata import read_metadata
from releasekit.ecosystems.shared.artifacts import scratch
from releasekit.model import PackageId

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.ecosystems.cargo.destination import Destination
    from releasekit.ecosystems.cargo.metadata import Crate
    from releasekit.ecosystems.cargo.options import Options
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.shared.logs import Logs
    from releasekit.errors import BuildFailed
    from releasekit.host.process import Processes
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
        self._scratch: Path | None = None

    async def discover(self, root: Path) -> CargoWorkspace:
        found: list[Crate] = []
        for directory in discover.directories(root, self._options.workspaces):
            found += await read_metadata(directory, self._processes)
        crates = discover.merged(root, found)
        return CargoWorkspace(
            packages=tuple(discover.packages(crates, self._destination)),
            crates=crates,
            root=root,
            config=self._config,
            options=self._options,
            destination=self._destination,
            processes=self._processes,
            logs=self._logs,
            scratch=self._scratch_directory,
        )

    async def _scratch_directory(self) -> Path:
        if self._scratch is None:
            self._scratch = await self.group.enter(scratch(self._processes.environment))
        return self._scratch


@dataclass(frozen=True, slots=True, kw_only=True)
class CargoWorkspace:
    """Implements `interface.Workspace`; `crates` are all there are, by name. `scratch` is where
    cargo may write, made when it is first asked for.
    """

    packages: tuple[Package, ...]
    crates: Mapping[str, Crate]
    root: Path
    config: Config
    options: Options
    destination: Destination
    processes: Processes
    logs: Logs
    scratch: Callable[[], Awaitable[Path]]

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        return pin.pin(manifest, versions, self.config.pin, shared=self._needed())

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        by_workspace: dict[Path, list[Package]] = {}
        for package in packages:
            workspace = self.crates[package.id.name].workspace
            by_workspace.setdefault(workspace, []).append(package)
        return list(by_workspace.values())

    async def build(
        self, packages: Sequence[Package], into: Callable[[Package], Path]
    ) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        directories = {package.id.name: into(package) for package in packages}
        packager = await self._packager()
        built = await packager.package(directories)
        return {PackageId(discover.ECOSYSTEM, name): result for name, result in built.items()}

    def _needed(self) -> set[str]:
        """What some published package needs without a version, wherever that is written."""
        return {
            need.name
            for package in self.packages
            if not package.unpublishable
            for need in self.crates[package.id.name].needs
            if not need.versioned and not need.stripped
        }

    async def _packager(self) -> Packager:
        return Packager(
            processes=self.processes,
            crates=self.crates,
            edges={
                package.id.name: [dependency.on.name for dependency in package.dependencies]
                for package in self.packages
            },
            scratch=await self.scratch(),
            logs=self.logs,
            environment={**self.processes.passing(self.options.pass_env), **_TERMINAL},
            stand_in=CargoConfig.read(self.root, self.processes.environment).stand_in,
            verify=self.options.verify,
            demanding=self.destination.is_crates_io,
        )
