"""Where the files of a package are kept: from its build until a registry shows them, and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.model import Package


def directory_of(package: Package, state_directory: Path) -> Path:
    """A colon, which Maven puts between group and artifact, is no part of a path on Windows."""
    parts = package.id.name.split(":")
    return state_directory.joinpath("dist", package.id.ecosystem, *parts, package.version)
