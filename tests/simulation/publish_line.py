"""The real plan and publish line against a world with bad weather: killed, started again, and in
the end held against what the registry has. `python tests/simulation/publish_line.py SEED` replays.
"""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from releasekit.fields import replace

if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(root / "src"), str(root / "tests")]

from fakes import SEAL, FakeTarget, config
from releasekit.errors import JournalUnwritable, PackageError
from releasekit.model import SENT, Outcome, Result
from releasekit.plan.make import make_plan
from releasekit.release.polling import POLLING
from releasekit.release.release import ReleaseRun
from releasekit.release.sources import Sources
from releasekit.scheduler.controls import CANCEL_GRACE_S
from releasekit.scheduler.retries import SPREAD
from releasekit.state.history import fold
from releasekit.state.journal import Journal
from simulation.virtual_loop import VirtualLoop
from simulation.world import Broken, Builder, Log, Notary, Registry, Weather, World, require

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.ecosystems.interface import Target

COMMIT = "c0ffee"


class ShortJournal(Journal):
    """Made shorter at every start."""

    compact_above = 0


class Killed(BaseException):
    """kill -9"""


class MortalLoop(VirtualLoop):
    """Dies before its turn number `dies_at`."""

    def __init__(self, seed: int, dies_at: int | None) -> None:
        super().__init__(seed)
        self.turns = 0
        self.dies_at = dies_at

    def _run_once(self) -> None:
        self.turns += 1
        if self.turns == self.dies_at:
            # Else the end of the dead main task would stop the loop that is cleared away.
            for handle in self._ready:  # type: ignore[attr-defined]
                if getattr(handle._callback, "__name__", "") == "_run_until_complete_cb":
                    handle.cancel()
            raise Killed
        super()._run_once()  # type: ignore[misc]


@dataclass
class Process:
    """One start of the program."""

    world: World
    seed: int
    dies_at: int | None = None
    stops_at_s: float | None = None
    limit: int = 3
    wait_s: float = 0.0
    start_uploads: str = "ready"
    puts_before: int = 0
    results: dict[str, Result] = field(default_factory=dict)
    peak: int = 0
    planned_s: float = 0.0
    ended_s: float = 0.0

    def targets(self) -> Mapping[str, Target]:
        world = self.world
        return {"fake": FakeTarget(Builder(world), Registry(world), attesting=world.attesting)}

    @property
    def grace_s(self) -> float | None:
        """Every third process is stopped mildly, and ends what it has begun."""
        return CANCEL_GRACE_S if self.seed % 3 else None

    def run(self) -> bool:
        """Whether it came to its end; False when it was killed."""
        SPREAD.seed(self.seed)
        self.puts_before = len(self.world.puts)
        loop = MortalLoop(self.seed, self.dies_at)
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                try:
                    runner.run(self._main())
                except Killed:
                    self.world.epoch += 1
                    return False
                except (PackageError, JournalUnwritable):
                    return True  # says so and ends; the next start goes on
                finally:
                    loop.dies_at = None
        finally:
            self.world.epoch += 1
            self.world.now_s += loop.time()
        return True

    async def _main(self) -> None:
        world = self.world
        settings = config(
            world.root,
            concurrency=self.limit,
            build_concurrency=min(self.limit, 2),
            retry_base_delay=1.0,
            task_timeout=60.0,
            max_retries=3,
            wait_for_approval=self.wait_s,
            start_uploads=self.start_uploads,
        )
        targets = self.targets()
        journal = (Journal if self.seed % 2 else ShortJournal)(
            Log(world),
            state_directory=settings.state_directory,
            run_id=f"run{world.epoch}",
            seal=SEAL,
            # The wall clock may jump; nothing may depend on it.
            clock=lambda: world.rng.uniform(-1e6, 1e6),
        )
        plan = await make_plan(settings, targets, journal.history, commit=COMMIT)
        if world.signs:
            steps = (replace(each, attest=each.action in SENT) for each in plan.packages)
            plan = replace(plan, packages=tuple(steps))
        release = ReleaseRun(
            plan,
            targets,
            config=settings,
            journal=journal,
            watch=lambda event: None,
            sources=Sources(plan, None),
            signing=Notary(world=world),
        )
        journal.run_started(
            plan_digest=plan.digest,
            commit=COMMIT,
            tool="",
            started_at="",
            ecosystems=sorted(targets),
        )
        self.planned_s = asyncio.get_running_loop().time()
        if self.stops_at_s is not None:
            stop = partial(release.stop, "stopped", grace_s=self.grace_s)
            asyncio.get_running_loop().call_later(self.stops_at_s, stop)
        await release.run()
        await journal.run_ended("")
        self.ended_s = asyncio.get_running_loop().time()
        self.peak = max(each.registry.peak for each in targets.values())  # type: ignore[attr-defined]
        self.results = {result.package.id.name: result for result in release.results()}


def simulate(seed: int, root: Path) -> World:
    """Raises Broken, with the seed, where a promise does not hold."""
    rng = random.Random(seed)
    world = World(seed, root)
    forgotten = False
    try:
        for number in range(rng.randint(1, 4)):
            world.weather = Weather.bad(rng)
            dies_at = rng.randint(1, 400) if rng.random() < 0.6 else None
            stops_at_s = rng.uniform(0, 30) if rng.random() < 0.2 else None
            process = Process(world, seed * 31 + number, dies_at, stops_at_s, rng.randint(1, 4))
            # By a die of its own, so that all else is as it would be otherwise.
            if random.Random(f"{process.seed} starts").random() < 0.5:
                process.start_uploads = "built"
            if process.run() and process.results:
                check(process)
            elif not process.results:
                forgotten |= _aftermath(world, rng)
        _calm_end(world, seed, forgotten=forgotten)
    except Broken as error:
        raise Broken(f"seed {seed}: {error}") from error
    return world


