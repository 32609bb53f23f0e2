"""One run per ecosystem of a workspace: an flock(2) per ecosystem, taken in name order.

The kernel drops a lock when the last process that inherited its descriptor is gone, so locks are
never stale and never time out. What the file says about its holder is only for messages. The file
is never deleted: two processes could then hold locks on two files of one name (`proofs/`).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import socket
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct
from msgspec.structs import asdict

from releasekit.errors import LockHeld
from releasekit.host import durable
from releasekit.host.flock import find_holders, try_lock
from releasekit.host.folder import open_file
from releasekit.state import lock_order
from releasekit.state.directory import make_state_directory, state_error
from releasekit.state.lock_order import Kind
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from releasekit.state.lock_order import Hold

# `check` takes a lock for some microseconds to see whether it is free.
ATTEMPTS = 5
PAUSE_S = 0.01
# The longest text about a holder.
_MAX_BYTES: Final = 4 * 1024


class Holder(Struct, frozen=True, kw_only=True):
    """The process that took a lock, according to its file. `started` is UTC in ISO 8601."""

    pid: int
    host: str
    started: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, started {self.started}"


class Locks:
    """Held from the moment it exists until `close`, or the end of the `with` block."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, int, Hold]] = {}

    @property
    def ecosystems(self) -> tuple[str, ...]:
        return tuple(self._held)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """For `Processes(inherit_fds=…)`: an orphan keeps the lock."""
        return tuple(descriptor for descriptor, *_ in self._held.values())

    def take(self, state_directory: Path, ecosystem: str) -> None:
        """Raises LockHeld at once when another process has it."""
        path = lock_file(state_directory, ecosystem)
        hold = lock_order.take(Kind.ECOSYSTEM, ecosystem)
        with contextlib.ExitStack() as undo:
            undo.callback(hold.release)
            writer = _open(path, os.O_RDWR | os.O_CREAT)
            undo.callback(os.close, writer)
            # A lock belongs to an open file, and builds inherit it: they must not write there.
            descriptor = _open(path, os.O_RDONLY)
            undo.callback(os.close, descriptor)
            _lock_or_raise(descriptor, path)
            undo.pop_all()
        self._held[ecosystem] = descriptor, writer, hold
        with contextlib.suppress(OSError):  # a full disk: the lock holds without a name in it
            me = Holder(
                pid=os.getpid(),
                host=socket.gethostname(),
                started=datetime.now(UTC).isoformat(timespec="seconds"),
            )
            os.ftruncate(writer, 0)
            os.lseek(writer, 0, os.SEEK_SET)
            durable.write_all(writer, json.dumps(asdict(me)).encode() + b"\n")

    def close(self) -> None:
        """Idempotent. An empty file tells `check` that its run ended in order."""
        while self._held:
            _, (descriptor, writer, hold) = self._held.popitem()
            with contextlib.suppress(OSError):
                os.ftruncate(writer, 0)
            os.close(writer)
            os.close(descriptor)
            hold.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def acquire(state_directory: Path, ecosystems: Collection[str]) -> Locks:
    """Lock all of `ecosystems` or none; the state directory is made if it is not there.

    Raises LockHeld, naming the holder, when another run has one of them.
    """
    make_state_directory(state_directory)
    wanted = sorted(set(ecosystems))
    locks = Locks()
    try:
        for ecosystem in wanted:
            locks.take(state_directory, ecosystem)
    except BaseException as error:
        locks.close()
        if isinstance(error, LockHeld):
            raise _explain_held(state_directory, wanted) or error from None
        raise
    return locks


def is_ecosystem(name: str) -> bool:
    """Whether `name` can be an ecosystem's, and so part of a file name."""
    return re.fullmatch(r"[a-z0-9-]+", name) is not None


def lock_file(state_directory: Path, ecosystem: str) -> Path:
    if not is_ecosystem(ecosystem):
        raise ValueError(f"not the name of an ecosystem: {ecosystem!r}")
    return state_directory / f"lock.{ecosystem}"


def is_held(path: Path) -> bool:
    """Whether a process holds this lock file right now. Changes nothing."""
    try:
        with durable.opened(path, os.O_RDONLY) as descriptor:
            return not try_lock(descriptor, shared=True)
    except OSError:
        return False


def holder(path: Path) -> Holder | None:
    """The process that took the lock last and did not release it; None if that is unknown."""
    try:
        fields = parse_json(durable.read_file(path, max_bytes=_MAX_BYTES))
        return Holder(
            pid=int(fields["pid"]), host=str(fields["host"]), started=str(fields["started"])
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


def has_ended(holder: Holder) -> bool:
    """Whether the process is certainly gone: then one of its children still holds the lock."""
    if holder.host != socket.gethostname():
        return False
    try:
        os.kill(holder.pid, 0)  # sends nothing, and asks whether the process is there
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def _open(path: Path, flags: int) -> int:
    try:
        return open_file(path, flags)
    except OSError as error:
        raise state_error(
            error,
            f"{path}: cannot be opened as a lock file: {error.strerror}",
            "It must be a plain file in a directory that this user may write.",
        ) from error


def describe_orphans(state_directory: Path, ecosystems: Collection[str]) -> tuple[str, str]:
    """What still holds these locks of a run that has ended, and how to end it."""
    files = [lock_file(state_directory, each) for each in ecosystems]
    if found := find_holders(files):
        named = [f"{program} (process {number})" for number, program in found.items()]
        return ", ".join(named), f"Wait for it to end, or run `kill {' '.join(map(str, found))}`"
    spelled = shlex.join(map(str, files))
    return (
        "something that it started",
        f"Wait for it to end, or end it (`fuser {spelled}` names it)",
    )


def _explain_held(state_directory: Path, ecosystems: Sequence[str]) -> LockHeld | None:
    """By the locks that are held now, all of which the first of them stands for; None where none is
    held any more.
    """
    held = [each for each in ecosystems if is_held(lock_file(state_directory, each))]
    if not held:
        return None
    other = holder(lock_file(state_directory, held[0]))
    # A run holds the locks of all ecosystems that it may publish, whatever is found of them.
    where = "" if held == ecosystems and len(held) > 1 else f" ({', '.join(held)})"
    if other is None or not has_ended(other):
        return LockHeld(
            f"another run publishes from this workspace{where}: {other or 'it does not say who'}",
            hint="Wait for that run to end. The lock goes with it; deleting the file does not "
            "help.",
        )
    names, cure = describe_orphans(state_directory, held)
    return LockHeld(
        f"a run of this workspace{where} was killed, and what it started still runs: {names}; the "
        f"run was {other}",
        hint=f"{cure}; then run the same command again.",
    )


def _lock_or_raise(descriptor: int, path: Path) -> None:
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_S)
        try:
            if try_lock(descriptor):
                return
        except OSError as error:
            raise state_error(
                error,
                f"{path}: cannot be locked: {error.strerror}",
                "Name a `state-directory` on a disk of this machine: NFS has no such locks.",
            ) from error
    raise LockHeld(
        "another run publishes from this workspace: its lock was held until just now",
        hint="Run the same command again.",
    )
