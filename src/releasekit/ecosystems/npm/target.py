"""JavaScript packages and npm-like registries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.interface import Discovery, Services, Target
from releasekit.ecosystems.npm import registry
from releasekit.ecosystems.npm.ecosystem import Npm
from releasekit.ecosystems.npm.options import Options

if TYPE_CHECKING:
    from releasekit.config.config import Config


def target(config: Config, services: Services) -> Discovery:
    """Raises ConfigError for an `[npm]` table, tag or registry that cannot be used."""
    options = Options.from_table(config.ecosystem_tables.get("npm", {}))
    return Discovery.of(
        Npm(config, options, processes=services.processes, logs=services.logs),
        registry.registry_for(config, services, options),
        lambda found, there: Target(found, there, plan_notes=found.plan_notes, follow_up=found),
    )
