"""Maven packages, repositories, and the Central Portal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from releasekit.ecosystems.interface import Discovery, Services, Target
from releasekit.ecosystems.maven.directory_layout import MavenDirectory
from releasekit.ecosystems.maven.ecosystem import Maven
from releasekit.ecosystems.maven.history import packs, version_at
from releasekit.ecosystems.maven.portal import CENTRAL, Portal
from releasekit.ecosystems.maven.prebuilt import MavenFiles
from releasekit.ecosystems.maven.repository import Repository
from releasekit.ecosystems.maven.staging import PortalStaging
from releasekit.errors import ConfigError
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from releasekit.config.config import Config
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.interface import Registry, Staging
    from releasekit.ecosystems.maven import Options
    from releasekit.ecosystems.maven.ecosystem import MavenWorkspace
    from releasekit.model import PackageId


def layout(_config: Config, _options: Options) -> Layout:
    return MavenDirectory()


def target(
    config: Config, options: Options, services: Services, directory: Registry | None
) -> Discovery:
    """Raises ConfigError for a registry that cannot be used."""
    ecosystem = Maven(config, options, services)
    if directory is not None:
        return Discovery.joining(ecosystem, directory, _joined)
    registry = config.registry_url("maven", default=CENTRAL)
    is_central = registry.text.rstrip("/") == CENTRAL
    if options.api == "portal" or (options.api == "auto" and is_central):
        portal = Portal(registry, options, config=config, services=services)
        staging = PortalStaging(portal, options.stage or config.stage)
        return Discovery.joining(
            ecosystem,
            portal,
            partial(_joined, portal=portal, staging=staging, is_new=portal.is_new),
        )
    if options.stage == "always":
        raise ConfigError(
            f'releasekit.toml: [maven] stage = "always": {registry} shows at once what it accepts',
            hint='Leave it out; or write api = "portal", if that is the address of one.',
            problem=Problem.REGISTRY_SETTINGS,
        )
    repository = Repository(registry, options, config=config, services=services)
    return Discovery.joining(ecosystem, repository, partial(_joined, is_new=repository.is_new))


def _joined(
    found: MavenWorkspace,
    there: Registry,
    portal: Portal | None = None,
    staging: Staging | None = None,
    is_new: Callable[[PackageId], bool] | None = None,
) -> Target:
    return Target(
        found,
        there,
        portal,
        prebuilt=MavenFiles(found),
        staging=staging,
        is_new=is_new,
        # One upload waits for all builds anyway.
        singly=found.singly if portal is None else None,
        plan_notes=portal.plan_notes if portal else None,
        missing_tool=found.missing_tool,
        version_at=partial(version_at, found.projects),
        packs=packs,
    )
