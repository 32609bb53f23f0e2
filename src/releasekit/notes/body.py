"""Placeholder until the part is joined."""

from __future__ import annotations

from typing import Any


async def notes_of(package: Any, **_: Any) -> str:
    return f"{package.id.name} {package.version}"


def joined(texts: Any, *, page: str) -> str:
    return "\n\n".join(dict.fromkeys(texts.values()))
