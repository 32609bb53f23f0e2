"""Manifests of another time, which may be anything, looked into for one value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.text.bounds import parse_toml

if TYPE_CHECKING:
    from collections.abc import Mapping


def toml_of(data: bytes | None) -> Mapping[str, object]:
    """Nothing for what is none."""
    try:
        return parse_toml((data or b"").decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return {}


def inside(document: object, *keys: str) -> object:
    """What lies at the end of these keys; None where something of it is no table."""
    for key in keys:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document
