"""The ecosystem of bundles, and the directory they go to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.config.values import Directory, Url
from releasekit.ecosystems.directory import DirectoryRegistry
from releasekit.ecosystems.interface import Discovery, Services
from releasekit.errors import ConfigError
from sixth.bundle import Inputs
from sixth.bundle.ecosystem import Bundles
from sixth.bundle.layout import Channel
from sixth.bundle.options import Options

if TYPE_CHECKING:
    from releasekit.config.config import Config


def target(config: Config, services: Services) -> Discovery:
    options = Options.from_table(config.ecosystem_tables.get("bundle", {}))
    goes_to = config.registries.get("bundle", Directory(config.root / "bundles"))
    if isinstance(goes_to, Url):
        raise ConfigError("bundle-registry: bundles go into a directory; write dir:PATH")
    seal = services.credentials.get("RELEASEKIT_BUNDLE_SEAL")
    registry = DirectoryRegistry(goes_to.path, Channel(config.own(Inputs).channel))
    return Discovery.of(
        Bundles(config, options, processes=services.processes, seal=seal),
        registry,
    )
