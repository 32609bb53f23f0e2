"""The `[pypi]` table of releasekit.toml."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final, Self

from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

WHERE: Final = "releasekit.toml: [pypi]"


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
        known = [option.name.replace("_", "-") for option in fields(cls)]
        for key in table:
            if key not in known:
                close = difflib.get_close_matches(key, known, n=1)
                hint = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(known)}."
                raise ConfigError(f"{WHERE} has an unknown key {key!r}", hint=hint)
        return cls(
            packages=_strings(table, "packages"),
            exclude=_strings(table, "exclude"),
            config_settings=_settings(table, "config-settings"),
            pass_env=_strings(table, "pass-env"),
        )


def _strings(table: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ConfigError(
            f"{WHERE} {key} is {value!r}", hint=f'Write a list of strings: {key} = ["…"].'
        )
    return tuple(value)


def _settings(table: Mapping[str, object], key: str) -> dict[str, str]:
    value = table.get(key, {})
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise ConfigError(
            f"{WHERE} {key} is {value!r}", hint=f'Write a table of strings: {key} = {{ a = "b" }}.'
        )
    return dict(value)
