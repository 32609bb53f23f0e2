"""The version that a pyproject.toml said at another time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from releasekit.ecosystems.pypi import manifest
from releasekit.ecosystems.shared.documents import checked_table
from releasekit.errors import ConfigError
from releasekit.text.bounds import parse_toml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from releasekit.model import Package


def version_at(package: Package, read: Callable[[Path], bytes | None]) -> str:
    """As `interface.Target` has it; empty for one that a build hook tells."""
    path = package.manifest
    data = read(path)
    try:
        document = parse_toml((data or b"").decode())
        said = checked_table(document, "project", path=path)
        if canonicalize_name(str(said.get("name"))) != package.id.name:
            return ""
        version = said.get("version")
        return manifest.canonical_version(version, path=path) if isinstance(version, str) else ""
    except (ValueError, ConfigError):
        return ""
