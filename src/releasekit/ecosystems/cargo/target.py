"""Rust crates and cargo registries: what is found, pinned and built, and where it goes."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from releasekit.aio import Resource
from releasekit.config.shards import Shard
from releasekit.ecosystems.cargo import CRATES_IO_INDEX, TOOL, discover, requirements, roots
from releasekit.ecosystems.cargo.build import (
    Packager,
    find_indexes,
    find_members,
    split_into_chunks,
)
from releasekit.ecosystems.cargo.composition import CargoComposition
from releasekit.ecosystems.cargo.crate_file import PrebuiltCrates
from releasekit.ecosystems.cargo.destination import (
    CRATES_IO_NAME,
    SPARSE,
    CargoConfig,
    find_destination,
)
from releasekit.ecosystems.cargo.mirror import Indexes, Mirror
from releasekit.ecosystems.cargo.registry import SparseRegistry
from releasekit.ecosystems.cargo.sparse_index import SparseDirectory
from releasekit.ecosystems.cargo.versioning import CargoVersioning
from releasekit.ecosystems.interface import Clients, Discovery, Services, Target, Trial
from releasekit.ecosystems.preflight import Preflight
from releasekit.ecosystems.shared.artifacts import find_too_large
from releasekit.ecosystems.shared.packages import batched
from releasekit.ecosystems.shared.tools import find_tool
from releasekit.errors import PlanError, raise_all
from releasekit.host import durable
from releasekit.host.scratch import scratch
from releasekit.model import Action, PackageId, PackageWarning, WarningName
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import PlanConfig
    from releasekit.config.values import PinMode
    from releasekit.ecosystems.cargo import CargoOptions
    from releasekit.ecosystems.cargo.crates_io import Refusal
    from releasekit.ecosystems.cargo.destination import Destination
    from releasekit.ecosystems.cargo.discover import Crate
    from releasekit.ecosystems.cargo.requirements import PathDependency
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.interface import Built, Into, Registry
    from releasekit.errors import BuildFailed
    from releasekit.model import Artifact, Package, PlannedPackage

# The build reads cargo's output, so no configuration file may change its form.
# https://doc.rust-lang.org/cargo/reference/config.html#term
_TERMINAL: Final = {
    "CARGO_TERM_QUIET": "false",
    "CARGO_TERM_VERBOSE": "false",
    "CARGO_TERM_PROGRESS_WHEN": "never",
}

# https://github.com/rust-lang/crates.io/blob/main/src/config/publish_limits.rs (August 2026)
MAX_CRATE_BYTES: Final = 10 * 1024**2
_LARGER: Final = (
    "crates.io takes of a crate, unless it has agreed to more: leave out files by `exclude`, or "
    "ask help@crates.io"
)
UNVERIFIED: Final = "cargo: `[cargo] verify` is false: no crate is compiled before it is published"


def layout(options: CargoOptions, _inputs: object) -> Layout:
    return SparseDirectory(options.directory_url)


def target(
    config: PlanConfig, options: CargoOptions, services: Services, directory: Registry | None
) -> Discovery:
    """Raises ConfigError for a registry that cannot be used."""
    goes_to = config.registries.get("cargo")
    destination = find_destination(config.root, goes_to, options, services)
    seen: dict[str, bytes | None] = {}
    ecosystem = Cargo(config.pin, options, services, destination, seen)
    registry = directory or SparseRegistry(
        services,
        destination,
        seen,
        trusted_publishing=config.trusted_publishing,
        shard=Shard.parse(config.shard, "shard") if config.shard else Shard(),
    )
    return Discovery.joining(ecosystem, registry, CargoTarget)


class CargoTarget(Target):
    # The calls of a workspace take turns anyway, and each finds what earlier ones packaged.
    builds_in_turn = True
    composition = CargoComposition()

    def __init__(self, workspace: CargoWorkspace, registry: Registry) -> None:
        super().__init__(workspace, registry)
        self._found = workspace
        # Only a Cargo.lock that has it already takes a yanked version.
        # https://doc.rust-lang.org/cargo/commands/cargo-yank.html
        self.clients = Clients(try_out=self._try_out, takes_hidden=lambda _: False)
        self.versioning = CargoVersioning(
            workspace.packages, workspace.crates, workspace.root, workspace.cargo.pin
        )
        self.prebuilt = PrebuiltCrates(workspace.packages)
        self._verifies = workspace.cargo.options.verify
        self._index = registry if isinstance(registry, SparseRegistry) else None
        if self._index:
            self.preflight = Preflight(
                rights=self._index,
                trust=self._index if workspace.cargo.destination.is_crates_io else None,
                is_new=self._index.is_new,
                find_excess=self._find_excess,
                find_earliest=self._index.find_earliest,
            )

    def plan_notes(self, planned: Sequence[PlannedPackage], /) -> str:
        notes = [self._index.plan_notes(planned)] if self._index else []
        built = [each.package for each in planned if each.action is Action.PUBLISH]
        sent = {each.package.id.name for each in planned if each.is_built}
        refused = [
            refusal
            for name, crate in self._found.crates.items()
            if name in sent
            for refusal in self._list_refusals(crate)
        ]
        raise_all(refused)
        if not self._verifies and not all(package.prebuilt for package in built):
            notes.append(UNVERIFIED)
        return ". ".join(filter(None, notes))

    async def find_tool(self, packages: Sequence[Package], /) -> str:
        """Of rustup's toolchains, what is asked for in a directory counts there."""
        built = [self._found.crates[each.id.name] for each in packages if not each.prebuilt]
        top = self._found.root
        asking = await asyncio.to_thread(
            lambda: {roots.find_toolchain(crate.workspace, top): crate for crate in built}
        )
        processes = self._found.cargo.services.processes
        found = [
            crate.tool or await find_tool(TOOL, processes, ecosystem="cargo", cwd=crate.workspace)
            for crate in asking.values()
        ]
        return ", ".join(dict.fromkeys(found))

    def _list_refusals(self, crate: Crate) -> Iterator[PlanError]:
        cargo, crates = self._found.cargo, self._found.crates
        for need in crate.needs:
            why = discover.explain_unpublishable_need(
                need, crates, on_crates_io=self._is_on_crates_io, pins=cargo.pin
            )
            if why:
                yield PlanError(
                    f"{crate.manifest}: the dependency {need.name} {why}",
                    hint=f'Give {need.name} the version that users get: version = "…".',
                    problem=Problem.CANNOT_PIN,
                )
        for refusal in crate.refused if self._is_on_crates_io else ():
            if not self._is_perhaps_raised(refusal, crate.name):
                yield PlanError(
                    f"{crate.manifest}: {refusal.what}",
                    hint=f"{refusal.cure}.",
                    problem=Problem.NEVER_TAKEN,
                )

    def _find_excess(self, planned: Sequence[PlannedPackage]) -> Mapping[PackageId, PackageWarning]:
        found = {}
        for package in [each.package.id for each in planned if each.is_built]:
            perhaps = [
                refusal
                for refusal in self._found.crates[package.name].refused
                if self._is_on_crates_io and self._is_perhaps_raised(refusal, package.name)
            ]
            if perhaps:
                whats = ", and ".join(refusal.what for refusal in perhaps)
                cure = perhaps[0].cure.lower()
                message = f"{whats}, unless it has raised the limit for this crate: {cure}"
                found[package] = PackageWarning(name=WarningName.OVER_LIMIT, message=message)
        return found

    @property
    def _is_on_crates_io(self) -> bool:
        return self._index is not None and self._found.cargo.destination.is_crates_io

    def _is_perhaps_raised(self, refusal: Refusal, name: str) -> bool:
        is_new = self._index is not None and self._index.is_new(PackageId(discover.ECOSYSTEM, name))
        return refusal.is_raised and not is_new

    def list_pinned(
        self, packages: Sequence[Package], sent: Sequence[Package], /
    ) -> Sequence[Package]:
        """All of their cargo workspace; a crate that waits for the registry is packaged alone."""
        first, alone = packages[0].id.name, discover.find_alone(self._found.packages)
        if first in alone:
            return packages
        names = {crate.name for crate in find_members(self._found.crates, first)} - alone
        beside = {package.id for package in sent if package.id.name in names}
        beside.update(package.id for package in packages)
        return [package for package in self._found.packages if package.id in beside]

    def list_rewritten(self, packages: Sequence[Package], /) -> Collection[Path]:
        """Cargo updates a lock file that is behind the manifests, and makes none."""
        crates = [self._found.crates[package.id.name] for package in packages]
        return [lock for lock in {each.lock_file for each in crates} if durable.is_file(lock)]

    async def find_warnings(
        self, _package: Package, artifacts: Sequence[Artifact], /
    ) -> list[PackageWarning]:
        found = find_too_large(artifacts, MAX_CRATE_BYTES, _LARGER)
        return [*found] if self._is_on_crates_io else []

    def _try_out(self, package: Package, _shared: Path) -> Trial:
        """Cargo asks a sparse index again each time, so that its own cache does no harm."""
        destination = self._found.cargo.destination
        # In quotes, since .cargo/config.toml may name it. Cargo takes any letters for a name.
        index = json.dumps(f"{SPARSE}{destination.index}", ensure_ascii=False)
        argv, wanted = ["cargo", "generate-lockfile", "--quiet"], f'version = "={package.version}"'
        if not destination.holds(""):
            wanted += f", registry-index = {index}"
        elif destination.index != CRATES_IO_INDEX:
            argv += ["--config", f'source.{CRATES_IO_NAME}.replace-with = "releasekit"']
            argv += ["--config", f"source.releasekit.registry = {index}"]
        manifest = (
            'package = { name = "releasekit-smoke", version = "0.0.0", edition = "2021" }\n'
            f'workspace = {{}}\ndependencies."{package.id.name}" = {{ {wanted} }}\n'
        )
        return Trial(argv=argv, files={"Cargo.toml": manifest, "src/lib.rs": ""})

    async def differing(self, package: Package, artifact: Artifact, /) -> list[str]:
        return await self._index.differing(package, artifact) if self._index else []


