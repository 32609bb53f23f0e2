"""The append-only journal: it tells the next run what no registry can.

One write per record, so what was recorded survives the death of the process. What must survive the
death of the machine is awaited: `intent` returns when it is on the disk, and with it everything
written before; `built` when the built files are. Waiters share one fsync. Runs of different
ecosystems may append to one journal at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, Self

from msgspec.structs import asdict

from releasekit.errors import JournalError, JournalUnwritable, StateError
from releasekit.host import durable, flock
from releasekit.host.folder import open_file
from releasekit.state.directory import JOURNAL, MOVE_AWAY
from releasekit.state.history import (
    SCHEMA,
    SET_ASIDE,
    History,
    HistoryEntry,
    Intent,
    Run,
    compact,
    encode,
    fold,
)
from releasekit.state.lock_order import Kind, taking, turn
from releasekit.text.codec import row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.model import Artifact, Outcome, Package, PackageId, Staged
    from releasekit.state.seals import Seal

__all__ = ["History", "HistoryEntry", "Intent", "Journal", "JournalLog", "Run", "read_history"]

# A release of 10,000 packages takes about 20 MB. It is read as a whole.
MAX_BYTES: Final = 48 * 1024 * 1024


class JournalLog(Protocol):
    """Where the lines go: a file, or memory in a simulation."""

    def heal(self, intact: Callable[[bytes], int]) -> None:
        """Ask how many of all these bytes are intact and drop the rest durably, in one step."""
        ...

    def rewrite(self, shorter: Callable[[bytes], bytes]) -> None:
        """Replace all these bytes by what `shorter` makes of them, durably and in one step."""
        ...

    def append(self, line: Callable[[int], bytes]) -> None:
        """Add a line in one piece or not at all; it is given the number of bytes known durable."""
        ...

    async def sync(self) -> None:
        """Return when everything appended before is durable."""
        ...

    async def persist(self, files: Sequence[Path]) -> None:
        """Return when these files, which builds have written, are durable, names included."""
        ...

    def close(self) -> None:
        """Idempotent; everything appended stays."""
        ...


class LogFile:
    """A `JournalLog` in a file that processes share, with one fsync for all that wait; made where
    it is missing, in a directory that exists.

    Every change happens under flock(2) on the file itself and in one write(2): no reader sees half
    a line of a living process, and half a line of a dead one is cut off before the next is added.
    To shorten the file, another one is put in its place, which every process notices before its
    next change.
    """

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._state_directory = path.parent
        self._entered: set[Path] = set()
        self._failure: OSError | None = None
        self._end = self._durable = 0
        self._turn = asyncio.Lock()
        self._open = threading.Lock()
        self._replaced = 0
        self._pauses = flock.PAUSES
        with self._reporting():
            self._descriptor = _open_log(path)

    def heal(self, intact: Callable[[bytes], int]) -> None:
        """As `JournalLog`; also makes durable what a killed run had only written."""
        with self._reporting(), self._locked():
            data = self._read(0)
            size = intact(data)
            if size < len(data):
                os.ftruncate(self._descriptor, size)
            self._fsync()
            durable.fsync_directory(self._state_directory)
            self._end = self._durable = size

    def rewrite(self, shorter: Callable[[bytes], bytes]) -> None:
        temporary = self._path.with_name(f".{self._path.name}.tmp")
        with self._reporting():
            with self._locked():
                data = self._read(0)
                fewer = shorter(data)
                if fewer == data:
                    return
                # Only the holder of the lock on the file in place uses that name.
                durable.replace(self._path, fewer, temporary=temporary)
            self._reopen()
            self._end = self._durable = len(fewer)

    def append(self, line: Callable[[int], bytes]) -> None:
        with self._reporting(), self._locked() as found:
            # As long as we left it, so its last line is ours, and whole.
            size = found if found == self._end else self._cut_half_line(found)
            data = line(self._durable)
            try:
                durable.write_all(self._descriptor, data)
            except OSError:
                os.ftruncate(self._descriptor, size)
                raise
            self._end = size + len(data)

    async def sync(self) -> None:
        """As `JournalLog`. The first in turn does it for all that wait behind it."""
        wanted = self._end
        async with turn(Kind.JOURNAL_SYNC, str(self._path), self._turn):
            if self._durable >= wanted:
                return
            reached, replaced = self._end, self._replaced
            await asyncio.to_thread(self._flush)
            # A shorter file has other offsets; it was durable, and held all this, when it was put
            # in place.
            if replaced == self._replaced:
                self._durable = reached

    async def persist(self, files: Sequence[Path]) -> None:
        await asyncio.to_thread(self._persist, files)

    def close(self) -> None:
        """As `JournalLog`; waits for an fsync that was abandoned halfway."""
        with self._exchanging():
            if self._descriptor >= 0:
                os.close(self._descriptor)
            self._descriptor = -1
            self._failure = self._failure or OSError(errno.EBADF, "it is closed")

    def _flush(self) -> None:
        with self._exchanging(), self._reporting():
            self._fsync()

    def _fsync(self) -> None:
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            # A second fsync would succeed, and vouch for what is lost.
            # https://www.usenix.org/conference/atc20/presentation/rebello
            self._failure = error
            raise

    def _persist(self, files: Sequence[Path]) -> None:
        with self._reporting():
            for file in files:
                durable.fsync(file)
                self._entered.discard(file)
            new = {entry for file in files for entry in self._find_unentered(file)}
            for directory in {entry.parent for entry in new}:
                durable.fsync_directory(directory)
            self._entered |= new

    def _find_unentered(self, file: Path) -> Iterator[Path]:
        """The file and the directories above it, in the state directory, up to one whose name is
        durable.
        """
        if file.is_relative_to(self._state_directory):
            top, known = self._state_directory, self._entered
            for entry in (file, *file.parents):
                if entry == top or entry in known:
                    return
                yield entry

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the lock on the file that is in place now, and yield how long it is.

        Another process may lock it for each of our writes. All waits together take at most ten
        seconds, plus one pause for each write.
        """
        while True:
            with (
                taking(Kind.JOURNAL, str(self._path)),
                flock.exclusive(self._descriptor, self._pauses) as left,
            ):
                self._pauses = min(left + 1, flock.PAUSES)
                if (size := self._size_in_place()) is not None:
                    yield size
                    return
            self._reopen()

    @contextlib.contextmanager
    def _exchanging(self) -> Iterator[None]:
        """No other thread uses, closes or replaces the descriptor inside this block."""
        with taking(Kind.JOURNAL_DESCRIPTOR, str(self._path)), self._open:
            yield

    def _size_in_place(self) -> int | None:
        """Of our file; None if another one has taken its place."""
        ours = os.fstat(self._descriptor)
        try:
            there = os.lstat(self._path)
        except FileNotFoundError:
            return ours.st_size  # removed by hand: what is written goes with it
        is_ours = (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
        return ours.st_size if is_ours else None

    def _reopen(self) -> None:
        descriptor = _open_log(self._path)
        with self._exchanging():
            os.close(self._descriptor)
            self._descriptor = descriptor
        self._replaced += 1
        self._end = self._durable = 0

    def _read(self, start: int) -> bytes:
        size = os.lseek(self._descriptor, 0, os.SEEK_END)
        _refuse_longer(size - start, self._max_bytes, self._path)
        os.lseek(self._descriptor, start, os.SEEK_SET)
        chunks = iter(lambda: os.read(self._descriptor, 1 << 20), b"")
        return b"".join(chunks)

    def _cut_half_line(self, size: int) -> int:
        """Without what a process wrote that died in the middle; returns the size after that."""
        if size and self._read(size - 1) != b"\n":
            size = self._read(0).rfind(b"\n") + 1
            os.ftruncate(self._descriptor, size)
        return size

    @contextlib.contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            if self._failure is not None:
                raise self._failure
            yield
        except OSError as error:
            raise JournalUnwritable(
                f"{error.filename or self._path}: cannot be written: {error.strerror or error}",
                hint="What is published stays published. Make room or correct the permissions, and "
                "run it again: it goes on from there.",
            ) from error


class Journal:
    """The journal of one run. `history` is what the earlier ones left, without a torn tail.

    `seal` seals what is built or staged; of earlier records, those that it fits count as sealed.
    `redact` takes the secrets out of reasons and errors. `clock` counts seconds. A journal of more
    than `compact_above` bytes is shortened first, if that halves it.
    """

    compact_above: ClassVar[int] = 8 * 1024 * 1024

    def __init__(
        self,
        log: JournalLog,
        *,
        state_directory: Path,
        run_id: str,
        redact: Callable[[str], str] = str,
        seal: Seal | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.history = History()
        self._log = log
        self._state_directory = state_directory
        self._run_id = run_id
        self._redact = redact
        self._seal = seal
        self._commit = ""
        self._clock = clock
        self._began = clock()
        self._sequence = 0
        self._registries: dict[PackageId, str] = {}
        log.heal(self._fold)
        if self.history.intact > self.compact_above:
            log.rewrite(self._compact)

    @classmethod
    def open(
        cls,
        state_directory: Path,
        *,
        run_id: str,
        redact: Callable[[str], str] = str,
        seal: Seal | None = None,
    ) -> Self:
        """The journal in `state_directory`, which exists and whose ecosystems are locked."""
        log = LogFile(state_directory / JOURNAL, max_bytes=MAX_BYTES)
        try:
            return cls(
                log, state_directory=state_directory, run_id=run_id, redact=redact, seal=seal
            )
        except BaseException:
            log.close()
            raise

    @property
    def seal(self) -> Seal | None:
        """What the state of this run is sealed with."""
        return self._seal

    def run_started(
        self,
        *,
        plan_digest: str,
        commit: str,
        tool: str,
        started_at: str,
        ecosystems: Collection[str],
    ) -> None:
        """The first record of a run. `tool` is our version, `started_at` UTC in ISO 8601."""
        self._commit = commit
        self._append(
            "run_started",
            plan=plan_digest,
            commit=commit,
            tool=tool,
            started_at=started_at,
            ecosystems=sorted(ecosystems),
        )

    def planned(self, pending: Mapping[PackageId, Collection[PackageId]]) -> None:
        """The packages with something left to do, and which of them each one waits for: for people
        who read the file.
        """
        needs = {str(package): sorted(map(str, on)) for package, on in pending.items()}
        self._append("planned", needs=needs)

    def phase_started(self, node: str, *, attempt: int = 1) -> None:
        """`node` is the scheduler's name, "upload pypi:acme-core"."""
        self._append("step_started", node=node, **_number_attempt(attempt))

    def phase_ended(
        self, node: str, *, attempt: int = 1, duration_s: float, error: str = ""
    ) -> None:
        """Only a success (no `error`) counts for the durations of the next run."""
        failure = {"error": self._redact(error)} if error else {}
        self._append(
            "step_ended",
            node=node,
            duration_s=round(float(duration_s), 6),
            **_number_attempt(attempt),
            **failure,
        )

    async def built(
        self,
        package: Package,
        artifacts: Sequence[Artifact],
        *,
        fingerprint: str = "",
        again: bool = False,
    ) -> None:
        """Returns when the files, which lie in the state directory, are durable and recorded.

        The record itself may wait for the next fsync: until an upload begins, losing it costs
        nothing but time, and `intent` makes everything before it durable. `again`: it may differ
        from what an upload was begun with, since nothing vouched for that.
        """
        await self._log.persist([artifact.path for artifact in artifacts])
        brought = [artifact.filename for artifact in package.prebuilt]
        record: dict[str, object] = {
            "package": str(package.id),
            "version": package.version,
            "fingerprint": fingerprint,
            **({"prebuilt": brought} if brought else {}),
            **({"again": True} if again else {}),
            "artifacts": [
                row_of(each, path={"path": self._relative(each.path)}, attestation={})
                for each in artifacts
            ],
        }
        if self._seal is not None:
            sealed = {**record, "run": self._run_id}
            record["seal"] = self._seal.of(sealed, commit=self._commit)
        self._append("built", **record)

    def attested(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        """Durable with the intent that follows."""
        record: dict[str, object] = {
            "package": str(package.id),
            "version": package.version,
            "files": {
                artifact.filename: {
                    "sha256": artifact.sha256,
                    "path": self._relative(signed.path),
                    "bundle": signed.sha256,
                    "log": signed.log_url,
                    "index": signed.log_index,
                }
                for artifact in artifacts
                if (signed := artifact.attestation) is not None
            },
        }
        if self._seal is not None:
            record["seal"] = self._seal.of({**record, "run": self._run_id})
        self._append("attested", **record)

    async def intent(self, package: Package, *, registry: str, digests: Mapping[str, str]) -> None:
        """Await it before the first byte of an upload. `digests` maps filename to sha256."""
        self._registries[package.id] = registry
        self._append_for(package, "intent", registry=registry, digests=dict(digests))
        await self._log.sync()

    def outcome(
        self, package: Package, outcome: Outcome, reason: str, *, staged: Staged | None = None
    ) -> None:
        """Durable with the next thing awaited: if it is lost, the next run asks the registry."""
        more: dict[str, object] = {}
        if staged is not None:
            more["staged"] = {key: self._redact(text) for key, text in asdict(staged).items()}
            if self._seal is not None:
                what = {"package": str(package.id), "version": package.version, "outcome": outcome}
                sealed = {**what, **more, "run": self._run_id}
                # Where its upload was begun last, by this run or an earlier one.
                entry = self.history.entry(package)
                earlier = entry.intent.registry if entry and entry.intent else ""
                registry = self._registries.get(package.id, earlier)
                more["seal"] = self._seal.of(sealed, registry=registry)
        self._append_for(package, "outcome", outcome=outcome, reason=self._redact(reason), **more)

    async def run_ended(self, result: str) -> None:
        """The last record; `result` as in the action's output: "success", "partial" and so on."""
        self._append("run_ended", result=result)
        await self._log.sync()

    def close(self) -> None:
        """Idempotent; nothing recorded is lost by it."""
        self._log.close()

    def _fold(self, data: bytes) -> int:
        self.history = fold(
            data, state_directory=self._state_directory, where=JOURNAL, seal=self._seal
        )
        return self.history.intact

    def _compact(self, data: bytes) -> bytes:
        self.history = History()  # memory is sized for one history, not two
        shorter = compact(data, most=len(data) // 2) or data
        self._fold(shorter)
        return shorter

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._state_directory).as_posix()

    def _append_for(self, package: Package, event: str, **fields: object) -> None:
        self._append(event, package=str(package.id), version=package.version, **fields)

    def _append(self, event: str, **fields: object) -> None:
        self._log.append(partial(self._line, event, fields))
        self._sequence += 1

    def _line(self, event: str, fields: Mapping[str, object], durable: int) -> bytes:
        record = {
            "v": SCHEMA,
            "run": self._run_id,
            "seq": self._sequence,
            "at": round(self._clock() - self._began, 6),
            "durable": durable,
            "event": event,
            **fields,
        }
        return encode(record)


def read_history(state_directory: Path, *, seal: Seal | None = None) -> History:
    """What the journal says; an empty history if there is none. Changes nothing."""
    path = state_directory / JOURNAL
    try:
        with durable.reading(path) as file:
            # Refuse a sparse file before reading it.
            _refuse_longer(os.fstat(file.fileno()).st_size, MAX_BYTES, path)
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        data = b""
    except OSError as error:
        raise StateError(f"{path}: cannot be read: {error.strerror}", hint=MOVE_AWAY) from error
    _refuse_longer(len(data), MAX_BYTES, path)
    return fold(data, state_directory=state_directory, where=JOURNAL, seal=seal)


def _number_attempt(attempt: int) -> dict[str, int]:
    return {"attempt": attempt} if attempt > 1 else {}


def _refuse_longer(size: int, most: int, path: Path) -> None:
    """Raises JournalError: a journal is read as a whole."""
    if size > most:
        raise JournalError(f"{path}: is longer than {most} bytes", hint=SET_ASIDE)


def _open_log(path: Path) -> int:
    return open_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
