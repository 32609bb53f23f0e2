"""An append-only file of lines, shared by processes, with one fsync for all that wait.

Every change happens under flock(2) on the file itself and in one write(2): no reader sees half a
line of a living process, and half a line of a dead one is cut off before the next is added. To
shorten the file, another one is put in its place, which every process notices before its next
change.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
from typing import TYPE_CHECKING

from releasekit.errors import JournalError, JournalUnwritable
from releasekit.host import durable, flock
from releasekit.state.lock_order import Kind, taking, turn
from releasekit.text.commands import spelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


class LogFile:
    """Opened, and made if necessary, in a directory that exists."""

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
            self._descriptor = _opened(path)

    def heal(self, intact: Callable[[bytes], int]) -> None:
        """See `journal.Log`; also makes durable what a killed run had only written."""
        with self._reporting(), self._locked():
            data = self._read(0)
            size = intact(data)
            if size < len(data):
                os.ftruncate(self._descriptor, size)
            self._fsync()
            durable.fsync_directory(self._state_directory)
            self._end = self._durable = size

    def rewrite(self, shorter: Callable[[bytes], bytes]) -> None:
        """See `journal.Log`."""
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
        """See `journal.Log`."""
        with self._reporting(), self._locked():
            size = self._end_of_last_line()
            data = line(self._durable)
            try:
                durable.write_all(self._descriptor, data)
            except OSError:
                os.ftruncate(self._descriptor, size)
                raise
            self._end = size + len(data)

    async def sync(self) -> None:
        """See `journal.Log`. The first in turn does it for all that wait behind it."""
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
        """See `journal.Log`."""
        await asyncio.to_thread(self._persist, files)

    def close(self) -> None:
        """See `journal.Log`; waits for an fsync that was abandoned halfway."""
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
            entries = {entry for file in files for entry in (file, *file.parents)}
            new = {
                entry
                for entry in entries - self._entered
                if entry.is_relative_to(self._state_directory)
            }
            for directory in {entry.parent for entry in new if entry != self._state_directory}:
                durable.fsync_directory(directory)
            self._entered |= new

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock on the file that is in place now.

        Somebody may lock it for each write. The waits of all writes together take ten seconds at
        most, and a pause for each write.
        """
        while True:
            with (
                taking(Kind.JOURNAL, str(self._path)),
                flock.exclusive(self._descriptor, self._pauses) as left,
            ):
                self._pauses = min(left + 1, flock.PAUSES)
                if self._in_place():
                    yield
                    return
            self._reopen()

    @contextlib.contextmanager
    def _exchanging(self) -> Iterator[None]:
        """Nothing else uses, closes or replaces the descriptor meanwhile."""
        with taking(Kind.JOURNAL_DESCRIPTOR, str(self._path)), self._open:
            yield

    def _in_place(self) -> bool:
        try:
            there = self._path.lstat()
        except FileNotFoundError:
            return True  # removed by hand: what is written goes with it
        ours = os.fstat(self._descriptor)
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)

    def _reopen(self) -> None:
        descriptor = _opened(self._path)
        with self._exchanging():
            os.close(self._descriptor)
            self._descriptor = descriptor
        self._replaced += 1
        self._end = self._durable = 0

    def _read(self, start: int) -> bytes:
        size = os.lseek(self._descriptor, 0, os.SEEK_END)
        refuse_longer(size - start, self._max_bytes, self._path)
        os.lseek(self._descriptor, start, os.SEEK_SET)
        chunks = iter(lambda: os.read(self._descriptor, 1 << 20), b"")
        return b"".join(chunks)

    def _end_of_last_line(self) -> int:
        """The size of the file, without the half line of a process that died writing it."""
        size = os.lseek(self._descriptor, 0, os.SEEK_END)
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


def refuse_longer(size: int, most: int, path: Path) -> None:
    """Raises JournalError: a journal is read as a whole."""
    if size > most:
        raise JournalError(
            f"{path}: is longer than {most} bytes",
            hint=f"{spelled('doctor --fix')} sets the journal aside; what is published is then "
            "read from the registries alone.",
        )


def _opened(path: Path) -> int:
    return durable.open_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
