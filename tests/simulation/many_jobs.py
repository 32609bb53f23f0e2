"""One release by many jobs on the virtual clock: the real publish line of each, over one registry
with its lag and its limits.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fakes import FakeWorkspace, config, package, plan
from memory_log import MemoryLog
from releasekit.ecosystems.cargo.rates import Limit, Pace
from releasekit.ecosystems.interface import Target
from releasekit.errors import Transient
from releasekit.fields import replace
from releasekit.model import Published
from releasekit.plan.make import waiting_elsewhere
from releasekit.plan.shards import partition
from releasekit.release.release import ReleaseRun
from releasekit.release.sources import Sources
from releasekit.state.directory import make_state_directory
from releasekit.state.journal import Journal
from simulation import virtual_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from releasekit.errors import BuildFailed
    from releasekit.model import Artifact, Outcome, Package, PackageId

URL = "https://registry.example/"
NO_LIMIT = Limit(10**9, 0.0)


@dataclass(kw_only=True)
class Index:
    """What all jobs see: a file `lag_s` after its upload, of which `limit` says how many there may
    be. `early` are uploads whose dependencies nobody could see.
    """

    lag_s: float = 3.0
    upload_s: float = 0.2
    answer_s: float = 0.1
    limit: Limit = NO_LIMIT
    shown_at: dict[str, float] = field(default_factory=dict)
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    puts: list[str] = field(default_factory=list)
    questions: int = 0
    refused: int = 0
    early: list[tuple[str, str]] = field(default_factory=list)
    _spent: float = 0.0
    _since: float = 0.0

    def refuses_s(self, now: float) -> float:
        """0, or how long it asks to wait."""
        if self.limit is NO_LIMIT:
            return 0.0
        self._spent = max(0.0, self._spent - (now - self._since) / self.limit.interval_s)
        self._since = now
        if self._spent > self.limit.burst - 0.999:
            self.refused += 1
            return (self._spent - self.limit.burst + 1) * self.limit.interval_s
        self._spent += 1
        return 0.0

    def shows(self, name: str, now: float) -> bool:
        return self.shown_at.get(name, math.inf) <= now


@dataclass
class Client:
    """A job's own way to the index, as `SparseRegistry` goes it."""

    index: Index
    pace: Pace
    url: str = URL

    def check_credentials(self) -> str:
        return "nothing, which nobody needs"

    async def lookup(self, package: Package) -> Published | None:
        self.index.questions += 1
        await asyncio.sleep(self.index.answer_s)
        name = package.id.name
        if not self.index.shows(name, asyncio.get_running_loop().time()):
            return None
        return Published(files=self.index.files[name])

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        index, name, clock = self.index, package.id.name, asyncio.get_running_loop().time
        if wait_s := self.pace.wait_s(name, clock()):
            raise Transient(
                "it is not its turn yet", retry_after=wait_s, asked_s=self.pace.asked_s(clock())
            )
        for need in package.dependencies:
            if not index.shows(need.on.name, clock()):
                index.early.append((name, need.on.name))
        await asyncio.sleep(index.upload_s)
        if asked_s := index.refuses_s(clock()):
            wait_s = self.pace.record_refusal(name, clock(), asked_s)
            raise Transient("429", retry_after=wait_s, asked_s=asked_s)
        self.pace.record_acceptance(name)
        index.puts.append(name)
        index.files[name] = {file.filename: f"sha256:{file.sha256}" for file in artifacts}
        index.shown_at[name] = clock() + index.lag_s


@dataclass
class Timed(FakeWorkspace):
    """Every build takes as long as `seconds` says."""

    seconds: Mapping[PackageId, float] = field(default_factory=dict)

    async def build(
        self, packages: Sequence[Package], into: Callable[[Package], Path]
    ) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        await asyncio.sleep(sum(self.seconds[each.id] for each in packages))
        return await super().build(packages, into)


@dataclass(frozen=True)
class Outcomes:
    """How it went: `took_s` on the virtual clock; `parts` says which job each package was in."""

    took_s: float
    outcomes: Counter[Outcome]
    index: Index
    parts: Mapping[PackageId, int]


def layers(width: int, depth: int, needs: int = 2) -> list[Package]:
    """A monorepo in levels, each package on neighbours of the level below."""
    return [
        package(
            f"l{level:03}-{place:04}",
            *(
                f"l{level - 1:03}-{(place + step) % width:04}"
                for step in range(needs * bool(level))
            ),
        )
        for level in range(depth)
        for place in range(width)
    ]


def lower_bound_s(
    packages: Sequence[Package],
    seconds: Mapping[PackageId, float],
    index: Index,
    *,
    jobs: int,
    builds: int,
) -> float:
    """No release can be quicker: work, the longest path, the limit of the registry."""
    work_s = sum(seconds.values()) / jobs / builds
    seen_s = index.upload_s + index.lag_s
    path_s: dict[PackageId, float] = {}
    for each in packages:
        before = max((path_s[need.on] for need in each.dependencies), default=seconds[each.id])
        path_s[each.id] = max(before, seconds[each.id]) + seen_s
    return max(work_s + seen_s, *path_s.values(), index.limit.duration_s(len(packages)))


def release(
    root: Path,
    packages: Sequence[Package],
    seconds: Mapping[PackageId, float],
    index: Index,
    *,
    jobs: int,
    builds: int = 2,
) -> Outcomes:
    """All of `packages`, dependencies first, by so many jobs with so many builds at a time."""
    parts = partition(packages, seconds, jobs)
    for number in range(1, max(parts.values()) + 1):
        (root / str(number)).mkdir()
        (root / str(number) / "manifest").write_text("")

    async def main() -> list[Outcome]:
        results = await asyncio.gather(
            *(
                _job(root / str(number), number, packages, parts, seconds, index, jobs, builds)
                for number in range(1, max(parts.values()) + 1)
            )
        )
        return [outcome for outcomes in results for outcome in outcomes]

    async def timed() -> Outcomes:
        outcomes = await main()
        return Outcomes(asyncio.get_running_loop().time(), Counter(outcomes), index, parts)

    return virtual_loop.run(lambda _: timed())


async def _job(
    root: Path,
    number: int,
    packages: Sequence[Package],
    parts: Mapping[PackageId, int],
    seconds: Mapping[PackageId, float],
    index: Index,
    jobs: int,
    builds: int,
) -> list[Outcome]:
    manifest = root / "manifest"
    own = [replace(p, manifest=manifest) for p in packages if parts[p.id] == number]
    needed = {need.on for each in own for need in each.dependencies if parts[need.on] != number}
    made = replace(
        plan(*own),
        foreign=tuple(p for p in packages if p.id in needed),
        behind=waiting_elsewhere(own, {each.id: each for each in packages}),
    )
    settings = config(
        root,
        wait=1800.0,
        build_concurrency=builds,
        max_retries=5,
        retry_base_delay=1.0,
        task_timeout=600.0,
    )
    make_state_directory(settings.state_directory)
    pace = Pace(index.limit.share(jobs), index.limit.interval_s * (number - 1))
    journal = Journal(MemoryLog(), state_directory=settings.state_directory, run_id=f"job {number}")
    run = ReleaseRun(
        made,
        {"fake": Target(Timed(seconds=seconds), Client(index, pace))},
        config=settings,
        journal=journal,
        watch=lambda _: None,
        sources=Sources(made, None),
    )
    await run.run()
    return [result.outcome for result in run.results()]
