"""From the folder of an ecosystem to what it declares, and to what does its work."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from releasekit.config.config import Config
    from releasekit.config.ecosystem import EcosystemDeclaration
    from releasekit.ecosystems.interface import Discovery, Services


def table(folders: Iterable[str]) -> Mapping[str, EcosystemDeclaration]:
    """By name, what each of these packages declares as DECLARATION."""
    declarations: list[EcosystemDeclaration] = [
        import_module(folder).DECLARATION for folder in folders
    ]
    return {declaration.name: declaration for declaration in declarations}


def target(ecosystem: EcosystemDeclaration, config: Config, services: Services) -> Discovery:
    """Raises ConfigError for a table or a registry that cannot be used."""
    # Only now: what does the work takes long to import, and --help needs none of it.
    module = import_module(f"{ecosystem.folder}.target")
    make: Callable[[Config, Services], Discovery] = module.target
    return make(config, services)
