"""A registry, a disk and a network that have a bad day, all drawn from one seed."""

from __future__ import annotations

import asyncio
import hashlib
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attesting import FakeAttesting, FakeBundle, FakeSigning
from releasekit.errors import BuildFailed, Denied, JournalUnwritable, Transient
from releasekit.model import Artifact, Dependency, Package, PackageId, Published

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

URL = "https://registry.example/"
KINDS = ("sdist", "wheel")


class Broken(AssertionError):
    """A promise was broken."""


def require(holds: bool, *what: object) -> None:
    if not holds:
        raise Broken(" ".join(map(str, what)))


@dataclass(kw_only=True)
class Weather:
    """Probabilities of what may go wrong, each in [0, 1]."""

    busy: float = 0.0  # 429, with or without Retry-After
    error: float = 0.0  # 5xx, half of them after the file was stored
    lost: float = 0.0  # the answer, after the file was stored
    reset: float = 0.0  # before the file was stored
    hang: float = 0.0  # for ever; half of them land later all the same
    lag: float = 0.0  # until the index shows it
    stale: float = 0.0  # a read that shows less than an earlier one did
    deaf: float = 0.0  # a read without an answer
    denied: float = 0.0  # for good
    disk: float = 0.0  # ENOSPC or EIO in the journal
    broken: float = 0.0  # a build
    foreign: float = 0.0  # somebody else publishes this version first

    @classmethod
    def bad(cls, rng: random.Random) -> Weather:
        kinds = list(cls.__dataclass_fields__)
        chosen = rng.sample(kinds, rng.randint(1, len(kinds)))
        most = {"disk": 0.02, "foreign": 0.05, "denied": 0.05, "broken": 0.1}
        return cls(**{kind: rng.random() * most.get(kind, 0.3) for kind in chosen})


@dataclass
class World:
    """What outlives a process: the registry, the disk, the clock.

    `epoch` counts the processes; what a dead one still tries to do is refused.
    """

    seed: int
    root: Path
    weather: Weather = field(default_factory=Weather)
    epoch: int = 0
    now_s: float = 0.0
    stored: dict[str, dict[str, str]] = field(default_factory=dict)
    visible_at: dict[tuple[str, str], float] = field(default_factory=dict)
    last_read: dict[str, bool | None] = field(default_factory=dict)  # None: no answer
    landing: list[tuple[float, str, Artifact]] = field(default_factory=list)
    doomed: dict[str, str] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)
    journal: bytearray = field(default_factory=bytearray)
    durable: int = 0
    persisted: set[Path] = field(default_factory=set)
    puts: list[tuple[str, str]] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)
    builds: int = 0
    build_of: dict[str, int] = field(default_factory=dict)
    entries: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.packages = self._packages()
        self.reproducible = self.rng.random() < 0.5
        # By a die of its own, so that all else is as it would be otherwise.
        self.signs = random.Random(f"{self.seed} signs").random() < 0.5
        self.by_name = {package.id.name: package for package in self.packages}

    @property
    def attesting(self) -> FakeAttesting | None:
        return FakeAttesting() if self.signs else None

    def _packages(self) -> list[Package]:
        made: list[Package] = []
        for number in range(self.rng.randint(2, 7)):
            needs = self.rng.sample(made, self.rng.randint(0, min(2, len(made))))
            manifest = self.root / f"p{number}.toml"
            manifest.write_bytes(b"")
            made.append(
                Package(
                    id=PackageId("fake", f"p{number}"),
                    version="1.0",
                    directory=self.root,
                    manifest=manifest,
                    dependencies=tuple(Dependency(on=need.id) for need in needs),
                )
            )
        return made

    def strikes(self, kind: str) -> bool:
        if self.rng.random() >= getattr(self.weather, kind):
            return False
        self.faults[kind] = self.faults.get(kind, 0) + 1
        return True

    def time(self) -> float:
        return self.now_s + asyncio.get_running_loop().time()

    def settle_landings(self, now_s: float) -> None:
        """What was on its way when its sender gave up."""
        for at_s, name, artifact in list(self.landing):
            if at_s <= now_s:
                self.landing.remove((at_s, name, artifact))
                self.store(name, artifact, at_s)

    def store(self, name: str, artifact: Artifact, at_s: float) -> None:
        files = self.stored.setdefault(name, {})
        if artifact.filename not in files:
            files[artifact.filename] = f"sha256:{artifact.sha256}"
            lag_s = self.rng.uniform(0, 40) if self.strikes("lag") else 0.0
            self.visible_at[name, artifact.filename] = at_s + lag_s

    def shown(self, name: str, now_s: float) -> dict[str, str]:
        files = self.stored.get(name, {})
        return {f: d for f, d in files.items() if self.visible_at[name, f] <= now_s}

    def complete(self, name: str, now_s: float) -> bool:
        return len(self.shown(name, now_s)) == len(KINDS)


