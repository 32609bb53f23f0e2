"""The `[npm]` table of releasekit.toml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from releasekit.ecosystems import tables

if TYPE_CHECKING:
    from collections.abc import Mapping

WHERE: Final = tables.where("npm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`packages` and `exclude` are globs of directories on top of what the workspace's own files
    say. `ignore_scripts` leaves out lifecycle scripts; `pass_env` names environment variables that
    they may see besides the ones they always do. `directory_url` is where a `dir:` registry will
    be served: tarball addresses are absolute.
    """

    packages: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    ignore_scripts: bool = False
    pass_env: tuple[str, ...] = ()
    directory_url: str = ""

    @classmethod
    def from_table(cls, table: Mapping[str, object]) -> Self:
        """Raises ConfigError naming the key, its value, and what to write instead."""
        return cls(
            packages=tables.strings(table, "packages", where=WHERE),
            exclude=tables.strings(table, "exclude", where=WHERE),
            ignore_scripts=tables.boolean(table, "ignore-scripts", where=WHERE),
            pass_env=tables.strings(table, "pass-env", where=WHERE),
            directory_url=tables.string(table, "directory-url", where=WHERE),
        )
