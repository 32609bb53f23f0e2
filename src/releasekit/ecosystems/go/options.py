"""The `[go]` table of releasekit.toml."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from releasekit.ecosystems.tables import OptionTable, string

if TYPE_CHECKING:
    from collections.abc import Mapping


def _file_name(key: str, value: object) -> str:
    name = string(key, value)
    if "\\" in name or ".." in name.split("/") or name.startswith("/"):
        raise ValueError(
            'Write a name like "VERSION"; it is looked for beside each go.mod and above.'
        )
    return name


def _remote(key: str, value: object) -> str:
    remote = string(key, value)
    # git would take it for an option, or for another repository than the one of its settings.
    if remote.startswith("-") or any(character in remote for character in ":/ "):
        raise ValueError("Write the name of a remote: `git remote`.")
    return remote


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(OptionTable):
    """`version` is that of every module nothing else tells one of; `version_file` a file name,
    looked for from the directory of a module upwards; `versions` maps directories (`.` for the
    root) or module paths to versions.

    `exclude` are globs of directories that hold no modules of this workspace, `private` of modules
    that are never published. `remote` is the git remote that tags are pushed to. Without `proxy`,
    no proxy is asked: a tag on the remote is all there is to see.
    """

    ECOSYSTEM: ClassVar[str] = "go"

    version: str = ""
    version_file: str = field(default="", metadata={"read": _file_name})
    versions: Mapping[str, str] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    remote: str = field(default="origin", metadata={"read": _remote})
    proxy: bool = True
