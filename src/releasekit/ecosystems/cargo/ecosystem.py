"""The Ecosystem of Rust crates: discovery, pins and builds behind one door."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from releasekit.aio import Resource
from releasekit.ecosystems.cargo import discover, pin
from releasekit.ecosystems.cargo.build import Packager
from releasekit.ecosystems.cargo.chunks import chunked
from releasekit.ecosystems.cargo.configuration import CargoConfig
from releasekit.ecosystems.cargo.metadata import read_metadata
from releasekit.ecosystems.cargo.mirror import Indexes
from releasekit.ecosystems.cargo.requirement import normalised
from releasekit.ecosystems.shared.artifacts import scratch
from releasekit.ecosystems.shared.packages import batched
from releasekit.model import PackageId

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.ecosystems.cargo import Options
    from releasekit.ecosystems.cargo.destination import Destination
    from releasekit.ecosystems.cargo.metadata import Crate, Need
    from releasekit.ecosystems.cargo.pin import PathDependency
    from releasekit.ecosystems.interface import Built, Into, Services
    from releasekit.errors import BuildFailed
    from releasekit.model import Package

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
        services: Services,
        destination: Destination,
        shown: dict[str, bytes | None],
    ) -> None:
        super().__init__()
        self.config = config
        self.options = options
        self.services = services
        self.destination = destination
        self._scratch: Path | None = None
        self.shown = shown
        self._indexes: Indexes | None = None

    async def discover(self, root: Path) -> CargoWorkspace:
        found: list[Crate] = []
        for directory in await asyncio.to_thread(
            discover.directories, root, self.options.workspaces
        ):
            found += await read_metadata(directory, self.services.processes)
        crates, twins = await asyncio.to_thread(discover.merged, root, found, self.destination)
        return CargoWorkspace(
            found=await asyncio.to_thread(discover.packages, crates, self.destination, twins),
            crates=crates,
            root=root,
            cargo=self,
        )

    def indexes(self, cargo_config: CargoConfig, members: Iterable[str]) -> Indexes | None:
        """What may be mirrored. Whoever compiles downloads what is needed: into the directory that
        cargo uses otherwise too.
        """
        if self._indexes is None and not self.options.verify:
            self._indexes = Indexes.of(
                cargo_config,
                self.config,
                self.services,
                seen=self.shown,
                destination=self.destination,
                members=members,
            )
        return self._indexes

    async def scratch(self) -> Path:
        """Where cargo may write, made when it is first asked for."""
        if self._scratch is None:
            self._scratch = await self.group.enter(scratch(self.services.processes.environment))
        return self._scratch


@dataclass(frozen=True, slots=True, kw_only=True)
class CargoWorkspace:
    """Implements `interface.Workspace`; `crates` are all there are, by name, and `lost` those that
    could not be packaged, of those that wait for no registry.
    """

    found: discover.Found
    crates: Mapping[str, Crate]
    root: Path
    cargo: Cargo
    calls: Mapping[Path, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    lost: dict[str, BuildFailed] = field(default_factory=dict)

    @property
    def packages(self) -> tuple[Package, ...]:
        return self.found.packages

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        asked = {(need.name, need.requirement) for need in self._published_needs()}
        private = {package.id.name for package in self.packages if package.unpublishable}

        def binds(owner: str, entry: PathDependency) -> bool:
            # Cargo packages the others, whatever an example asks for.
            if entry.where[0] == "workspace":
                return (entry.package, normalised(entry.requirement or "*")) in asked
            return owner not in private

        shared = {
            need.name
            for need in self._published_needs()
            if need.path is not None and not need.versioned and not need.stripped
        }
        return pin.pin(manifest, versions, self.cargo.config.pin, shared=shared, binds=binds)

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        """A few for each cargo workspace whose crates are looked for in an index that everybody may
        read, else one, and one for each package that is packaged alone.
        """

        def together(package: Package) -> tuple[Path, str]:
            name = package.id.name
            return self.crates[name].workspace, name if name in self.found.alone else ""

        batches = batched(packages, together)
        if self.cargo.options.verify or not self.cargo.shown:
            return batches
        return [chunk for batch in batches for chunk in chunked(batch)]

    async def build(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        directories = {package.id.name: into(package) for package in packages}
        alone = packages[0].id.name in self.found.alone
        packager = await self._packager({} if alone else self.lost)
        # A call changes the lock file, and gives it back.
        async with self.calls[self.crates[packages[0].id.name].workspace]:
            built = await packager.package(directories)
        return {PackageId(discover.ECOSYSTEM, name): result for name, result in built.items()}

    def _published_needs(self) -> Iterator[Need]:
        """What published packages need, wherever that is written."""
        for package in self.packages:
            if not package.unpublishable:
                yield from self.crates[package.id.name].needs

    async def _packager(self, lost: dict[str, BuildFailed]) -> Packager:
        cargo, processes = self.cargo, self.cargo.services.processes
        cargo_config = CargoConfig.from_files(self.root, processes.environment, processes.sandbox)
        return Packager(
            processes=processes,
            crates=self.crates,
            edges={
                package.id.name: [dependency.on.name for dependency in package.dependencies]
                for package in self.packages
            },
            scratch=await cargo.scratch(),
            logs=cargo.services.logs,
            environment={**processes.passing(cargo.options.pass_env), **_TERMINAL},
            stand_in=cargo_config.stand_in,
            indexes=cargo.indexes(cargo_config, self.crates),
            verify=cargo.options.verify,
            demanding=cargo.destination.is_crates_io,
            lost=lost,
        )
