"""Go modules: tags on a git remote, and the proxies that serve them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from releasekit.ecosystems.go.directory_layout import ProxyDirectory
from releasekit.ecosystems.go.ecosystem import Go
from releasekit.ecosystems.go.module_zip import packs
from releasekit.ecosystems.go.registry import TagRegistry
from releasekit.ecosystems.interface import Discovery, Services, Target

if TYPE_CHECKING:
    from releasekit.config.config import Config
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.go import Options
    from releasekit.ecosystems.interface import Registry


def layout(_config: Config, _options: Options) -> Layout:
    return ProxyDirectory()


def target(
    config: Config, options: Options, services: Services, directory: Registry | None
) -> Discovery:
    """Raises ConfigError for a proxy that cannot be used."""
    if directory is not None:
        ecosystem = Go(config, options, services, directory.lookup)
        # The hash of a module covers the hashes of what it needs.
        target = partial(Target, builds_on_published=True, packs=packs)
        return Discovery.joining(ecosystem, directory, target)
    tags = TagRegistry(config, options, services)
    ecosystem = Go(config, options, services, tags.lookup)
    target = partial(
        Target,
        deployment=tags,
        whole=False,
        builds_on_published=True,
        own_tag=tags.own_tag,
        is_new=tags.is_new,
        packs=packs,
    )
    return Discovery.joining(ecosystem, tags, target)
