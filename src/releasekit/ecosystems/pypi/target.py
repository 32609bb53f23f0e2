"""Python packages and PyPI-like registries."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from releasekit.ecosystems.interface import Discovery, Services, Target
from releasekit.ecosystems.pypi import registry
from releasekit.ecosystems.pypi.ecosystem import PyPI
from releasekit.ecosystems.pypi.options import Options

if TYPE_CHECKING:
    from releasekit.config.config import Config


def target(config: Config, services: Services) -> Discovery:
    """Raises ConfigError for a `[pypi]` table, index or registry that cannot be used."""
    options = Options.from_table(config.ecosystem_tables.get("pypi", {}))
    there = registry.registry_for(config, services)
    notes = there.plan_notes if isinstance(there, registry.PackageIndex) else None
    return Discovery.of(
        PyPI(config, options, processes=services.processes, logs=services.logs),
        there,
        partial(Target, plan_notes=notes),
    )
