"""Hostile answers: each protocol's registry, honest but for one trick at one stage of a release."""

from __future__ import annotations

import contextlib
import itertools
import threading
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from hostile import worlds
from hostile.case import Case
from hostile.http_tricks import Moment
from hostile.wire import Reply, Wire
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from hostile.http_tricks import Trick
    from hostile.registries import Spoken
    from hostile.wire import Part, Request

DONE: Final = frozenset({0})
FAILED: Final = frozenset({1})


class Stage(Enum):
    """Which requests are answered with the trick."""

    READ = "read"  # every look at a package
    LOOK = "look"  # those before the first upload: the plan's
    CONFIRM = "confirm"  # those after it
    UPLOAD = "upload"
    CONFIG = "config"  # what a registry says of itself


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the tables: `stored` says whether the registry takes an upload that it answers
    with the trick. `at` is a part of the paths that are meant; `first` how many are answered
    honestly before.
    """

    name: str
    trick: Trick
    stage: Stage
    codes: frozenset[int] = FAILED
    protocols: tuple[str, ...] = worlds.PROTOCOLS
    stored: bool = False
    at: str = ""
    first: int = 0
    argv: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()  # of core and app
    says: tuple[str, ...] = ()
    never_says: tuple[str, ...] = ()
    plain: bool = True


@dataclass
class Served:
    """One release's registry; what was `seen` is for further looks."""

    row: Row
    world: worlds.World
    wire: Wire | None = None
    _spoken: Spoken | None = None
    _uploads: int = 0
    _count: Iterator[int] = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def __call__(self) -> Iterator[str]:
        self._spoken = self.world.speak()
        with Wire(self._answer) as self.wire:
            yield self.wire.url

    @property
    def leaked(self) -> list[str]:
        """Whatever came with credentials where they were not for."""
        assert self.wire
        return [
            request.target
            for request in self.wire.seen
            if request.credentials and request.header("Host").startswith("localhost")
        ]

    def _answer(self, request: Request) -> Iterable[Part]:
        assert self.wire
        assert self._spoken
        with self._lock:
            tricked = self._is_meant(request) and next(self._count) >= self.row.first
            uploads = self._spoken.uploads(request)
            self._uploads += uploads
            if uploads and tricked and not self.row.stored:
                honest = Reply(200)
            else:
                honest = self._spoken.answer(request, self.wire.url)
            if not tricked:
                return [honest.wire()]
            if honest.status == 404 and self.row.plain:
                honest = self._spoken.plain(request)
            return self.row.trick(Moment(request, honest, self.wire, self._uploads))

    def _is_meant(self, request: Request) -> bool:
        assert self._spoken
        if request.path.startswith("/elsewhere"):
            return True
        if self.row.at not in request.path:
            return False
        if self._spoken.uploads(request) or request.path.endswith("/config.json"):
            stage = Stage.UPLOAD if self._spoken.uploads(request) else Stage.CONFIG
            return self.row.stage is stage
        return self.row.stage in {Stage.READ, Stage.CONFIRM if self._uploads else Stage.LOOK}


def case_of(row: Row, protocol: str) -> Case:
    world = worlds.world(protocol)
    at = f"{row.stage.value}-{'stored-' if row.stored else ''}"
    files: dict[str, bytes | str] = {f"w/{name}": data for name, data in world.files.items()}
    if world.settings:
        files["w/releasekit.toml"] = world.settings
    if protocol == "go":
        files["home/.gitconfig"] = (
            f'[url "file://{{root}}/remote.git"]\n\tinsteadOf = https://{worlds.MODULE}\n'
            "[safe]\n\tdirectory = *\n"
        )
    dist = ("--dist", "dist") if protocol != "go" else ()
    return Case(
        name=f"{protocol}-{at}{row.name}",
        files=files,
        argv=("publish", *world.flags, *dist, *_QUICK, *row.argv),
        codes=row.codes,
        outcomes=dict(zip(world.names, row.outcomes, strict=False)),
        says=row.says,
        never_says=row.never_says,
        prepare=_remote if protocol == "go" else None,
        server=Served(row, world),
        # The index is a cache, which git keeps up to date when it compares.
        may_write=("remote.git", "w/.git/index"),
    )


_QUICK: Final = ("--max-retries", "0", "--retry-base-delay", "0.01s")


def _remote(root: Path) -> None:
    git(root, "init", "--quiet", "--bare", "remote.git")
    git(root / "w", "push", "--quiet", f"file://{root}/remote.git", "HEAD:refs/heads/main")


def cases_of(rows: Iterable[Row]) -> list[Case]:
    return [
        case_of(row, protocol)
        for row in rows
        for protocol in row.protocols
        if not (protocol == "go" and row.stage is Stage.UPLOAD)
    ]
