"""Maven packages, repositories, and the Central Portal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from releasekit.ecosystems.directory import DirectoryRegistry
from releasekit.ecosystems.interface import Services, Target
from releasekit.ecosystems.maven.directory_layout import MavenDirectory
from releasekit.ecosystems.maven.ecosystem import Maven
from releasekit.ecosystems.maven.login import Login
from releasekit.ecosystems.maven.options import Options
from releasekit.ecosystems.maven.portal import CENTRAL, Portal
from releasekit.ecosystems.maven.repository import Repository

if TYPE_CHECKING:
    from releasekit.config.config import Config


def target(config: Config, services: Services) -> Target:
    """Raises ConfigError for a `[maven]` table or a registry that cannot be used."""
    options = Options.from_table(config.ecosystem_tables.get("maven", {}))
    ecosystem = Maven(config, options, processes=services.processes, logs=services.logs)
    place = config.registries.get("maven", CENTRAL)
    if place.startswith("dir:"):
        layout = MavenDirectory(ecosystem.packaging)
        return Target(ecosystem, DirectoryRegistry(Path(place.removeprefix("dir:")), layout))
    if options.api == "portal" or (options.api == "auto" and place.rstrip("/") == CENTRAL):
        portal = Portal(
            place, options, config=config, services=services, packaging=ecosystem.packaging
        )
        return Target(ecosystem, portal, portal)
    login = Login.of(config, services.credentials, place)
    repository = Repository(
        place, login, config=config, services=services, packaging=ecosystem.packaging
    )
    return Target(ecosystem, repository)
