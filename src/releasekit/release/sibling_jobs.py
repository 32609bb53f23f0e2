"""What other jobs publish and packages of this one need: asked for until the registries show it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from releasekit.aio import growing_pauses
from releasekit.errors import PackageError, ReleasekitError
from releasekit.graph import reachable
from releasekit.host.files import read_file
from releasekit.model import Action, Outcome, PlannedPackage
from releasekit.problems import Problem
from releasekit.release.package_run import PackageRun
from releasekit.report import load_results
from releasekit.report.results import MAX_BYTES
from releasekit.report.text import few, seconds
from releasekit.text.escape import clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from releasekit.config.config import PlanConfig
    from releasekit.model import PackageId, Plan
    from releasekit.release.events import Events
    from releasekit.release.polling import Lookups


class _Awaited(Struct, kw_only=True):
    """One package. `unmet` is what it needs itself, as far as that is known here, and what is not
    there yet: until it is, no task asks for the package. `never` says why it will not come.
    """

    run: PackageRun
    unmet: set[PackageId]
    due: asyncio.Event = field(default_factory=asyncio.Event)
    never: str = ""


class ExternalPackages:
    """Each package is asked for by one task, however many need it. `needs` says which of them each
    package of this run needs.
    """

    def __init__(
        self,
        plan: Plan,
        runs: Mapping[PackageId, PackageRun],
        *,
        config: PlanConfig,
        lookups: Lookups,
        events: Events,
    ) -> None:
        self._runs = runs
        self._wait_s = config.wait
        self._lookups = lookups
        self._events = events
        self._others = OtherJobs(
            config.results_directory if plan.foreign else None,
            commit=plan.commit,
            own=config.state_directory,
        )
        self._ending = asyncio.Event()
        self._asking = 0
        self._progress_s = 0.0
        packages = [*(each.package for each in plan.packages), *plan.foreign]
        known = {package.id for package in packages}
        self._dependents: dict[PackageId, set[PackageId]] = {package: set() for package in known}
        for package in packages:
            for need in package.dependencies:
                if need.on in known:
                    self._dependents[need.on].add(package.id)
        foreign = {package.id for package in plan.foreign}
        self.needs = {
            each.package.id: foreign.intersection(need.on for need in each.package.dependencies)
            for each in plan.packages
        }
        kept = plan.kept()
        self._awaited: dict[PackageId, _Awaited] = {}
        for package in plan.foreign:
            planned = PlannedPackage(package=package, action=Action.PUBLISH, reason="")
            needs = {need.on for need in package.dependencies}
            each = _Awaited(run=PackageRun.from_plan(planned), unmet=(needs & known) - kept)
            self._awaited[package.id] = each
            if not each.unmet:
                each.due.set()

    def __contains__(self, package: PackageId) -> bool:
        return package in self._awaited

    def __iter__(self) -> Iterator[PackageId]:
        return iter(self._awaited)

    def stop(self) -> None:
        """The run ends: nothing is waited for any more."""
        self._ending.set()
        for each in self._awaited.values():
            each.due.set()

    def shown(self, package: PackageId) -> None:
        """The registry shows it, from any publisher."""
        self._progress_s = self._events.now_s()
        self._met(package)

    def settled(self, run: PackageRun) -> None:
        """Nothing more becomes of a package of this run."""
        if run.visible:
            self.shown(run.id)
        elif run.unconfirmed or run.awaits_approval:
            # A job that sees it later may still publish what needs it.
            self._met(run.id)
        else:
            self.lost(run.id)

    def _met(self, package: PackageId) -> None:
        for dependent in self._dependents.get(package, ()):
            if each := self._awaited.get(dependent):
                each.unmet.discard(package)
                if not each.unmet:
                    each.due.set()

    def lost(self, package: PackageId) -> None:
        """No job is going to publish it, nor what needs it."""
        if not self._awaited:
            return
        for dependent in reachable([package], self._dependents.__getitem__) - {package}:
            if each := self._awaited.get(dependent):
                each.never = each.never or f"not going to be published, as it needs {package}"
                each.due.set()

    async def wait(self, package: PackageId) -> None:
        """Raises PackageError, and lets what needs it know, where no job publishes the package."""
        each = self._awaited[package]
        needing = sorted(self._dependents[package] & self._runs.keys())
        detail = (
            f"another job publishes it; {few(list(map(str, needing)), 3)} "
            f"{'needs' if len(needing) == 1 else 'need'} it; for up to {seconds(self._wait_s)}"
        )
        with self._events.span("wait", each.run, detail=detail):
            await each.due.wait()
            self._asking += 1
            try:
                missing = await self._until_shown(each)
            finally:
                self._asking -= 1
            if each.run.visible:
                self.shown(package)
                return
            if not self._ending.is_set():
                for dependent in needing:
                    self._runs[dependent].lacks[package] = missing
                self.lost(package)
            raise PackageError(missing, problem=Problem.OTHER_JOB)

    async def _until_shown(self, each: _Awaited) -> str:
        """Why it is not there in the end."""
        began_s = self._events.now_s()
        polling = self._lookups.polling
        pauses = growing_pauses(polling.first_pause_s, polling.foreign_pause_s)
        before = ""
        while not self._ending.is_set():
            ended = each.never or await self._others.ended_without(each.run.id)
            # Whatever else may have become of it: what counts is what the registry shows.
            try:
                trouble = await self._lookups.poll_once(each.run)
            except PackageError as error:
                ended = trouble = str(error)
            waited_s = self._events.now_s() - max(began_s, self._progress_s)
            if each.run.visible:
                return ""
            if ended or waited_s >= self._wait_s:
                there = f"not on its registry after {seconds(self._wait_s)}: {trouble}"
                return ended or there.removesuffix(": ")
            pause_s = max(next(pauses), self._asking / polling.foreign_per_s)
            if trouble != before:
                self._events.waiting(each.run, pause_s, trouble or "it is not there yet")
            before = trouble
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(pause_s, self._wait_s - waited_s)):
                    await self._ending.wait()
        return "the run ended first"


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
        if self._directory is None:
            return
        below = (self._directory.glob(pattern) for pattern in _WHERE)
        found: dict[Path, _Stamp] = {}
        try:
            for path in itertools.islice(itertools.chain.from_iterable(below), _MAX_FILES):
                with contextlib.suppress(OSError):
                    at = path.lstat()
                    if path.parent != self._own:
                        found[path] = (at.st_ino, at.st_mtime_ns, at.st_size)
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
