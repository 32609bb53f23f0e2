"""Tables of what was parsed: a manifest, a configuration, an answer, which may hold anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def checked_table(document: Mapping[str, object], *keys: str, path: Path) -> Mapping[str, object]:
    """The table at `keys`, empty when it is not there; raises ConfigError when it is no table."""
    for depth, key in enumerate(keys, start=1):
        value = document.get(key, {})
        if not isinstance(value, dict):
            where = ".".join(keys[:depth])
            raise ConfigError(f"{path}: {where} is {value!r}, not a table of keys and values")
        document = value
    return document


def table_in(document: object, key: str) -> Mapping[str, Any]:
    """Empty where there is none."""
    value = document.get(key) if isinstance(document, dict) else None
    return value if isinstance(value, dict) else {}


def text_in(document: object, key: str) -> str:
    """Empty where there is none."""
    value = document.get(key) if isinstance(document, dict) else None
    return value if isinstance(value, str) else ""