class Log:
    """The journal's bytes in memory; what was not synced may be lost with the power."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._epoch = world.epoch

    def heal(self, intact: Callable[[bytes], int]) -> None:
        data = self._world.journal
        del data[intact(bytes(data)) :]
        self._world.durable = len(data)

    def rewrite(self, shorter: Callable[[bytes], bytes]) -> None:
        self._world.journal[:] = shorter(bytes(self._world.journal))
        self._world.durable = len(self._world.journal)

    def append(self, line: Callable[[int], bytes]) -> None:
        self._check()
        if self._world.strikes("disk"):
            raise JournalUnwritable("no space left on device")
        self._world.journal += line(self._world.durable)

    async def sync(self) -> None:
        self._check()
        await asyncio.sleep(0.001)
        self._check()
        if self._world.strikes("disk"):
            raise JournalUnwritable("input/output error")
        self._world.durable = len(self._world.journal)

    async def persist(self, files: Sequence[Path]) -> None:
        await asyncio.sleep(0.001)
        self._check()
        self._world.persisted.update(files)

    def close(self) -> None:
        """Nothing to let go of."""

    def _check(self) -> None:
        if self._epoch != self._world.epoch:
            raise JournalUnwritable("a dead process writes")


@dataclass
class Registry:
    """One process's connection to the registry; checks order and bytes as they arrive."""

    world: World
    url: str = URL
    slots: int = 0
    peak: int = 0

    def check_credentials(self) -> str:
        return "what is always there"

    async def lookup(self, package: Package) -> Published | None:
        world, name = self.world, package.id.name
        await asyncio.sleep(world.rng.uniform(0.01, 0.3))
        world.last_read[name] = None
        if world.strikes("deaf"):
            raise Transient(f"{self.url} does not answer", ambiguous=True)
        now_s = world.time()
        world.settle_landings(now_s)
        files = world.shown(name, now_s - (20.0 if world.strikes("stale") else 0.0))
        complete = world.last_read[name] = len(files) >= len(KINDS)
        return Published(files=files, complete=complete) if files else None

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        self.slots += 1
        self.peak = max(self.peak, self.slots)
        try:
            for artifact in artifacts:
                await self._put(package, artifact)
        finally:
            self.slots -= 1

    async def _put(self, package: Package, artifact: Artifact) -> None:
        world, name = self.world, package.id.name
        world.puts.append((name, artifact.filename))
        epoch = world.epoch
        await asyncio.sleep(world.rng.uniform(0.05, 2.0))
        require(epoch == world.epoch, "a dead process uploads")
        require(not world.signs or Notary(world=world).signed(artifact), name, "sent unsigned")
        content = artifact.path.read_bytes()
        require(hashlib.sha256(content).hexdigest() == artifact.sha256, name, "sent other bytes")
        for dependency in package.dependencies:
            require(world.complete(dependency.on.name, world.time()), name, "before", dependency.on)
        self._refuse(name, artifact)
        if world.strikes("hang"):
            if world.rng.random() < 0.5:
                world.landing.append((world.time() + world.rng.uniform(0, 60), name, artifact))
            await asyncio.Event().wait()
        world.store(name, artifact, world.time())
        if world.strikes("lost"):
            raise Transient("the connection broke", ambiguous=True)
        if world.strikes("error"):
            raise Transient("502 after storing", ambiguous=True)

    def _refuse(self, name: str, artifact: Artifact) -> None:
        world = self.world
        if name in world.doomed:
            raise Denied(world.doomed[name])
        if world.strikes("denied"):
            world.doomed[name] = "403: not yours"
            raise Denied(world.doomed[name])
        if name not in world.stored and world.strikes("foreign"):
            world.foreign.add(name)
            for kind in KINDS:
                world.stored.setdefault(name, {})[f"{name}-1.0.{kind}"] = "sha256:foreign"
                world.visible_at[name, f"{name}-1.0.{kind}"] = world.time()
        if world.strikes("busy"):
            raise Transient("429", retry_after=world.rng.choice([None, 0.0, 30.0]))
        if world.strikes("reset"):
            raise Transient("connection reset", ambiguous=True)
        if world.strikes("error"):
            raise Transient("503", ambiguous=True)


@dataclass
class Notary(FakeSigning):
    """One process's connection to what certifies and logs signatures."""

    world: World = field(kw_only=True)
    done: set[bytes] = field(default_factory=set)

    async def sign(self, statement: bytes) -> Any:
        world = self.world
        require(statement not in self.done, "signed twice in one run", statement)
        await asyncio.sleep(world.rng.uniform(0.1, 1.0))
        if world.strikes("hang"):
            await asyncio.Event().wait()
        if world.strikes("busy"):
            raise Transient("429", retry_after=world.rng.choice([None, 0.0, 30.0]))
        if world.strikes("error"):
            raise Transient("503")
        world.entries.append(statement)
        if world.strikes("lost"):
            raise Transient("the connection broke")
        self.done.add(statement)
        return FakeBundle(statement, len(world.entries) - 1)


@dataclass
class Builder:
    """One process's build tool: two files a package, and never the same bytes twice unless the
    world is `reproducible`.
    """

    world: World

    @property
    def packages(self) -> Sequence[Package]:
        return self.world.packages

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        return manifest

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        return [[package] for package in packages]

    async def build(
        self, packages: Sequence[Package], into: Callable[[Package], Path]
    ) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        return {package.id: await self._build(package, into(package)) for package in packages}

    async def _build(self, package: Package, into: Path) -> tuple[Artifact, ...] | BuildFailed:
        world, name = self.world, package.id.name
        epoch = world.epoch
        await asyncio.sleep(world.rng.uniform(0.01, 3.0))
        require(epoch == world.epoch, "a dead process builds")
        if world.strikes("broken"):
            return BuildFailed(f"{name} does not build")
        world.builds += 1
        made = []
        for kind in KINDS:
            stamp = 0 if world.reproducible else world.builds
            content = f"{name} {kind} {stamp}".encode()
            path = into / f"{name}-1.0.{kind}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            world.persisted.discard(path)
            digests = {"sha256": hashlib.sha256(content).hexdigest()}
            world.build_of[f"sha256:{digests['sha256']}"] = stamp
            made.append(Artifact(path=path, size=len(content), digests=digests))
        return tuple(made)
