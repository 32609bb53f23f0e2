"""The `[go]` table of releasekit.toml."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

from releasekit.ecosystems import tables
from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

WHERE: Final = tables.where("go")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`version` is that of every module nothing else tells one of; `version_file` a file name,
    looked for from the directory of a module upwards; `versions` maps directories (`.` for the
    root) or module paths to versions.

    `exclude` are globs of directories that hold no modules of this workspace, `private` of modules
    that are never published. `remote` is the git remote that tags are pushed to. Without `proxy`,
    no proxy is asked: a tag on the remote is all there is to see.
    """

    version: str = ""
    version_file: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    remote: str = "origin"
    proxy: bool = True

    @classmethod
    def from_table(cls, table: Mapping[str, object]) -> Self:
        """Raises ConfigError naming the key, its value, and what to write instead."""
        return cls(
            version=tables.string(table, "version", where=WHERE),
            version_file=_file_name(table),
            versions=_versions(table),
            exclude=tables.strings(table, "exclude", where=WHERE),
            private=tables.strings(table, "private", where=WHERE),
            remote=_remote(table),
            proxy=tables.boolean(table, "proxy", where=WHERE, default=True),
        )


def _file_name(table: Mapping[str, object]) -> str:
    name = tables.string(table, "version-file", where=WHERE)
    if "\\" in name or ".." in name.split("/") or name.startswith("/"):
        raise ConfigError(
            f"{WHERE} version-file is {name!r}",
            hint='Write a name like "VERSION"; it is looked for beside each go.mod and above.',
        )
    return name


def _remote(table: Mapping[str, object]) -> str:
    remote = tables.string(table, "remote", where=WHERE) or "origin"
    # git would take it for an option, or for another repository than the one of its settings.
    if remote.startswith("-") or any(character in remote for character in ":/ "):
        raise ConfigError(
            f"{WHERE} remote is {remote!r}", hint="Write the name of a remote: `git remote`."
        )
    return remote


def _versions(table: Mapping[str, object]) -> dict[str, str]:
    value = table.get("versions", {})
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise ConfigError(
            f"{WHERE} versions is {value!r}",
            hint='Write a table of strings: versions = { "." = "1.2.3", "cmd/tool" = "0.4.0" }.',
        )
    return dict(value)
