"""Values in parsed manifests, configurations and answers, which may hold anything."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from releasekit.errors import ManifestError
from releasekit.text.bounds import parse_toml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_HEX: Final = frozenset("0123456789abcdef")
# The lengths in hex of the digests that registries show.
_CHARS: Final = {
    "md5": 32,
    "sha1": 40,
    "sha224": 56,
    "sha256": 64,
    "sha384": 96,
    "sha512": 128,
    "sha3_256": 64,
    "sha3_512": 128,
    "blake2s": 64,
    "blake2b": 128,
    "blake2b_256": 64,
}


def known_digest(algorithm: str, value: object) -> str:
    """`algorithm:hex` for the digest that a registry shows; empty for an invalid one."""
    if not isinstance(value, str) or len(value) != _CHARS.get(algorithm):
        return ""
    digest = value.lower()
    return "" if set(digest) - _HEX else f"{algorithm}:{digest}"


def checked_table(document: Mapping[str, object], *keys: str, path: Path) -> Mapping[str, object]:
    """The table at `keys`, empty when it is missing; raises ConfigError for another value."""
    for depth, key in enumerate(keys, start=1):
        value = document.get(key, {})
        if not isinstance(value, dict):
            where = ".".join(keys[:depth])
            raise ManifestError(f"{path}: {where} is {value!r}, not a table of keys and values")
        document = value
    return document


@lru_cache(maxsize=64)
def parse_loosely(data: bytes | None) -> Mapping[str, object]:
    """Parse TOML, as of another time, with or without a byte order mark; empty where it is missing
    or broken.
    """
    try:
        return parse_toml((data or b"").decode("utf-8-sig"))
    except ValueError:
        return {}


def table_in(document: object, key: str) -> Mapping[str, Any]:
    """Empty where there is none."""
    value = document.get(key) if isinstance(document, dict) else None
    return value if isinstance(value, dict) else {}


def text_in(document: object, key: str) -> str:
    """Empty where there is none."""
    value = document.get(key) if isinstance(document, dict) else None
    return value if isinstance(value, str) else ""