def _aftermath(world: World, rng: random.Random) -> bool:
    """What a sudden end may do to the disk. True when the whole state directory is gone."""
    if rng.random() < 0.1:
        world.journal.clear()
        world.durable = 0
        shutil.rmtree(world.root / ".releasekit", ignore_errors=True)
        return True
    if rng.random() < 0.3:  # the power went: what was not synced is there in part, or not at all
        del world.journal[rng.randint(world.durable, len(world.journal)) :]
        for path in (world.root / ".releasekit").rglob("*-1.0.*"):
            if path not in world.persisted:
                path.write_bytes(b"")
    elif rng.random() < 0.5 and len(world.journal) > world.durable:  # a torn last record
        lines = bytes(world.journal).splitlines(keepends=True)
        torn = lines[-1][: rng.randint(1, len(lines[-1]) - 1)]
        if len(world.journal) - len(lines[-1]) >= world.durable:
            del world.journal[-len(lines[-1]) :]
            world.journal += torn
    return False


def _calm_end(world: World, seed: int, *, forgotten: bool) -> None:
    world.weather = Weather()
    world.now_s += 3_600.0  # whatever was on its way has arrived
    world.settle_landings(world.now_s)
    last = Process(world, seed * 31 + 30)
    require(last.run(), "did not end")
    check(last, forgotten=forgotten)
    for name, result in last.results.items():
        mine = name in world.doomed or name in world.foreign or (forgotten and _torn(world, name))
        upstream = any(not last.results[d].outcome.done for d in _needs(world, name))
        require(result.outcome.done or mine or upstream, name, "is not finished:", result.reason)
    puts = len(world.puts)
    again = Process(world, seed * 31 + 31)
    require(again.run(), "did not end")
    done = {name for name, result in last.results.items() if result.outcome.done}
    for name, result in again.results.items():
        if name in done:
            require(result.outcome is Outcome.ALREADY_PUBLISHED, name, result.outcome)
    require(not done & {name for name, _ in world.puts[puts:]}, "uploaded twice")


def _needs(world: World, name: str) -> list[str]:
    return [dependency.on.name for dependency in world.by_name[name].dependencies]


def _torn(world: World, name: str) -> bool:
    """Half of it is from a build that nobody remembers: only possible once the state is lost."""
    return not world.reproducible and name in world.stored


def check(process: Process, *, forgotten: bool = True) -> None:
    """The report against the registry: independent of everything the run believed."""
    world, results = process.world, process.results
    require(set(results) == set(world.by_name), "not every package is accounted for")
    require(process.peak <= process.limit, "peak", process.peak)
    if process.stops_at_s is not None and process.grace_s is not None:
        latest_s = process.stops_at_s + process.grace_s + POLLING.last_poll_s
        require(process.ended_s <= latest_s, "asked to stop, and ended", process.ended_s, latest_s)
    world.settle_landings(world.now_s)
    unbuilt = [r for r in results.values() if "does not build" in r.reason or _is_held(r)]
    if process.start_uploads == "built":
        require(not unbuilt or len(world.puts) == process.puts_before, "sent before all was built")
    else:
        require(not any(map(_is_held, unbuilt)), "is held back without a cause")
    for result in results.values():
        _check_one(world, result, results, forgotten=forgotten)
    entries = fold(bytes(world.journal), state_directory=world.root / ".releasekit").entries
    for (package, _), entry in entries.items():
        require(entry.outcome is results[package.name].outcome, package, "journal", entry.outcome)


def _is_held(result: Result) -> bool:
    return result.outcome is Outcome.BLOCKED and "`start-uploads`" in result.reason


def _check_one(
    world: World, result: Result, results: Mapping[str, Result], *, forgotten: bool
) -> None:
    name, outcome = result.package.id.name, result.outcome
    held = world.stored.get(name, {})
    ours = {artifact.filename: f"sha256:{artifact.sha256}" for artifact in result.artifacts}
    blocking = {Outcome.FAILED, Outcome.UNKNOWN, Outcome.BLOCKED}
    blocked = any(results[need].outcome in blocking for need in _needs(world, name))
    if outcome.done:
        require(world.complete(name, world.now_s), name, outcome, "is not all there")
        require(ours == held or not ours or name in world.foreign, name, outcome, "other bytes")
    if outcome is Outcome.PUBLISHED:
        require(ours == held, name, "published, with other bytes")
    if outcome is Outcome.FAILED:
        # What lands after the registry was asked for the last time, nobody could know.
        asked = world.last_read[name] is False
        require(not ours or ours != held or asked, name, "failed, and it is there")
    if outcome is Outcome.BLOCKED:
        holds = _is_held(result) and any(r.outcome is Outcome.FAILED for r in results.values())
        require(blocked or holds, name, "is blocked by nothing")
    if blocked and outcome is Outcome.CANCELLED:
        require(False, name, "is cancelled, and something blocks it")
    stamps = {world.build_of.get(digest) for digest in held.values()}
    require(len(stamps) <= 1 or forgotten, name, "is from two builds")


def main() -> None:
    logging.disable(logging.CRITICAL)
    first, last = int(sys.argv[1]), int(sys.argv[-1])
    root = Path(tempfile.mkdtemp())
    for seed in range(first, last + 1):
        place = root / str(seed)
        place.mkdir()
        faults = simulate(seed, place).faults
        struck = ", ".join(f"{count} {fault}" for fault, count in sorted(faults.items()) if count)
        print(f"seed {seed}: every promise kept; {struck or 'fair weather'}")  # noqa: T201
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
