"""Maven packages, repositories, and the Central Portal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from releasekit.config.values import Directory, Url
from releasekit.ecosystems.directory import DirectoryRegistry
from releasekit.ecosystems.interface import Discovery, Services, Target
from releasekit.ecosystems.maven.directory_layout import MavenDirectory
from releasekit.ecosystems.maven.ecosystem import Maven
from releasekit.ecosystems.maven.login import Login
from releasekit.ecosystems.maven.options import Options
from releasekit.ecosystems.maven.portal import CENTRAL, Portal
from releasekit.ecosystems.maven.repository import Repository

if TYPE_CHECKING:
    from releasekit.config.config import Config


def target(config: Config, services: Services) -> Discovery:
    """Raises ConfigError for a `[maven]` table or a registry that cannot be used."""
    options = Options.from_table(config.ecosystem_tables.get("maven", {}))
    ecosystem = Maven(config, options, processes=services.processes, logs=services.logs)
    match config.registries.get("maven", Url(CENTRAL)):
        case Directory(path):
            return Discovery.of(ecosystem, DirectoryRegistry(path, MavenDirectory()))
        case Url(url) if _is_portal(url, options):
            portal = Portal(url, options, config=config, services=services)
            return Discovery.of(ecosystem, portal, partial(Target, deployment=portal))
        case Url(url):
            login = Login.of(config, services.credentials, url)
            repository = Repository(url, login, config=config, services=services)
            return Discovery.of(ecosystem, repository)


def _is_portal(url: str, options: Options) -> bool:
    return options.api == "portal" or (options.api == "auto" and url.rstrip("/") == CENTRAL)
