"""The version that a package.json said at another time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.npm.manifest import parse_manifest
from releasekit.ecosystems.shared.documents import text_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from releasekit.model import Package


def version_at(package: Package, read: Callable[[Path], bytes | None]) -> str:
    """As `interface.Target` has it."""
    data = read(package.manifest)
    try:
        document = parse_manifest((data or b"").decode())
    except ValueError:
        return ""
    is_this = text_in(document, "name") == package.id.name
    return text_in(document, "version") if is_this else ""
