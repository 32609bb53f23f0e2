"""What a Cargo.toml says of the directories below it, as far as cargo need not be asked."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.cargo.discover import MANIFEST
from releasekit.ecosystems.shared.documents import table_in
from releasekit.ecosystems.shared.globs import Glob
from releasekit.host.files import read_parsed
from releasekit.text.bounds import parse_toml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.ecosystems.interface import Membership, Standing

MAX_BYTES: Final = 1024 * 1024


def workspace_at(directory: Path) -> Membership | None:
    """Cargo takes every package below a workspace's root for its member that is not excluded, or
    refuses it.

    https://doc.rust-lang.org/cargo/reference/workspaces.html#the-members-and-exclude-fields
    """
    path = directory / MANIFEST
    workspace = table_in(read_manifest(path), "workspace") if path.is_file() else {}
    if not workspace:
        return None
    where = f"{path}: workspace.members"
    members = [Glob.parse(text, where=where) for text in _strings(workspace.get("members"))]
    excluded = [PurePosixPath(text) for text in _strings(workspace.get("exclude"))]

    def standing(below: Path) -> Standing:
        if not below.is_relative_to(directory):
            return ""
        there = PurePosixPath(below.relative_to(directory).as_posix())
        # What is listed is a member in an excluded directory too.
        levels = (there, *there.parents)
        listed = any(glob.matches(level.parts) for glob in members for level in levels)
        left_out = any(there.is_relative_to(each) for each in excluded)
        return "excluded" if left_out and not listed else "member"

    return standing


def publishable_at(directory: Path) -> bool:
    """https://doc.rust-lang.org/cargo/reference/manifest.html#the-publish-field"""
    package = table_in(read_manifest(directory / MANIFEST), "package")
    # Without a version it is not published either.
    return "version" in package and package.get("publish") not in (False, [])


def read_manifest(path: Path) -> Mapping[str, object]:
    return read_parsed(path, parse_toml, complaint="is not valid TOML", max_bytes=MAX_BYTES)


def _strings(value: object) -> list[str]:
    """Cargo says what is wrong with anything else."""
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
