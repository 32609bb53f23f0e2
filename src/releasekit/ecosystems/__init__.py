"""The ecosystems releasekit knows: a folder and a line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.folders import table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.config.declaration import EcosystemDeclaration

FOLDERS: Final = (
    "releasekit.ecosystems.pypi",
    "releasekit.ecosystems.npm",
    "releasekit.ecosystems.cargo",
    "releasekit.ecosystems.go",
    "releasekit.ecosystems.maven",
    "releasekit.ecosystems.step",
)
ECOSYSTEMS: Final[Mapping[str, EcosystemDeclaration]] = table(FOLDERS)
