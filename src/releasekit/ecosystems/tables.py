"""An ecosystem's own table of releasekit.toml, read: what every `Options` is made with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


def where(ecosystem: str) -> str:
    """How messages name the table."""
    return f"releasekit.toml: [{ecosystem}]"


def strings(table: Mapping[str, object], key: str, *, where: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ConfigError(
            f"{where} {key} is {value!r}", hint=f'Write a list of strings: {key} = ["…"].'
        )
    return tuple(value)


def string(table: Mapping[str, object], key: str, *, where: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise ConfigError(f"{where} {key} is {value!r}", hint=f'Write a string: {key} = "…".')
    return value


def boolean(table: Mapping[str, object], key: str, *, where: str, default: bool = False) -> bool:
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise ConfigError(f"{where} {key} is {value!r}", hint=f"Write {key} = true, or false.")
    return value
