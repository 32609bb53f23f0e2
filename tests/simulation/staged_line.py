"""The real plan and publish line against a registry that stages, in bad weather, beside one that
does not: killed, started again, approved by hand at any moment. `python
tests/simulation/staged_line.py SEED` replays.
"""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from releasekit.fields import replace

if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(root / "src"), str(root / "tests")]

from fakes import FakeTarget
from releasekit.errors import Denied, DigestMismatch, StageOnly, Transient
from releasekit.model import Outcome, PackageId, Result, Staged
from releasekit.release.polling import POLLING
from releasekit.state.history import fold
from simulation.publish_line import Process, _aftermath
from simulation.world import Broken, Builder, Registry, Weather, World, require

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.config.values import StageMode
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Artifact, Dependency, Package, Published

STAGED, BLOCKING = Outcome.STAGED, {Outcome.FAILED, Outcome.UNKNOWN, Outcome.BLOCKED}


@dataclass
class StagingWorld(World):
    """Half of its packages go to a registry that stages: all, or those of `only`, for whom it takes
    nothing else. A maintainer approves what is `waiting`, or rejects it.
    """

    waiting: dict[str, dict[str, Artifact]] = field(default_factory=dict)
    staged: list[str] = field(default_factory=list)
    rejected: set[str] = field(default_factory=set)
    diligence: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.mode: StageMode = self.rng.choice(["auto", "always"])
        self.blind = self.rng.random() < 0.5
        self.only = {name for name in self.by_name if self.rng.random() < 0.7}

    def _packages(self) -> list[Package]:
        kinds = self.rng.choice([("fake",), ("fake", "other"), ("fake", "fake", "other")])
        ids: dict[PackageId, PackageId] = {}

        def moved(need: Dependency) -> Dependency:
            return replace(need, on=ids[need.on])

        made = []
        for package in super()._packages():
            ids[package.id] = PackageId(self.rng.choice(kinds), package.id.name)
            needs = tuple(map(moved, package.dependencies))
            made.append(replace(package, id=ids[package.id], dependencies=needs))
        return made

    def approve(self, name: str, now_s: float) -> None:
        for artifact in self.waiting.pop(name).values():
            self.store(name, artifact, now_s)

    def maintain(self, now_s: float) -> None:
        """What a person does now and then, in any order."""
        for name in sorted(self.waiting):
            if self.rng.random() < self.diligence:
                if self.rng.random() < 0.05:
                    del self.waiting[name]
                    self.rejected.add(name)
                else:
                    self.approve(name, now_s)


