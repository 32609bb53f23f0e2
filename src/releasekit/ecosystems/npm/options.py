"""The `[npm]` table of releasekit.toml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from releasekit.ecosystems.tables import OptionTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(OptionTable):
    """`packages` and `exclude` are globs of directories on top of what the workspace's own files
    say. `ignore_scripts` leaves out lifecycle scripts; `pass_env` names environment variables that
    they may see besides the ones they always do. `directory_url` is where a `dir:` registry will
    be served: tarball addresses are absolute.
    """

    ECOSYSTEM: ClassVar[str] = "npm"

    packages: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    ignore_scripts: bool = False
    pass_env: tuple[str, ...] = ()
    directory_url: str = ""
