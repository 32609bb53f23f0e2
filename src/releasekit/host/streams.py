"""What a child process prints: pipes, lines, the last lines, and a log file."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import tempfile
from collections import deque
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Final

from releasekit.aio import uncancellable
from releasekit.errors import CommandFailed, describe_os_error
from releasekit.host import durable
from releasekit.host.folder import Folder, open_file
from releasekit.host.scrub import NOTHING_SECRET, Redactor
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import ExitStack

TAIL_LINES: Final = 40
TAIL_BYTES: Final = 64 * 1024
# A line without an end is cut, so that a progress bar cannot fill the memory.
MAX_LINE: Final = 64 * 1024
HELD_BACK: Final = 8 * 1024
MAX_OUTPUT: Final = 16 * 1024 * 1024
MAX_LOG: Final = 64 * 1024 * 1024
# How long a writer that is still there after the block has to let go of the pipe.
_PATIENCE_S: Final = 0.5
_KEPT_THERE: Final = (
    "What a build prints is kept there. Make room, or move away what is in the way."
)


def last_lines(
    log: Path, *, most: int = TAIL_LINES, max_bytes: int = TAIL_BYTES
) -> tuple[str, ...]:
    """The end of what a child itself wrote to `log`: whole lines, so that no part of a secret goes
    unnoticed; not redacted, empty if it wrote nothing. A progress bar's are lines too.
    """
    try:
        with durable.reading(log) as file:
            skipped = os.fstat(file.fileno()).st_size - max_bytes
            file.seek(max(0, skipped - 1))
            lines = file.read(max_bytes + 1).decode(errors="replace").splitlines()
    except OSError:
        return ()
    whole = lines[1:] if skipped > 0 else lines
    return tuple(whole[-most:])


@contextlib.contextmanager
def appending(log: Path) -> Iterator[BinaryIO]:
    """The log, and the directory it is in, made if they are not there; raises CommandFailed, at the
    end for what could not be written.
    """
    try:
        durable.make_directory(log.parent)
        descriptor = open_file(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    except OSError as error:
        raise CommandFailed(
            describe_os_error(error),
            hint=_KEPT_THERE,
            problem=Problem.NO_PLACE_TO_BUILD,
        ) from error
    file = os.fdopen(descriptor, "ab")
    try:
        yield file
    except BaseException:
        with contextlib.suppress(OSError):
            file.close()
        raise
    try:
        file.close()
    except OSError as error:
        raise CommandFailed(
            f"{log}: {error.strerror}", hint=_KEPT_THERE, problem=Problem.NO_PLACE_TO_BUILD
        ) from error


class Stream(asyncio.Protocol):
    """The read end of a pipe. asyncio's own pipes cannot be closed while a grandchild that left
    the group still holds the other end: https://github.com/python/cpython/issues/119710
    """

    def __init__(self, take: Callable[[bytes], None], *, keep: bytearray | None = None) -> None:
        self._take = take
        self._keep = keep
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self, ours: ExitStack) -> int:
        """The write end, for the child; `ours` closes our copy of it."""
        read_end, write_end = os.pipe()
        ours.callback(os.close, write_end)
        await self._read(read_end)
        return write_end

    async def open_named(self, directory: Path, name: str, ours: ExitStack) -> None:
        """Processes that open the pipe of this name write to it; `ours` keeps it open meanwhile."""
        with Folder.reached(directory) as folder:
            read_end, write_end = folder.open_pipe(name)
        ours.callback(os.close, write_end)
        await self._read(read_end)

    async def _read(self, descriptor: int) -> None:
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: self, os.fdopen(descriptor, "rb", buffering=0)
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._keep is not None and len(self._keep) <= MAX_OUTPUT:
            self._keep += data
        self._take(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio names it
        self._take(b"")
        self.closed.set_result(None)

    def close(self) -> None:
        self._transport.close()


class Splitter:
    """Cuts bytes into lines; an empty chunk ends the last one."""

    def __init__(
        self,
        line: Callable[[str], None],
        *,
        redact: Redactor = NOTHING_SECRET,
        limit: int = MAX_LINE,
    ) -> None:
        self._line = line
        self._redact = redact
        self._limit = limit
        self._rest = bytearray()

    def feed(self, data: bytes) -> None:
        first = len(self._rest)
        self._rest += data
        while (end := self._rest.find(b"\n", first)) >= 0:
            self._emit(bytes(self._rest[:end]).removesuffix(b"\r"))
            del self._rest[: end + 1]
            first = 0
        if not data and self._rest:
            self._emit(bytes(self._rest))
            self._rest.clear()
        elif len(self._rest) > self._limit + self._redact.longest:
            self._cut()

    def _cut(self) -> None:
        """What is held back may be the first half of a secret, or of a character."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = self._redact(decoder.decode(self._rest))
        half, _ = decoder.getstate()
        held_back = max(HELD_BACK, self._redact.longest)
        self._line(text[:-held_back])
        self._rest = bytearray(text[-held_back:].encode() + half)

    def _emit(self, raw: bytes) -> None:
        self._line(self._redact(raw.decode(errors="replace")))


class Output:
    """What both streams of a child print: its last lines, and all of it in `log` if that is set."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._lines: deque[str] = deque(maxlen=TAIL_LINES)
        self._room = MAX_LOG
        self.log: IO[bytes] | None = None

    def splitter(self) -> Splitter:
        return Splitter(self._add, redact=self._redact)

    def tail(self) -> tuple[str, ...]:
        return tuple(self._lines)

    def _add(self, line: str) -> None:
        self._lines.append(line)
        if self.log is None or self._room < 0:
            return
        data = line.encode() + b"\n"
        self._room -= len(data)
        try:
            self.log.write(data if self._room >= 0 else b"[the log is cut here: it is full]\n")
        except OSError:
            # The child must not wait for a reader that is gone. Closing the log writes what is left
            # of it, and fails for the same reason.
            self._room = -1


@contextlib.asynccontextmanager
async def log_pipe(log: Path, redact: Redactor) -> AsyncIterator[Path]:
    """The path of a named pipe: what processes write there is appended to `log`, line by line and
    redacted. Once this is left, `log` has all of it. Raises CommandFailed for a link in its place.

    It lies in the directory for temporary files, which builds may write to.
    """
    with contextlib.ExitStack() as ours:
        directory = durable.make_scratch(Path(tempfile.gettempdir()), "releasekit-log-")
        ours.callback(_remove_scratch, directory)
        output = Output(redact)
        output.log = ours.enter_context(appending(log))
        stream = Stream(output.splitter().feed)
        writer = contextlib.ExitStack()
        await stream.open_named(directory, "log", writer)
        try:
            with writer:
                yield directory / "log"
        finally:
            try:
                await asyncio.wait((stream.closed,), timeout=_PATIENCE_S)
            finally:
                stream.close()
                await uncancellable(stream.closed)


def _remove_scratch(directory: Path) -> None:
    """A process that writes there may have put something in the way, so it may fail."""
    with contextlib.suppress(OSError):
        durable.remove_tree(directory)