@dataclass
class StagingRegistry(Registry):
    """One process's connection to the registry that stages."""

    world: StagingWorld
    sent: set[str] = field(default_factory=set)

    @property
    def mode(self) -> StageMode:
        return self.world.mode

    async def lookup(self, package: Package) -> Published | None:
        self.world.maintain(self.world.time())
        return await super().lookup(package)

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        world, name = self.world, package.id.name
        require(world.mode == "auto", name, "is published, and was to be staged")
        require(name not in self.sent, name, "is published after it was staged")
        for need in package.dependencies:
            shown = world.complete(need.on.name, world.time())
            require(shown, name, "is published before", need.on)
        if name in world.only or name in world.waiting:
            await asyncio.sleep(world.rng.uniform(0.05, 1.0))
            raise StageOnly("403: stage it")
        await super().upload(package, artifacts)

    async def stage(
        self, release: Mapping[Package, Sequence[Artifact]]
    ) -> Mapping[PackageId, Staged]:
        self.slots += 1
        self.peak = max(self.peak, self.slots)
        try:
            for package, artifacts in release.items():
                await self._stage(package, artifacts)
        finally:
            self.slots -= 1
        return {package.id: Staged(id=f"id of {package.id.name}") for package in release}

    async def _stage(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        world, name = self.world, package.id.name
        self.sent.add(name)
        epoch = world.epoch
        await asyncio.sleep(world.rng.uniform(0.05, 2.0))
        require(epoch == world.epoch, "a dead process stages")
        self._check_order(package)
        for artifact in artifacts:
            self._refuse(name, artifact)
        self._take(name, artifacts)
        if world.strikes("hang"):
            await asyncio.Event().wait()
        if world.strikes("lost"):
            raise Transient("the connection broke", ambiguous=True)

    def _check_order(self, package: Package) -> None:
        world, now_s = self.world, self.world.time()
        for need in package.dependencies:
            name = need.on.name
            known = name in world.waiting or name in world.stored or name in world.rejected
            beside = need.on.ecosystem == package.id.ecosystem
            fits = beside and (world.mode == "always" or known)
            require(fits or world.complete(name, now_s), package.id, "is staged before", need.on)

    def _take(self, name: str, artifacts: Sequence[Artifact]) -> None:
        """Staged and published versions share one index."""
        world = self.world
        held = {file: artifact.sha256 for file, artifact in world.waiting.get(name, {}).items()}
        held |= {
            file: digest.partition(":")[2] for file, digest in world.stored.get(name, {}).items()
        }
        for artifact in artifacts:
            if held.get(artifact.filename, artifact.sha256) != artifact.sha256:
                raise DigestMismatch(f"{name} is there with other bytes")
        if not held:
            world.staged.append(name)
            world.waiting[name] = {artifact.filename: artifact for artifact in artifacts}

    async def staged(self, package: Package, artifacts: Sequence[Artifact]) -> Staged | None:
        world, name = self.world, package.id.name
        await asyncio.sleep(world.rng.uniform(0.01, 0.3))
        if world.blind:
            raise Denied("who may stage may not look")
        if world.strikes("deaf"):
            raise Transient("no answer", ambiguous=True)
        # The registry knows what it was told to publish, whatever its index shows.
        return Staged(id=f"id of {name}") if name in world.waiting or name in world.stored else None


@dataclass
class _Own(Builder):
    ecosystem: str = ""

    @property
    def packages(self) -> Sequence[Package]:
        return [each for each in self.world.packages if each.id.ecosystem == self.ecosystem]


@dataclass
class StagingProcess(Process):
    world: StagingWorld

    def targets(self) -> Mapping[str, Target]:
        stage = StagingRegistry(self.world)
        return {
            "fake": FakeTarget(
                _Own(self.world, "fake"), stage, staging=stage, attesting=self.world.attesting
            ),
            "other": FakeTarget(
                _Own(self.world, "other"), Registry(self.world), attesting=self.world.attesting
            ),
        }


def simulate(seed: int, root: Path) -> StagingWorld:
    """Raises Broken, with the seed, where a promise does not hold."""
    rng = random.Random(seed)
    world = StagingWorld(seed, root)
    forgotten = False
    try:
        for number in range(rng.randint(1, 4)):
            world.weather = Weather.bad(rng)
            world.diligence = rng.choice([0.0, 0.05, 0.5])
            dies_at = rng.randint(1, 400) if rng.random() < 0.6 else None
            stops_at_s = rng.uniform(0, 30) if rng.random() < 0.2 else None
            wait_s = rng.choice([0.0, 20.0, 600.0])
            process = StagingProcess(
                world, seed * 31 + number, dies_at, stops_at_s, rng.randint(1, 4), wait_s
            )
            if process.run() and process.results:
                check(process)
            elif not process.results:
                forgotten |= _aftermath(world, rng)
            world.maintain(world.now_s)
        _calm_end(world, seed, forgotten=forgotten)
    except Broken as error:
        raise Broken(f"seed {seed}: {error}") from error
    return world


def _calm_end(world: StagingWorld, seed: int, *, forgotten: bool) -> None:
    """Runs and approvals take turns until there is nothing left to approve."""
    world.weather, world.diligence = Weather(), 0.0
    rounds, results = 0, dict[str, Result]()
    while rounds == 0 or world.waiting:
        rounds += 1
        require(rounds < len(world.packages) + 3, "there is always more to approve")
        world.now_s += 3_600.0  # whatever was on its way has arrived
        world.settle_landings(world.now_s)
        for name in sorted(world.waiting):
            world.approve(name, world.now_s)
        last = StagingProcess(world, seed * 31 + 10 + rounds)
        require(last.run(), "did not end")
        check(last, forgotten=forgotten)
        results = last.results
    for name, result in results.items():
        given_up = name in world.doomed or name in world.foreign or name in world.rejected
        lost = forgotten and not world.reproducible and name in world.stored
        upstream = any(not results[need].outcome.done for need in _needs(world, name))
        fine = result.outcome.done or given_up or lost or upstream
        require(fine, name, "is not finished:", result.outcome, result.reason)
    before = len(world.puts), len(world.staged), world.builds
    again = StagingProcess(world, seed * 31 + 31)
    require(again.run(), "did not end")
    if all(result.outcome.done for result in results.values()):
        now = len(world.puts), len(world.staged), world.builds
        require(before == now, "done again: puts, stagings, builds", before, now)
        left = {each.outcome for each in again.results.values()} - {Outcome.ALREADY_PUBLISHED}
        require(not left, "is no noop", left)


def _needs(world: World, name: str) -> list[str]:
    return [dependency.on.name for dependency in world.by_name[name].dependencies]


def check(process: StagingProcess, *, forgotten: bool = True) -> None:
    """The report against the registries: independent of everything the run believed."""
    world, results = process.world, process.results
    require(set(results) == set(world.by_name), "not every package is accounted for")
    require(process.peak <= process.limit, "peak", process.peak)
    if process.stops_at_s is not None and process.grace_s is not None:
        began_s, fsync_s = process.planned_s, 0.01
        latest_s = began_s + process.stops_at_s + process.grace_s + POLLING.last_poll_s + fsync_s
        require(process.ended_s <= latest_s, "asked to stop, and ended", process.ended_s, latest_s)
    world.settle_landings(world.now_s)
    again = [name for name in set(world.staged) if world.staged.count(name) > 1]
    require(set(again) <= world.rejected, "staged twice", again)
    for result in results.values():
        _check_one(world, result, results, forgotten=forgotten)
    entries = fold(bytes(world.journal), state_directory=world.root / ".releasekit").entries
    for (package, _), entry in entries.items():
        outcome = results[package.name].outcome
        require(entry.outcome is outcome, package, "journal", entry.outcome, outcome)
        waits = entry.staged is not None and not entry.uncertain
        require(waits or outcome is not STAGED, package, "is staged, and not so in the journal")


def _check_one(
    world: StagingWorld, result: Result, results: Mapping[str, Result], *, forgotten: bool
) -> None:
    name, outcome, ecosystem = result.package.id.name, result.outcome, result.package.id.ecosystem
    ours = {artifact.filename: f"sha256:{artifact.sha256}" for artifact in result.artifacts}
    waiting = {file: f"sha256:{each.sha256}" for file, each in world.waiting.get(name, {}).items()}
    held = world.stored.get(name, {}) or waiting
    outcomes = [results[need].outcome for need in _needs(world, name)]
    blocked = bool(BLOCKING.intersection(outcomes))
    apart = [
        need.on
        for need in result.package.dependencies
        if results[need.on.name].outcome is STAGED and need.on.ecosystem != ecosystem
    ]
    if outcome.done:
        require(world.complete(name, world.now_s), name, outcome, "is not all there")
        require(ours == held or not ours or name in world.foreign, name, outcome, "other bytes")
    if outcome is Outcome.PUBLISHED:
        require(ours == held, name, "published, with other bytes")
    if outcome is STAGED:
        require(bool(held) or name in world.rejected, name, "is staged nowhere")
        require(ours == held or not (held and ours), name, "is staged with other bytes")
    if outcome is Outcome.BLOCKED:
        require(blocked or bool(apart), name, "is blocked by nothing")
        require(blocked or "approve" in result.hint, name, "says", result.hint)
    if outcome is Outcome.FAILED:
        asked = world.last_read[name] is False
        require(not ours or ours != held or asked, name, "failed, and it is there")
    stamps = {world.build_of.get(digest) for digest in held.values()}
    require(len(stamps) <= 1 or forgotten, name, "is from two builds")


def main() -> None:
    logging.disable(logging.CRITICAL)
    first, last = int(sys.argv[1]), int(sys.argv[-1])
    root = Path(tempfile.mkdtemp())
    for seed in range(first, last + 1):
        place = root / str(seed)
        place.mkdir()
        world = simulate(seed, place)
        struck = ", ".join(f"{n} {fault}" for fault, n in sorted(world.faults.items()) if n)
        staged = f"{len(world.staged)} staged"
        print(f"seed {seed}: every promise kept; {staged}; {struck or 'fair weather'}")  # noqa: T201
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
