"""What a pyproject.toml says of the directories below it, and of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.pypi import discover, manifest
from releasekit.ecosystems.shared.documents import checked_table

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.interface import Membership


def workspace_at(directory: Path) -> Membership | None:
    path = directory / discover.MANIFEST
    document = manifest.read_pyproject(path) if path.is_file() else {}
    if "workspace" not in checked_table(document, "tool", "uv", path=path):
        return None
    return discover.membership(directory, *discover.workspace_globs(document, path))


def publishable_at(directory: Path) -> bool:
    path = directory / discover.MANIFEST
    document = manifest.read_pyproject(path)
    uv = checked_table(document, "tool", "uv", path=path)
    if not manifest.is_project(document) or uv.get("managed") is False:
        return False
    # What Poetry alone understands is named: its owner has to be told what to write.
    return "project" not in document or not manifest.parse_project(document, path).unpublishable
