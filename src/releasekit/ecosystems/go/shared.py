"""Calls that many wait for, made once."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Generic, TypeVar

from releasekit.errors import PackageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


class Shared(Generic[T]):
    """A call whose answer, or error, serves everybody who asked before it began."""

    def __init__(self, call: Callable[[], Awaitable[T]]) -> None:
        self._call = call
        self._count = itertools.count()
        self._began = -1
        self._answer: list[T] = []
        self._error: PackageError | None = None
        self._turn = asyncio.Lock()

    async def get(self) -> T:
        asked = next(self._count)
        async with self._turn:
            if self._began < asked:
                await self._ask()
            if self._error is not None:
                raise self._error
            return self._answer[-1]

    async def _ask(self) -> None:
        # Whoever is about to ask in this very moment is served too.
        await asyncio.sleep(0)
        began = next(self._count)
        self._error = None
        try:
            self._answer = [await self._call()]
        except PackageError as error:
            self._error = error
        self._began = began
