"""What a Cargo.toml says of the directories below it, read without cargo."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.shared.crates import MANIFEST, read_toml
from releasekit.ecosystems.shared.documents import table_in
from releasekit.text.globs import WILDCARD, Glob

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.interface import Membership, Standing


# https://rust-lang.github.io/rustup/overrides.html#the-toolchain-file
_TOOLCHAINS: Final = ("rust-toolchain", "rust-toolchain.toml")


def find_toolchain(directory: Path, top: Path) -> Path:
    """The directory at or above it, `top` at most, whose file names a toolchain of rustup; `top`
    where there is none.
    """
    levels = [each for each in (directory, *directory.parents) if each.is_relative_to(top)]
    return next(
        (each for each in levels if any((each / name).is_file() for name in _TOOLCHAINS)), top
    )


def workspace_at(directory: Path) -> Membership | None:
    """Cargo takes every package below the root of a workspace for a member unless it is excluded,
    and refuses one that is not listed.

    https://doc.rust-lang.org/cargo/reference/workspaces.html#the-members-and-exclude-fields
    """
    path = directory / MANIFEST
    workspace = table_in(read_toml(path), "workspace") if path.is_file() else {}
    if not workspace:
        return None
    where = f"{path}: workspace.members"
    members = [Glob.parse(text, where=where) for text in _strings(workspace.get("members"))]
    excluded = [PurePosixPath(text) for text in _strings(workspace.get("exclude"))]

    def standing(below: Path) -> Standing:
        if not below.is_relative_to(directory):
            return ""
        there = PurePosixPath(below.relative_to(directory).as_posix())
        # A listed directory is a member even below an excluded one.
        levels = (there, *there.parents)
        listed = any(glob.matches(level.parts) for glob in members for level in levels)
        left_out = any(there.is_relative_to(each) for each in excluded)
        return "excluded" if left_out and not listed else "member"

    return standing


def may_list(top: Path, place: Path, at_any_depth: bool) -> bool:
    """What a glob names may be excluded, what is listed itself may not."""
    path = top / MANIFEST
    workspace = table_in(read_toml(path), "workspace") if path.is_file() else {}
    there = PurePosixPath(place.relative_to(top).as_posix())
    left_out = any(there.is_relative_to(each) for each in _strings(workspace.get("exclude")))
    return any(
        Glob.parse(text, where=f"{path}: workspace.members").may_name_below(
            there.parts, at_any_depth=at_any_depth
        )
        for text in _strings(workspace.get("members"))
        if not (left_out and WILDCARD.search(text))
    )


def publishable_at(directory: Path) -> bool:
    """https://doc.rust-lang.org/cargo/reference/manifest.html#the-publish-field"""
    package = table_in(read_toml(directory / MANIFEST), "package")
    # Without a version it is not published either.
    return "version" in package and package.get("publish") not in (False, [])


def _strings(value: object) -> list[str]:
    """Cargo itself complains of anything else."""
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
