"""From the folder of an ecosystem to what it declares, and to what does its work."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from releasekit.config.values import Directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from releasekit.config.config import PlanConfig
    from releasekit.config.declaration import EcosystemDeclaration
    from releasekit.config.tables import OptionTable
    from releasekit.ecosystems.approval import Approval
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.interface import Discovery, Registry, Roots, Services


def table(folders: Iterable[str]) -> Mapping[str, EcosystemDeclaration]:
    """By name, what each of these packages declares as DECLARATION."""
    declarations: list[EcosystemDeclaration] = [
        import_module(folder).DECLARATION for folder in folders
    ]
    return {declaration.name: declaration for declaration in declarations}


def roots(ecosystem: EcosystemDeclaration) -> Roots:
    """Of an ecosystem that declares its manifests."""
    from releasekit.ecosystems.interface import Roots  # noqa: PLC0415 (as below)

    module = import_module(f"{ecosystem.folder}.roots")
    return Roots(module.workspace_at, module.publishable_at, module.may_list)


def discovery(ecosystem: EcosystemDeclaration, config: PlanConfig, services: Services) -> Discovery:
    """Raises ConfigError for a table or a registry that cannot be used."""
    # Only now: what does the work takes long to import, and --help needs none of it.
    from releasekit.ecosystems.directory import DirectoryRegistry  # noqa: PLC0415

    module = import_module(f"{ecosystem.folder}.target")
    layout: Callable[[OptionTable, object], Layout] = module.layout
    target: Callable[[PlanConfig, OptionTable, Services, Registry | None], Discovery] = (
        module.target
    )
    table = config.ecosystem_tables.get(ecosystem.name, {})
    options = ecosystem.options.from_table({} if ecosystem.options.NAMED else table)
    match config.registries.get(ecosystem.name):
        case Directory(path):
            registry = DirectoryRegistry(path, layout(options, config.own(ecosystem.inputs)))
            return target(config, options, services, registry)
        case _:
            return target(config, options, services, None)


def approval(ecosystem: EcosystemDeclaration, config: PlanConfig, services: Services) -> Approval:
    """Of an ecosystem that `approves`. Raises ConfigError for a registry that cannot be used."""
    module = import_module(f"{ecosystem.folder}.approval")
    approval_of: Callable[[PlanConfig, Services], Approval] = module.approval
    return approval_of(config, services)
