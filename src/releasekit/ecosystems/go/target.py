"""Go modules: tags on a git remote, and the proxies that serve them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from releasekit.ecosystems.go import registry
from releasekit.ecosystems.go.ecosystem import Go
from releasekit.ecosystems.go.options import Options
from releasekit.ecosystems.go.registry import TagRegistry
from releasekit.ecosystems.interface import Discovery, Services, Target

if TYPE_CHECKING:
    from releasekit.config.config import Config


def target(config: Config, services: Services) -> Discovery:
    """Raises ConfigError for a `[go]` table or a proxy that cannot be used."""
    options = Options.from_table(config.ecosystem_tables.get("go", {}))
    where = registry.registry_for(config, options, services)
    pushes = where if isinstance(where, TagRegistry) else None
    return Discovery.of(
        Go(config, options, processes=services.processes, lookup=where.lookup),
        where,
        partial(Target, deployment=pushes, whole=False),
    )