class Cargo(Resource):
    """Implements `interface.Ecosystem`. `seen` are files of the index that the plan has read, by
    URL, None for one that is not there.
    """

    def __init__(
        self,
        pin: PinMode,
        options: CargoOptions,
        services: Services,
        destination: Destination,
        seen: dict[str, bytes | None],
    ) -> None:
        super().__init__()
        self.pin = pin
        self.options = options
        self.services = services
        self.destination = destination
        self.seen = seen
        self._scratch: Path | None = None
        self._indexes: Indexes | None = None
        self._mirrors: dict[tuple[frozenset[str], str], Mirror] = {}
        self._opening = asyncio.Lock()

    async def discover(self, root: Path) -> CargoWorkspace:
        found: list[Crate] = []
        for directory in await asyncio.to_thread(
            discover.find_directories, root, self.options.workspaces
        ):
            found += await discover.read_metadata(directory, self.services.processes)
        crates, twins = await asyncio.to_thread(
            discover.merge_crates, root, found, self.destination
        )
        packages = await asyncio.to_thread(discover.make_packages, crates, self.destination, twins)
        return CargoWorkspace(packages=packages, crates=crates, root=root, cargo=self)

    def read_indexes(self, root: Path, members: Iterable[str]) -> Indexes:
        """What may be mirrored, read at the first call. Raises ConfigError for an invalid
        configuration of cargo.
        """
        if self._indexes is None:
            services = self.services
            self._indexes = Indexes.of(
                CargoConfig.from_files(root, services.environment, services.processes.sandbox),
                services,
                seen=self.seen,
                destination=self.destination,
                members=members,
                downloads=self.options.verify,
            )
        return self._indexes

    async def open_mirror(self, indexes: Indexes, named: Iterable[str], home: str) -> Mirror | None:
        """As `make_mirror`, and open to the end of the run: cargo would compile again what comes
        from another address. None where it cannot be opened.
        """
        async with self._opening:
            made = indexes.make_mirror(named, home)
            if made is None:
                return None
            key = (frozenset(made.names), home)
            if key not in self._mirrors:
                try:
                    self._mirrors[key] = await self.group.enter(made)
                except OSError:
                    return None
            return self._mirrors[key]

    async def scratch(self) -> Path:
        """Where cargo may write, made at the first call."""
        if self._scratch is None:
            self._scratch = await self.group.enter(scratch(self.services.processes.environment))
        return self._scratch


