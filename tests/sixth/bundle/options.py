"""The `[bundle]` table of releasekit.toml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from releasekit.ecosystems.tables import OptionTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(OptionTable):
    """`exclude` are globs of file names that stay out of every archive."""

    ECOSYSTEM: ClassVar[str] = "bundle"

    exclude: tuple[str, ...] = ()
