"""The version that a Cargo.toml said at another time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.text.bounds import parse_toml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from releasekit.model import Package


def version_at(package: Package, read: Callable[[Path], bytes | None]) -> str:
    """As `interface.Target` has it: its own, or that of its workspace.

    https://doc.rust-lang.org/cargo/reference/workspaces.html#the-package-table
    """
    document = _document(read(package.manifest))
    said = table_in(document, "package")
    if text_in(said, "name") != package.id.name:
        return ""
    if table_in(said, "version").get("workspace") is not True:
        return text_in(said, "version")
    shared = _document(read(package.inherits[0])) if package.inherits else document
    return text_in(table_in(table_in(shared, "workspace"), "package"), "version")


def _document(data: bytes | None) -> dict[str, object]:
    try:
        return parse_toml((data or b"").decode())
    except ValueError:
        return {}