class CargoWorkspace(Struct, frozen=True, kw_only=True):
    """Implements `interface.Workspace`; `crates` are all crates by name. `whole` says which crates
    one call packages with each that is built, where there is no mirror. Of those that wait for no
    registry, `packaged` were packaged beside others, and `lost` could not be packaged.
    """

    packages: tuple[Package, ...]
    crates: Mapping[str, Crate]
    root: Path
    cargo: Cargo
    whole: dict[str, Sequence[str]] = field(default_factory=dict)
    packaged: dict[str, str] = field(default_factory=dict)
    lost: dict[str, BuildFailed] = field(default_factory=dict)

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        private = {package.id.name for package in self.packages if package.unpublishable}
        needs = [
            need
            for package in self.packages
            if not package.unpublishable
            for need in self.crates[package.id.name].needs
        ]
        asked = {(need.name, need.requirement) for need in needs}

        def binds(owner: str, entry: PathDependency) -> bool:
            # Cargo packages the others, independent of what an example needs.
            if entry.where[0] == "workspace":
                normalised = requirements.normalise_requirement(entry.requirement or "*")
                return (entry.package, normalised) in asked
            return owner not in private

        shared = {
            need.name
            for need in needs
            if need.path is not None and not need.has_version and not need.is_stripped
        }
        return requirements.pin(manifest, versions, self.cargo.pin, shared=shared, binds=binds)

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        """A few batches for each cargo workspace, or one where nobody knows whether cargo can be
        shown what earlier ones packaged. Crates that have to wait are batches of their own.
        """
        alone = discover.find_alone(self.packages)

        def together(package: Package) -> tuple[Path, str]:
            name = package.id.name
            return self.crates[name].workspace, name if name in alone else ""

        indexes = self.cargo.read_indexes(self.root, self.crates)
        batches = []
        for batch in batched(packages, together):
            members = find_members(self.crates, batch[0].id.name)
            names = [package.id.name for package in batch if not package.prebuilt]
            self.whole.update(dict.fromkeys(names, names))
            can_mirror = indexes.can_mirror(find_indexes(members))
            batches += split_into_chunks(batch) if can_mirror else [batch]
        return batches

    async def build(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        cargo, processes = self.cargo, self.cargo.services.processes
        is_alone = packages[0].id.name in discover.find_alone(self.packages)
        indexes = cargo.read_indexes(self.root, self.crates)
        packager = Packager(
            processes=processes,
            crates=self.crates,
            edges={
                package.id.name: [dependency.on.name for dependency in package.dependencies]
                for package in self.packages
            },
            scratch=await cargo.scratch(),
            logs=cargo.services.logs,
            environment={**processes.passing(cargo.options.pass_env), **_TERMINAL},
            indexes=indexes,
            open_mirror=partial(cargo.open_mirror, indexes),
            verify=cargo.options.verify,
            whole=() if is_alone else self.whole.get(packages[0].id.name, ()),
            kept={package.id.name: into(package) for package in self.packages},
            packaged={} if is_alone else self.packaged,
            lost={} if is_alone else self.lost,
        )
        directories = {package.id.name: into(package) for package in packages}
        built = await packager.package(directories)
        return {PackageId(discover.ECOSYSTEM, name): result for name, result in built.items()}
