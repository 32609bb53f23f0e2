"""JavaScript packages and npm-like registries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.interface import Discovery, Services, Target
from releasekit.ecosystems.npm import Inputs, document
from releasekit.ecosystems.npm.directory_layout import PackumentDirectory
from releasekit.ecosystems.npm.ecosystem import Npm
from releasekit.ecosystems.npm.entry_points import warnings_of
from releasekit.ecosystems.npm.registry import NPMJS, NpmRegistry

if TYPE_CHECKING:
    from releasekit.config.config import Config
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.interface import Registry
    from releasekit.ecosystems.npm import Options
    from releasekit.ecosystems.npm.ecosystem import NpmWorkspace


def layout(config: Config, options: Options) -> Layout:
    return PackumentDirectory(tag=config.own(Inputs).tag, url=options.directory_url or NPMJS)


def target(
    config: Config, options: Options, services: Services, directory: Registry | None
) -> Discovery:
    """Raises ConfigError for a tag or a registry that cannot be used."""
    document.checked_tag(config.own(Inputs).tag, where="npm-tag")
    registry = directory or NpmRegistry(config, services)
    is_new = registry.is_new if isinstance(registry, NpmRegistry) else None

    def goes_to(found: NpmWorkspace, registry: Registry) -> Target:
        return Target(
            found,
            registry,
            plan_notes=found.plan_notes,
            follow_up=found,
            warnings_of=warnings_of,
            is_new=is_new,
        )

    return Discovery.joining(Npm(config, options, services), registry, goes_to)
