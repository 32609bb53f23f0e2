"""The ecosystem of bundles, and the directory they go to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.directory import DirectoryRegistry
from releasekit.ecosystems.interface import Discovery, Services
from releasekit.errors import ConfigError
from sixth.bundle import Inputs
from sixth.bundle.ecosystem import Bundles
from sixth.bundle.layout import Channel

if TYPE_CHECKING:
    from releasekit.config.config import Config
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.interface import Registry
    from sixth.bundle import Options


def layout(_options: Options, inputs: Inputs) -> Layout:
    return Channel(inputs.channel)


def target(
    config: Config, options: Options, services: Services, directory: Registry | None
) -> Discovery:
    if config.registry_url("bundle", default="").text:
        raise ConfigError("bundle-registry: bundles go into a directory; write dir:PATH")
    seal = services.credentials.get("RELEASEKIT_BUNDLE_SEAL")
    bundles = layout(options, config.own(Inputs))
    return Discovery.joining(
        Bundles(config, options, processes=services.processes, seal=seal),
        directory or DirectoryRegistry(config.root / "bundles", bundles),
    )
