"""How the other jobs of a release have ended, where they leave that in a directory they share."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Final, Self

from releasekit.errors import ReleasekitError
from releasekit.host.files import read_file
from releasekit.model import Outcome
from releasekit.report import load_results
from releasekit.report.record import MAX_BYTES
from releasekit.text.escape import clip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.model import PackageId, Plan

# In the directory itself, in state directories in it, and in those of checkouts in it.
_WHERE: Final = ("results.json", "*/results.json", "*/*/results.json")
# As for a report that joins them.
_MAX_FILES: Final = 1_000
_EACH_S: Final = 5.0
_MAX_CHARS: Final = 300

_Stamp = tuple[int, int, int]


class OtherJobs:
    """Results that were there before this run say nothing: their job may be at it again."""

    def __init__(self, directory: Path | None, *, commit: str, own: Path) -> None:
        self._directory = directory
        self._commit = commit
        self._own = own
        self._seen: dict[Path, _Stamp] | None = None
        self._ended: dict[Path, dict[PackageId, str]] = {}
        self._looked_s = -_EACH_S
        self._turn = asyncio.Lock()
        self._look()

    @classmethod
    def around(cls, config: Config, plan: Plan) -> Self:
        """Those of this run, which waits for others only where its plan has packages of theirs."""
        directory = config.results_directory if plan.foreign else None
        return cls(directory, commit=plan.commit, own=config.state_directory)

    async def ended_without(self, package: PackageId) -> str:
        """How a job that was to publish it has ended; empty for as long as that is not known."""
        if self._directory is None:
            return ""
        async with self._turn:
            now_s = asyncio.get_running_loop().time()
            if now_s - self._looked_s >= _EACH_S:
                await asyncio.to_thread(self._look)
                self._looked_s = asyncio.get_running_loop().time()
        return next((ended[package] for ended in self._ended.values() if package in ended), "")

    def _look(self) -> None:
        try:
            found = dict(self._found())
        except OSError:
            return  # a directory that has just been removed, for instance; the next look is soon
        before = found if self._seen is None else self._seen
        for path, stamp in found.items():
            if before.get(path) != stamp:
                self._ended[path] = self._read(path)
        # A job that begins removes its last results.
        for path in self._ended.keys() - found.keys():
            del self._ended[path]
        self._seen = found

    def _read(self, path: Path) -> dict[PackageId, str]:
        try:
            report = load_results(read_file(path, max_bytes=MAX_BYTES), where=str(path))
        except (ReleasekitError, OSError):
            return {}  # the registry decides; this only saves time, where it can be read
        if report.commit != self._commit or report.dry_run:
            return {}
        return {
            result.package.id: f"{result.outcome} in another job: {clip(result.reason, _MAX_CHARS)}"
            for result in report.results
            if not result.outcome.done and result.outcome is not Outcome.STAGED
        }

    def _found(self) -> Iterator[tuple[Path, _Stamp]]:
        if self._directory is None:
            return
        below = (self._directory.glob(pattern) for pattern in _WHERE)
        for path in itertools.islice(itertools.chain.from_iterable(below), _MAX_FILES):
            try:
                at = path.lstat()
            except OSError:
                continue
            if path.parent != self._own:
                yield path, (at.st_ino, at.st_mtime_ns, at.st_size)
