"""The `[cargo]` table of releasekit.toml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from releasekit.ecosystems.tables import OptionTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(OptionTable):
    """`workspaces` are directories with a Cargo.toml, relative to the root; a package that belongs
    to the workspace of another Cargo.toml needs no entry.

    `registry` is a name from `[registries]` of .cargo/config.toml. `verify` compiles each package
    as it will be published. `directory_url` is the URL a directory registry will be found under.
    """

    ECOSYSTEM: ClassVar[str] = "cargo"

    workspaces: tuple[str, ...] = ()
    registry: str = ""
    verify: bool = False
    directory_url: str = ""
    pass_env: tuple[str, ...] = ()
