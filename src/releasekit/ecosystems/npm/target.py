"""JavaScript packages and npm-like registries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.interface import Services, Target
from releasekit.ecosystems.npm import registry
from releasekit.ecosystems.npm.ecosystem import Npm
from releasekit.ecosystems.npm.options import Options

if TYPE_CHECKING:
    from releasekit.config.config import Config


def target(config: Config, services: Services) -> Target:
    """Raises ConfigError for an `[npm]` table, tag or registry that cannot be used."""
    options = Options.from_table(config.ecosystem_tables.get("npm", {}))
    npm = Npm(config, options, processes=services.processes, logs=services.logs)
    return Target(
        ecosystem=npm,
        registry=registry.registry_for(config, services, options),
        plan_notes=npm.plan_notes,
        follow_up=npm,
    )
