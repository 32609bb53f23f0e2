"""Values of a TOML file as their author would write them."""

from __future__ import annotations

import json
import re
from datetime import date, time
from typing import Final

from releasekit.text.escape import clip, visible

_SHOWN: Final = 120
# https://toml.io/en/v1.0.0#keys
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def show_toml(value: object) -> str:
    """For messages: on one line, and not longer than one reads."""
    return visible(clip(write_toml(value), _SHOWN))


def write_toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list():
            return f"[{', '.join(map(write_toml, value))}]"
        case dict():
            pairs = ", ".join(
                f"{_write_key(key)} = {write_toml(each)}" for key, each in value.items()
            )
            return f"{{ {pairs} }}" if pairs else "{}"
        case date() | time():
            return value.isoformat()
        case _:
            return str(value)


def _write_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)
