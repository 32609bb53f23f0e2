"""One mvn for a whole reactor, out of which each package is taken as soon as it is deployed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.maven.build import is_deployed
from releasekit.ecosystems.maven.failures import not_built
from releasekit.errors import CommandFailed, ReleasekitError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.aio import Group
    from releasekit.ecosystems.interface import Built, Into
    from releasekit.ecosystems.maven.build import Builder
    from releasekit.model import Package
    from releasekit.state.run_logs import Log

# Between two looks at what another process has written.
_PAUSE_S: Final = 0.1


class RunningBuild:
    """Of `packages`, which are taken in any order, each once; whoever comes first starts it. It is
    over when the last one is taken, when the last of those who wait for one is interrupted, or when
    `group` closes.
    """

    def __init__(
        self,
        builder: Builder,
        packages: Sequence[Package],
        group: Group,
        *,
        pause_s: float = _PAUSE_S,
    ) -> None:
        self._builder = builder
        self._packages = packages
        self._group = group
        self._pause_s = pause_s
        self._there = {package.id: asyncio.Event() for package in packages}
        self._all_taken = asyncio.Event()
        self._begun: tuple[asyncio.Task[None], Log] | None = None
        self._waiting = 0
        self._interrupted = False
        self._has_ended = False
        self._failure: CommandFailed | None = CommandFailed("`mvn` was interrupted")
        self._trouble: ReleasekitError | OSError | None = None

    def has(self, package: Package) -> bool:
        return package.id in self._there

    async def take(self, package: Package, into: Into) -> Built:
        """What is deployed of one package, or why nothing is once mvn has ended."""
        if self._begun is None:
            log = self._builder.services.logs.fresh("build", self._packages[0].id)
            self._begun = self._group.start(self._build(log)), log
        task, log = self._begun
        self._waiting += 1
        try:
            await self._there[package.id].wait()
            if self._trouble is not None:
                raise self._trouble
            if self._interrupted:
                # What is there is being removed.
                return not_built(package, self._failure, log)
            return await self._builder.taken(package, into, self._failure, log)
        except asyncio.CancelledError:
            # Its time is up, it was removed, or the run is being ended: the others are not stopped
            # by what happens to one of them.
            if self._waiting == 1 and not self._has_ended:
                self._interrupted = True
                task.cancel()
            raise
        finally:
            self._waiting -= 1
            del self._there[package.id]
            if not self._there:
                self._all_taken.set()

    async def _build(self, log: Log) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch())
                try:
                    self._failure = await self._builder.run(self._packages, log)
                except (ReleasekitError, OSError) as error:
                    self._trouble = error
                self._has_ended = True
                watching.cancel()
            self._tell_all()
            await self._all_taken.wait()
        finally:
            self._tell_all()
            await self._builder.clear()

    def _tell_all(self) -> None:
        for there in self._there.values():
            there.set()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._pause_s)
            awaited = [
                package
                for package in self._packages
                if package.id in self._there and not self._there[package.id].is_set()
            ]
            for package in await asyncio.to_thread(_deployed, awaited, self._builder.staging):
                self._there[package.id].set()


def _deployed(packages: Sequence[Package], staging: Path) -> list[Package]:
    return [package for package in packages if is_deployed(package, staging)]
