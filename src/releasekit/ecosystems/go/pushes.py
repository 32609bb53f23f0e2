"""What belongs into one push, and how calls that many wait for are made once."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Generic, TypeVar

from releasekit.errors import PackageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from releasekit.ecosystems.go.objects import Bundle
    from releasekit.model import Package, PackageId

T = TypeVar("T")


class Together:
    """What this run has built: the first package to be uploaded takes along, in one atomic push,
    all that needs nothing but what goes with it.

    A module that needs anything else (a package of another ecosystem, a module of an earlier run)
    waits for its own upload, which comes when all of that is visible; it is never ahead of it.
    """

    def __init__(self) -> None:
        self._built: dict[PackageId, tuple[Package, Bundle]] = {}
        self._there: set[PackageId] = set()

    def built(self, package: Package, bundle: Bundle) -> None:
        """Told in dependency order."""
        self._built[package.id] = (package, bundle)

    def going_with(
        self, package: Package, *, without: Collection[PackageId] = ()
    ) -> list[tuple[Package, Bundle]]:
        """Its companions, without itself; nothing that needs one of `without` is among them."""
        # That it is uploaded says that all it needs is there.
        self._there.update(dependency.on for dependency in package.dependencies)
        going = {package.id} | self._there
        companions = []
        for name, (other, bundle) in self._built.items():
            needs = {dependency.on for dependency in other.dependencies}
            if name != package.id and name not in without and needs <= going - set(without):
                going.add(name)
                companions.append((other, bundle))
        return companions


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
