"""Python packages and PyPI-like registries."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from releasekit.ecosystems.interface import Discovery, Services, Target
from releasekit.ecosystems.pypi.directory_layout import SimpleDirectory
from releasekit.ecosystems.pypi.ecosystem import PyPI
from releasekit.ecosystems.pypi.examined import pinned_apart, warnings_of
from releasekit.ecosystems.pypi.history import offered_at, packs, version_at
from releasekit.ecosystems.pypi.prebuilt import PythonFiles
from releasekit.ecosystems.pypi.registry import IndexAttesting, PackageIndex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.config.config import Config
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.interface import Attesting, Registry
    from releasekit.ecosystems.pypi import Options
    from releasekit.ecosystems.pypi.ecosystem import PyPIWorkspace
    from releasekit.model import PlannedPackage


def layout(_config: Config, options: Options) -> Layout:
    return SimpleDirectory(options.directory_url)


def target(
    config: Config, options: Options, services: Services, directory: Registry | None
) -> Discovery:
    """Raises ConfigError for an index or a registry that cannot be used."""
    ecosystem = PyPI(config, options, services)
    if directory is not None:
        return Discovery.joining(ecosystem, directory, partial(_joined, attesting=IndexAttesting()))
    index = PackageIndex(config, services)
    takes_attestations = index.is_pypi or config.attestations == "required"
    private = config.trust_config is not None
    attesting = IndexAttesting(index, private) if takes_attestations else None
    return Discovery.joining(ecosystem, index, partial(_joined, index=index, attesting=attesting))


def _joined(
    found: PyPIWorkspace,
    there: Registry,
    *,
    index: PackageIndex | None = None,
    attesting: Attesting | None = None,
) -> Target:
    def plan_notes(planned: Sequence[PlannedPackage]) -> str:
        notes = [index.plan_notes(planned) if index else "", found.note_of_pins(planned)]
        return ". ".join(filter(None, notes))

    return Target(
        found,
        there,
        plan_notes=plan_notes,
        warnings_of=partial(warnings_of, on_pypi=bool(index and index.is_pypi)),
        pinned_apart=pinned_apart,
        is_new=index.is_new if index else None,
        prebuilt=PythonFiles(found),
        attesting=attesting,
        version_at=version_at,
        packs=packs,
        offered_at=offered_at,
    )
