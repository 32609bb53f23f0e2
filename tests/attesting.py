"""Signing without Sigstore: statements and bundles that say no more than tests ask for."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from releasekit.provenance.bundle import Bundle

if TYPE_CHECKING:
    from collections.abc import Callable

    from releasekit.attested import Obstacle
    from releasekit.model import Artifact, Package

LOG = "https://log.example"


class FakeAttesting:
    """Takes attestations of every package, from every job, but for its `obstacles`."""

    def __init__(
        self,
        obstacles: dict[str, Obstacle] | None = None,
        wishes: dict[str, bool] | None = None,
    ) -> None:
        self.obstacles = obstacles or {}
        self.wishes = wishes or {}

    def obstacle(self, package: Package, job: Any) -> Obstacle | None:
        return self.obstacles.get(package.id.name)

    def wish(self, package: Package) -> bool | None:
        return self.wishes.get(package.id.name)

    def statement(self, package: Package, artifact: Artifact, job: Any) -> bytes:
        return said_of(artifact)


@dataclass(frozen=True)
class FakeBundle:
    text: bytes
    log_index: int

    at = Bundle.at


@dataclass
class FakeSigning:
    """Implements `attesting.Signing`. `log` holds each statement, as often as it was signed;
    `faults` what the next tries to sign a file raise, one each, and `lost` what the next one raises
    once it is in the log.
    """

    log: list[str] = field(default_factory=list)
    faults: dict[str, list[Exception | None]] = field(default_factory=dict)
    lost: dict[str, Exception] = field(default_factory=dict)
    in_flight: int = 0
    peak: int = 0
    hang: set[str] = field(default_factory=set)
    on_sign: Callable[[str], None] = lambda name: None
    log_url: str = LOG
    job: Any = None

    async def sign(self, statement: bytes) -> Any:
        name, _ = json.loads(statement)
        self.on_sign(name)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(0)
            if name in self.hang:
                await asyncio.Event().wait()
            fault = self.faults[name].pop(0) if self.faults.get(name) else None
            if fault is not None:
                raise fault
            self.log.append(name)
            if name in self.lost:
                raise self.lost.pop(name)
            return FakeBundle(statement, len(self.log) - 1)
        finally:
            self.in_flight -= 1

    def signed(self, artifact: Artifact) -> bool:
        signed = artifact.attestation
        if signed is None or not signed.path.exists():
            return False
        return signed.path.read_bytes() == said_of(artifact)


def said_of(artifact: Artifact) -> bytes:
    return json.dumps([artifact.filename, artifact.sha256]).encode()
