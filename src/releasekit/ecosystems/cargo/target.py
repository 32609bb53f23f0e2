"""Rust crates and cargo registries."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from releasekit.ecosystems.cargo.destination import destination_for
from releasekit.ecosystems.cargo.directory_layout import SparseDirectory
from releasekit.ecosystems.cargo.ecosystem import Cargo
from releasekit.ecosystems.cargo.registry import SparseRegistry
from releasekit.ecosystems.interface import Discovery, Services, Target

if TYPE_CHECKING:
    from releasekit.config.config import Config
    from releasekit.ecosystems.cargo import Options
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.interface import Registry


def layout(_config: Config, options: Options) -> Layout:
    return SparseDirectory(options.directory_url)


def target(
    config: Config, options: Options, services: Services, directory: Registry | None
) -> Discovery:
    """Raises ConfigError for a registry that cannot be used."""
    destination = destination_for(config, options, services.environment)
    ecosystem = Cargo(config, options, services, destination)
    if directory is not None:
        return Discovery.joining(ecosystem, directory)
    registry = SparseRegistry(config, services, destination)
    return Discovery.joining(
        ecosystem, registry, partial(Target, plan_notes=registry.plan_notes, is_new=registry.is_new)
    )
