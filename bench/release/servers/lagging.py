"""Versions that an index shows only some time after they were uploaded."""

from __future__ import annotations

import time
from typing import Generic, TypeVar

T = TypeVar("T")


class Lagging(Generic[T]):
    """By package, what was uploaded of it, oldest first."""

    def __init__(self, lag_s: float) -> None:
        self._lag_s = lag_s
        self._held: dict[str, list[tuple[float, T]]] = {}

    def add(self, package: str, entry: T) -> None:
        since_s = time.monotonic() + self._lag_s
        self._held.setdefault(package, []).append((since_s, entry))

    def shown(self, package: str) -> list[T]:
        now_s = time.monotonic()
        return [entry for since_s, entry in self._held.get(package, ()) if since_s <= now_s]

    def everything(self) -> dict[str, list[T]]:
        return {name: [entry for _, entry in held] for name, held in self._held.items()}
