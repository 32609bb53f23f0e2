"""Rust crates and cargo registries."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from releasekit.ecosystems.cargo.destination import destination_for
from releasekit.ecosystems.cargo.directory_layout import SparseDirectory
from releasekit.ecosystems.cargo.ecosystem import Cargo
from releasekit.ecosystems.cargo.history import inherited_at, offered_at, packs, version_at
from releasekit.ecosystems.cargo.prebuilt import Crates
from releasekit.ecosystems.cargo.registry import SparseRegistry
from releasekit.ecosystems.interface import Discovery, Services, Target

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from releasekit.config.config import Config
    from releasekit.ecosystems.cargo import Options
    from releasekit.ecosystems.cargo.ecosystem import CargoWorkspace
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.interface import Registry
    from releasekit.model import Artifact, Package, PackageId


def layout(_config: Config, options: Options) -> Layout:
    return SparseDirectory(options.directory_url)


def target(
    config: Config, options: Options, services: Services, directory: Registry | None
) -> Discovery:
    """Raises ConfigError for a registry that cannot be used."""
    sandbox = services.processes.sandbox
    destination = destination_for(config, options, services.environment, sandbox)
    shown: dict[str, bytes | None] = {}
    ecosystem = Cargo(config, options, services, destination, shown)
    if directory is not None:
        return Discovery.joining(ecosystem, directory, _joined)
    registry = SparseRegistry(config, services, destination, shown)
    joined = partial(
        _joined,
        plan_notes=registry.plan_notes,
        is_new=registry.is_new,
        differing=registry.differing,
    )
    return Discovery.joining(ecosystem, registry, joined)


def _joined(
    found: CargoWorkspace,
    there: Registry,
    plan_notes: Callable[..., str] | None = None,
    is_new: Callable[[PackageId], bool] | None = None,
    differing: Callable[[Package, Artifact], Awaitable[list[str]]] | None = None,
) -> Target:
    return Target(
        found,
        there,
        plan_notes=plan_notes,
        is_new=is_new,
        differing=differing,
        prebuilt=Crates(found),
        # Calls take turns anyway, and each finds what those before it have packaged.
        builds_in_turn=True,
        version_at=version_at,
        packs=packs,
        inherited_at=inherited_at,
        offered_at=offered_at,
    )
