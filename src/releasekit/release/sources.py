"""The sources looked at a second time: between the build and the first upload of a package.

Looks at git are shared: one that began after a package was built serves it, however long it waits
for its turn. What a build changes for its own length (pins, a lock file) is no change of the
sources: where there is any, the last word is a look at a moment without builds.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from releasekit.plan.source import Tree, tree_of
from releasekit.state import pins

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.host.process import Processes
    from releasekit.model import Package, PackageId, Plan


@dataclass(frozen=True, slots=True)
class _Stamp:
    """A manifest as planned. `facts` are what changes with every write or replacement."""

    facts: tuple[int, ...]
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Self:
        return cls(_facts(path), _sha256(path.read_bytes()))


class Sources:
    """As they were when `plan` was made, which is just now.

    `look` tells what is checked out; None where that is no git repository.
    """

    def __init__(
        self, plan: Plan, planned: Tree, look: Callable[[], Awaitable[Tree]] | None
    ) -> None:
        packages = [*(each.package for each in plan.packages), *plan.private]
        self._stamps = {
            path: _Stamp.of(path) for each in plan.packages for path in each.package.manifests
        }
        self._directories = {package.directory for package in packages}
        self._planned = replace(planned, head=plan.commit.partition("+")[0])
        self._look = look
        self._pinned: dict[Path, str] = {}
        self._built: dict[PackageId, int] = {}
        self._turn = asyncio.Lock()
        self._calm = asyncio.Event()
        self._calm.set()
        self._builds_begun = self._builds_under_way = 0
        self._looks_begun = self._look_number = 0
        self._seen = planned

    @classmethod
    async def of(cls, plan: Plan, config: Config, processes: Processes) -> Self:
        if not plan.commit:
            return cls(plan, Tree("", {}), None)

        async def look() -> Tree:
            before = pins.in_flight(config.state_directory, config.root)
            tree = await tree_of(config.root, processes)
            left_out = before | pins.in_flight(config.state_directory, config.root)
            return replace(
                tree, changed={p: d for p, d in tree.changed.items() if p not in left_out}
            )

        # The manifests before anybody else has a turn: they are what the plan was made from.
        sources = cls(plan, Tree("", {}), look)
        sources._planned = replace(sources._planned, changed=(await look()).changed)
        return sources

    @contextlib.contextmanager
    def building(self, packages: Sequence[Package], pinned: Mapping[Path, bytes]) -> Iterator[None]:
        """Around a build, and around the time for which its manifests are `pinned`."""
        self._pinned |= {path: _sha256(data) for path, data in pinned.items()}
        self._builds_begun += 1
        self._builds_under_way += 1
        self._calm.clear()
        try:
            yield
        finally:
            self._builds_under_way -= 1
            if not self._builds_under_way:
                self._calm.set()
            for path in pinned:
                self._pinned.pop(path, None)
            self._built.update(dict.fromkeys((each.id for each in packages), self._looks_begun))

    async def change(self, package: Package) -> str:
        """What is not as planned of `package`, which is built; empty when all is."""
        change, after = "", self._built.get(package.id, 0)
        while self._look is not None:
            seen = await self._seen_after(after)
            change = self._difference(package, seen)
            if not change or seen.calm:
                break
            await self._calm.wait()
            after = self._looks_begun
        return change or self._changed_manifest(package)

    async def _seen_after(self, number: int) -> Tree:
        """A look that began after so many others had."""
        async with self._turn:
            if self._look_number <= number and self._look is not None:
                self._looks_begun += 1
                began, builds, busy = self._looks_begun, self._builds_begun, self._builds_under_way
                seen = await self._look()
                self._seen = replace(seen, calm=not busy and builds == self._builds_begun)
                self._look_number = began
            return self._seen

    def _difference(self, package: Package, seen: Tree) -> str:
        if seen.head != self._planned.head:
            return f"the sources are at {seen.head or 'no commit'}, planned {self._planned.head}"
        changed = {path for path, _ in self._planned.changed.items() ^ seen.changed.items()}
        for path in sorted(changed - self._stamps.keys()):
            if self._holder(path) == package.directory:
                return f"{path} is not what it was when it was planned"
        return ""

    def _holder(self, path: Path) -> Path | None:
        """The innermost directory of a package around it."""
        return next((each for each in path.parents if each in self._directories), None)

    def _changed_manifest(self, package: Package) -> str:
        for path in package.manifests:
            stamp = self._stamps[path]
            try:
                if _facts(path) == stamp.facts:
                    continue
                current = _sha256(path.read_bytes())
            except OSError as error:
                return f"{path}: {error.strerror}"
            if current not in {stamp.sha256, self._pinned.get(path)}:
                return f"{path} is not what it was when it was planned"
        return ""


def _facts(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
