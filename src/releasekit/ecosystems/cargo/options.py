"""The `[cargo]` table of releasekit.toml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from releasekit.ecosystems import tables

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`workspaces` are directories with a Cargo.toml, relative to the root; a package that belongs
    to the workspace of another Cargo.toml needs no entry.

    `registry` is a name from `[registries]` of .cargo/config.toml. `verify` compiles each package
    as it will be published. `directory_url` is the URL a directory registry will be found under.
    """

    workspaces: tuple[str, ...] = ()
    registry: str = ""
    verify: bool = False
    directory_url: str = ""
    pass_env: tuple[str, ...] = ()

    @classmethod
    def from_table(cls, table: Mapping[str, object]) -> Self:
        """Raises ConfigError naming the key, its value, and what to write instead."""
        where = tables.where("cargo")
        return cls(
            workspaces=tables.strings(table, "workspaces", where=where),
            registry=tables.string(table, "registry", where=where),
            verify=tables.boolean(table, "verify", where=where),
            directory_url=tables.string(table, "directory-url", where=where),
            pass_env=tables.strings(table, "pass-env", where=where),
        )
