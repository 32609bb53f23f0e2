"""Rust crates and cargo registries."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from releasekit.ecosystems.cargo.destination import destination_for
from releasekit.ecosystems.cargo.directory_layout import SparseDirectory
from releasekit.ecosystems.cargo.ecosystem import Cargo
from releasekit.ecosystems.cargo.options import Options
from releasekit.ecosystems.cargo.registry import SparseRegistry
from releasekit.ecosystems.directory import DirectoryRegistry
from releasekit.ecosystems.interface import Discovery, Services, Target

if TYPE_CHECKING:
    from releasekit.config.config import Config


def target(config: Config, services: Services) -> Discovery:
    """Raises ConfigError for a `[cargo]` table or a registry that cannot be used."""
    options = Options.from_table(config.ecosystem_tables.get("cargo", {}))
    goes_to = destination_for(config, options, services.environment)
    ecosystem = Cargo(config, options, goes_to, services=services)
    if goes_to.directory is not None:
        layout = SparseDirectory(options.directory_url)
        return Discovery.of(ecosystem, DirectoryRegistry(goes_to.directory, layout))
    registry = SparseRegistry(config, services, goes_to)
    return Discovery.of(ecosystem, registry, partial(Target, plan_notes=registry.plan_notes))
