"""The version that a pyproject.toml has had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from releasekit.ecosystems.shared.past import inside, toml_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from releasekit.model import Package


def version_at(package: Package, read: Callable[[Path], bytes | None]) -> str:
    """Implements `Target.version_at`; of a version that a build computes, nothing."""
    version = inside(toml_of(read(package.manifest)), "project", "version")
    try:
        return str(Version(version)) if isinstance(version, str) and len(version) < 200 else ""
    except InvalidVersion:
        return ""
