"""The version that a Cargo.toml has had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.shared.past import inside, toml_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from releasekit.model import Package


def version_at(package: Package, read: Callable[[Path], bytes | None]) -> str:
    """Implements `Target.version_at`; a member may have that of its workspace.

    https://doc.rust-lang.org/cargo/reference/workspaces.html#the-package-table
    """
    version = inside(toml_of(read(package.manifest)), "package", "version")
    if inside(version, "workspace") is True:
        above = (each / package.manifest.name for each in package.manifest.parent.parents)
        found = (inside(toml_of(read(path)), "workspace", "package", "version") for path in above)
        version = next(filter(None, found), "")
    return version if isinstance(version, str) else ""
