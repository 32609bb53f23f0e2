"""A registry that holds versions back, in memory."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from releasekit.ecosystems.approval import Contents, Waiting
from releasekit.errors import (
    CodeWanted,
    DigestMismatch,
    MissingCredentials,
    Rejected,
    Transient,
    UnderReview,
)
from releasekit.fields import replace
from releasekit.model import Artifact, Outcome, Package, PackageId, Result, Staged

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def recorded(name: str, *, data: bytes | None = None, tag: str = "latest") -> Result:
    """As results.json has a staged package; the bytes are made of its name."""
    package = Package(id=PackageId("npm", name), version="1.0.0", directory=Path(), manifest=Path())
    return Result(
        package=package,
        outcome=Outcome.STAGED,
        reason="",
        artifacts=(artifact(Path(f"{name}.tgz"), name.encode() if data is None else data),),
        staged=Staged(id=f"id-{name}", tag=tag),
    )


def on_page(
    name: str = "com.acme:core", page: str = "https://central.sonatype.com/publishing/deployments"
) -> Result:
    """As results.json has a staged package of a deployment of Maven Central."""
    made = recorded(name)
    return replace(
        made,
        package=replace(made.package, id=PackageId("maven", name)),
        staged=Staged(id="28570f16", url=page),
    )


def artifact(path: Path, data: bytes) -> Artifact:
    digests = {"sha256": hashlib.sha256(data).hexdigest()}
    return Artifact(path=path, size=len(data), digests=digests)


@dataclass
class FakeApproval:
    """Implements `approval.Approval`. `held` maps names to what waits, `data` to its bytes;
    `visible` are the names that everybody sees. What is approved becomes visible once it was asked
    for `scans` times; `reviews` says how often an approval comes too early. `trouble` is raised
    instead of the next decisions, after their effect where they are `lost`. `before` are earlier
    versions, by name. Whoever asks what waits hears what is `refused`, and what everybody sees,
    once something is approved, what is `hidden`, by name; `mute_once_decided` hears nothing any
    more. An approval sets `stuck`, and has no end.
    """

    held: dict[str, Waiting]
    data: dict[str, bytes]
    codes: set[str] = field(default_factory=lambda: {""})
    visible: set[str] = field(default_factory=set)
    scans: int = 0
    reviews: int = 0
    trouble: list[Exception] = field(default_factory=list)
    lost: bool = False
    page: str = ""
    forged: set[str] = field(default_factory=set)
    unreachable: int = 0
    refused: dict[str, Exception] = field(default_factory=dict)
    hidden: dict[str, Exception] = field(default_factory=dict)
    mute_once_decided: bool = False
    stuck: asyncio.Event | None = None
    before: dict[str, Contents] = field(default_factory=dict)
    is_logged_in: bool = True
    approvals: list[str] = field(default_factory=list)
    rejections: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    confirmations: list[str] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)
    url: str = "https://registry.example/"

    @classmethod
    def holding(cls, results: Iterable[Result]) -> FakeApproval:
        listed = list(results)
        return cls(
            held={
                each.package.id.name: Waiting(
                    id=each.staged.id if each.staged and each.staged.id else "id",
                    name=each.package.id.name,
                    version=each.package.version,
                    tag="latest",
                )
                for each in listed
            },
            data={each.package.id.name: each.package.id.name.encode() for each in listed},
        )

    def check_credentials(self) -> str:
        if not self.is_logged_in:
            raise MissingCredentials("npm: nobody is logged in")
        return "a token"

    async def waiting(self, recorded: Result) -> Waiting | None:
        name = recorded.package.id.name
        if name in self.refused:
            raise self.refused[name]
        if self.mute_once_decided and self.sent:
            raise Transient("HTTP 503")
        return self.held.get(name)

    async def files(self, recorded: Result, waiting: Waiting, into: Path) -> Sequence[Artifact]:
        return [artifact(into / recorded.artifacts[0].filename, self.data[waiting.name])]

    async def is_visible(self, recorded: Result, _into: Path) -> bool:
        name = recorded.package.id.name
        self.asked[name] = self.asked.get(name, 0) + 1
        if name in self.hidden and self.approvals:
            raise self.hidden[name]
        if self.unreachable:
            self.unreachable -= 1
            raise Transient("HTTP 503")
        seen = name in self.visible and self.asked[name] > self.scans
        if seen and name in self.forged:
            raise DigestMismatch(f"{recorded.package}: other bytes")
        return seen

    async def last_published(self, recorded: Result, _into: Path) -> Contents | None:
        return self.before.get(recorded.package.id.name)

    def contents(self, recorded: Result, artifacts: Sequence[Artifact]) -> Contents:
        if not artifacts:
            raise Rejected("nothing to read")
        names = frozenset({"package.json", "new.js"})
        scripts = {"postinstall": "node new.js"}
        return Contents(
            version=recorded.package.version, size=artifacts[0].size, names=names, scripts=scripts
        )

    async def approve(self, waiting: Waiting, code: str) -> None:
        self._check(code)
        if self.stuck is not None:
            self.stuck.set()
            await asyncio.Event().wait()
        if self.reviews:
            self.reviews -= 1
            raise UnderReview(f"{waiting.name}: the review has not finished")
        self._take(waiting)
        self.visible.add(waiting.name)
        self._settle(self.approvals, waiting)

    async def reject(self, waiting: Waiting, code: str) -> None:
        self._check(code)
        self._take(waiting)
        self._settle(self.rejections, waiting)

    async def confirmed(self, wanted: CodeWanted) -> str:
        self.confirmations.append(wanted.page)
        if not self.codes:
            raise Rejected("nobody came")
        return next(iter(self.codes))

    def _check(self, code: str) -> None:
        self.sent.append(code)
        if code not in self.codes:
            raise CodeWanted("a code, please", page=self.page)

    def _take(self, waiting: Waiting) -> None:
        if self.trouble and not self.lost:
            raise self.trouble.pop(0)
        del self.held[waiting.name]

    def _settle(self, log: list[str], waiting: Waiting) -> None:
        log.append(waiting.name)
        if self.trouble:
            raise self.trouble.pop(0)
