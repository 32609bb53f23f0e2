"""The `[bundle]` table of releasekit.toml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from releasekit.ecosystems import tables

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`exclude` are globs of file names that stay out of every archive."""

    exclude: tuple[str, ...] = ()

    @classmethod
    def from_table(cls, table: Mapping[str, object]) -> Self:
        where = tables.where("bundle")
        return cls(exclude=tables.strings(table, "exclude", where=where))
