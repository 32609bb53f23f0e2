"""The `[pypi]` table of releasekit.toml."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

from releasekit.ecosystems import tables
from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

WHERE: Final = tables.where("pypi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`packages` and `exclude` are globs of directories, relative to the workspace's root.

    `config_settings` go to every PEP 517 hook; `pass_env` names environment variables that builds
    may see besides the ones they always do.
    """

    packages: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    config_settings: Mapping[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()

    @classmethod
    def from_table(cls, table: Mapping[str, object]) -> Self:
        """Raises ConfigError naming the key, its value, and what to write instead."""
        return cls(
            packages=tables.strings(table, "packages", where=WHERE),
            exclude=tables.strings(table, "exclude", where=WHERE),
            config_settings=_settings(table, "config-settings"),
            pass_env=tables.strings(table, "pass-env", where=WHERE),
        )


def _settings(table: Mapping[str, object], key: str) -> dict[str, str]:
    value = table.get(key, {})
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise ConfigError(
            f"{WHERE} {key} is {value!r}", hint=f'Write a table of strings: {key} = {{ a = "b" }}.'
        )
    return dict(value)
