"""The one order in which all locks are taken, on files and inside one process; any other order is
refused.

A holder is all that runs in one context: a task, the tasks it starts, and the threads it waits for.
No holder asks for a lock that comes before one it has, so no two can wait for each other;
`proofs/LockOrder.v` proves that for this very list. Locks under which no other lock is ever taken
cannot be part of a cycle, and are not listed.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Final
from weakref import ReferenceType, ref

from msgspec import Struct

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Iterator

# In the root of a static directory registry.
DIRECTORY_LOCK: Final = ".lock"


class Kind(IntEnum):
    """First come those that are held longest. Several of one kind are taken in name order."""

    ECOSYSTEM = auto()  # a file, for the length of a run
    UPLOAD_TURN = auto()  # of one process: which packages go out together
    DIRECTORY = auto()  # a file, with a turn of one process before it
    MANIFEST = auto()  # of one process: one that several packages inherit from, during a build
    PINS = auto()  # a set of manifests, while they are not what they were
    WHEEL = auto()  # of one process: built once for all that need it
    ENVIRONMENT = auto()  # of one process: made once
    JOURNAL_SYNC = auto()  # of one process: one fsync for all that wait
    JOURNAL = auto()  # a file, for one write
    JOURNAL_DESCRIPTOR = auto()  # of one process: it may be exchanged

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


class Hold(Struct, eq=False, weakref=True):
    """A lock that is held, or about to be, until `release` or until nothing refers to it."""

    kind: Kind
    name: str
    released: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def release(self) -> None:
        """Idempotent."""
        self.released = True


# Weak references: tasks that are started inside a lock keep their copy as long as they live.
_held: ContextVar[tuple[ReferenceType[Hold], ...]] = ContextVar("held", default=())


def take(kind: Kind, name: str = "") -> Hold:
    """Call it before waiting for a lock. Raises RuntimeError when that lock comes before one that
    is held.

    The caller keeps the `Hold` as long as it has the lock.
    """
    held = [hold for reference in _held.get() if (hold := reference()) and not hold.released]
    if held and (kind, name) <= (held[-1].kind, held[-1].name):
        raise RuntimeError(f"lock {kind} {name} asked for after {held[-1]}")
    hold = Hold(kind, name)
    _held.set((*map(ref, held), ref(hold)))
    return hold


@contextlib.contextmanager
def taking(kind: Kind, name: str = "") -> Iterator[None]:
    """`take` for the length of a block, in which the lock itself is taken and given back."""
    hold = take(kind, name)
    try:
        yield
    finally:
        hold.release()


@contextlib.asynccontextmanager
async def turn(kind: Kind, name: str, lock: asyncio.Lock) -> AsyncIterator[None]:
    """Hold `lock`, one of this process, in its place in the order."""
    with taking(kind, name):
        async with lock:
            yield
