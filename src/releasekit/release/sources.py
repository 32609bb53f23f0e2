"""The sources looked at a second time: between the build and the first upload of a package.

What counts is what a plan names: the commit, and the manifests with versions and requirements.
Other files are not compared: builds may write into them (a version, a lock file).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from releasekit.errors import PathError
from releasekit.host import durable
from releasekit.model import MAX_MANIFEST_BYTES
from releasekit.plan.source import Head

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.host.process import Processes
    from releasekit.model import Package, PackageId, Plan


class _Stamp(Struct, frozen=True):
    """A manifest as planned. `facts` are what changes with every write or replacement."""

    facts: tuple[int, ...]
    sha256: str

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Raises PathError for one that somebody has removed or replaced since it was read."""
        try:
            return cls(_facts(path), durable.sha256_of(path, max_bytes=MAX_MANIFEST_BYTES))
        except OSError as error:
            raise PathError(
                f"{path}: {error.strerror}", hint="Let nothing change the manifests during a run."
            ) from error


class Sources:
    """As they were when `plan` was made, which is just now.

    `head` tells which commit is checked out; None outside a git repository.
    """

    def __init__(self, plan: Plan, head: Callable[[], Awaitable[str]] | None) -> None:
        # Where they really are, before a build could put a link in the place of one.
        self._places = {
            path: path.resolve() for each in plan.packages for path in each.package.manifests
        }
        self._stamps = {path: _Stamp.of_file(place) for path, place in self._places.items()}
        self._planned = plan.commit.partition("+")[0]
        self._head = head
        self._pinned: dict[Path, str] = {}
        self._built: dict[PackageId, int] = {}
        self._turn = asyncio.Lock()
        # Looks are counted: a look serves every package that was built before it began.
        self._begun = self._seen_by = 0
        self._seen = self._planned

    @classmethod
    def in_checkout(cls, plan: Plan, root: Path, processes: Processes) -> Self:
        return cls(plan, Head(root, processes).look if plan.commit else None)

    @contextlib.contextmanager
    def building(self, packages: Sequence[Package], pinned: Mapping[Path, bytes]) -> Iterator[None]:
        """Around a build, and around the time for which its manifests are `pinned`."""
        self._pinned |= {path: hashlib.sha256(data).hexdigest() for path, data in pinned.items()}
        try:
            yield
        finally:
            for path in pinned:
                self._pinned.pop(path, None)
            self._built.update(dict.fromkeys((each.id for each in packages), self._begun))

    async def look_early(self) -> None:
        """What looks is started slowly: while the first package is built, it costs nothing."""
        if self._head is not None:
            await self._seen_after(0, self._head)

    async def change(self, package: Package) -> str:
        """What of a built `package` differs from the plan; empty when nothing does."""
        if self._head is not None:
            head = await self._seen_after(self._built.get(package.id, 0), self._head)
            if head != self._planned:
                return f"the sources are at {head or 'no commit'}, planned {self._planned}"
        return self._changed_manifest(package)

    async def _seen_after(self, number: int, look: Callable[[], Awaitable[str]]) -> str:
        """The commit seen by a look that began after `number` others had begun."""
        async with self._turn:
            if self._seen_by <= number:
                self._begun += 1
                began, self._seen = self._begun, await look()
                self._seen_by = began
            return self._seen

    def _changed_manifest(self, package: Package) -> str:
        for path in package.manifests:
            stamp, place = self._stamps[path], self._places[path]
            try:
                if _facts(place) == stamp.facts:
                    continue
                current = durable.sha256_of(place, max_bytes=MAX_MANIFEST_BYTES)
            except OSError as error:
                return f"{path}: {error.strerror}"
            if current not in {stamp.sha256, self._pinned.get(path)}:
                return f"{path} is not what it was when it was planned"
        return ""


def _facts(path: Path) -> tuple[int, ...]:
    status = path.lstat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
