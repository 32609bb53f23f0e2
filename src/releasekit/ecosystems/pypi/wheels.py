"""Wheels of a workspace's own packages, for the builds that need them installed."""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from releasekit.ecosystems.pypi.discover import build_closure
from releasekit.state.lock_order import Kind, turn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from releasekit.ecosystems.pypi.build import Builder
    from releasekit.ecosystems.pypi.manifest import PyProject

    Projects = Mapping[str, PyProject]
    Earlier = Callable[[str], Path] | None


class InRepoWheels:
    """Those of one workspace, each made once: what this run has built of a package, or an earlier
    one, or else a build that is never published, as the package may be on its registry already, or
    be planned for later.
    """

    def __init__(self, builder: Callable[[], Awaitable[Builder]]) -> None:
        self._builder = builder
        self._wheels: dict[str, Path] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def built(self, name: str, wheel: Path) -> None:
        self._wheels[name] = wheel

    async def needed_by(
        self, project: PyProject, projects: Projects, earlier: Earlier = None
    ) -> dict[str, Path]:
        """What its build environment needs of `projects`, all of the workspace. `earlier` tells
        where an earlier run would have put what it built of a package.
        """
        closure = build_closure(project, projects)
        return {name: await self._wheel(name, projects, earlier) for name in closure}

    async def _wheel(self, name: str, projects: Projects, earlier: Earlier) -> Path:
        if name not in self._wheels and earlier is not None:
            self._wheels.update((name, wheel) for wheel in earlier(name).glob("*.whl"))
        if name in self._wheels:
            return self._wheels[name]
        # Before its own turn, so that nobody has the turns of two wheels.
        wheels = await self.needed_by(projects[name], projects, earlier)
        builder = await self._builder()
        async with turn(Kind.WHEEL, name, self._locks[name]):
            if name not in self._wheels:
                directory = await asyncio.to_thread(_directory_in, builder.scratch)
                built = await builder.build(projects[name], directory / name, wheels=wheels)
                self._wheels[name] = built[-1].path
            return self._wheels[name]


def _directory_in(scratch: Path) -> Path:
    """A new one: another workspace may have a package of the same name."""
    return Path(tempfile.mkdtemp(prefix="in-repo-", dir=scratch))
