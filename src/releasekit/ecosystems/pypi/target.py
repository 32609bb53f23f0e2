"""Python packages and PyPI-like registries."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from releasekit.ecosystems.interface import Discovery, Services, Target
from releasekit.ecosystems.pypi.directory_layout import SimpleDirectory
from releasekit.ecosystems.pypi.ecosystem import PyPI
from releasekit.ecosystems.pypi.examined import warnings_of
from releasekit.ecosystems.pypi.registry import PackageIndex

if TYPE_CHECKING:
    from releasekit.config.config import Config
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.interface import Registry
    from releasekit.ecosystems.pypi import Options


def layout(_config: Config, _options: Options) -> Layout:
    return SimpleDirectory()


def target(
    config: Config, options: Options, services: Services, directory: Registry | None
) -> Discovery:
    """Raises ConfigError for an index or a registry that cannot be used."""
    ecosystem = PyPI(config, options, services)
    if directory is not None:
        examined = partial(warnings_of, on_pypi=False)
        return Discovery.joining(ecosystem, directory, partial(Target, warnings_of=examined))
    index = PackageIndex(config, services)
    goes_to = partial(
        Target,
        plan_notes=index.plan_notes,
        warnings_of=partial(warnings_of, on_pypi=index.is_pypi),
        is_new=index.is_new,
    )
    return Discovery.joining(ecosystem, index, goes_to)
