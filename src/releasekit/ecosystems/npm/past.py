"""The version that a package.json has had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.npm.manifest import parse_manifest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from releasekit.model import Package


def version_at(package: Package, read: Callable[[Path], bytes | None]) -> str:
    """Implements `Target.version_at`."""
    try:
        version = parse_manifest((read(package.manifest) or b"").decode()).get("version")
    except ValueError:
        return ""
    return version if isinstance(version, str) else ""
