"""The `[pypi]` table of releasekit.toml."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from releasekit.ecosystems.tables import OptionTable

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(OptionTable):
    """`packages` and `exclude` are globs of directories, relative to the workspace's root.

    `config_settings` go to every PEP 517 hook; `pass_env` names environment variables that builds
    may see besides the ones they always do.
    """

    ECOSYSTEM: ClassVar[str] = "pypi"

    packages: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    config_settings: Mapping[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
