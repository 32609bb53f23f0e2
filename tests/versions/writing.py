"""Writes versions into a workspace, as the command does after it has decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.host.edits import Edits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.decided import Ranges
    from releasekit.ecosystems.interface import Target


def write_versions(
    root: Path, target: Target, versions: Mapping[str, str], *, ranges: Ranges = "raise"
) -> set[str]:
    """The files it edits, by their paths in the workspace."""
    edits = Edits(root)
    target.versioning.edit(versions, edits, ranges)
    changes = edits.list_changes()
    for path, data in changes.items():
        assert data is not None
        path.write_bytes(data)
    return {path.relative_to(root).as_posix() for path in changes}
