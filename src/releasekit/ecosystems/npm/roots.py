"""What a package.json or a pnpm-workspace.yaml says of the directories below it, and of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.npm import manifest, workspace

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.interface import Membership


def workspace_at(directory: Path) -> Membership | None:
    """None where its files only hold settings."""
    if not any((directory / name).is_file() for name in workspace.FILES):
        return None
    files = workspace.read_workspace_files(directory)
    return files.standing if files.members else None


def publishable_at(directory: Path) -> bool:
    path = directory / workspace.MANIFEST
    if not path.is_file():
        return False
    package = manifest.parse_package(manifest.read_manifest(path), path)
    return package is not None and not package.unpublishable
