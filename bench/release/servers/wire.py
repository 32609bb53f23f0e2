"""HTTP/1.1 as a registry speaks it, every answer a set time after its request, however many there
are at once; and what a run cost the server: requests, connections, when uploads were in flight.

Bare asyncio protocols, because whatever this process computes is missing on the other core.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Request(NamedTuple):
    """`path` is decoded and without query; names of headers are lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


MISSING: Final = Answer(404, b'{"error":"not found"}')


class App(Protocol):
    """One registry."""

    def package_of(self, request: Request) -> str:
        """What it uploads a file of; empty for every other request."""

    async def answer(self, request: Request) -> Answer: ...

    def published(self) -> dict[str, int]:
        """Every version that is complete, with the number of its files."""

    def index_latency_s(self, request: Request) -> float | None:
        """How long this one takes, where it is not as long as every other."""


class Seen:
    """What went through. Times are of the machine's monotonic clock, which all processes share."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.connections = 0
        self.received = 0
        self.uploads: list[tuple[str, float, float]] = []

    def summary(self, app: App) -> dict[str, object]:
        return {
            "requests": dict(self.requests),
            "connections": self.connections,
            "received": self.received,
            "uploads": self.uploads,
            "published": app.published(),
            "cpu_s": time.process_time(),
        }


class Connection(asyncio.Protocol):
    """One connection, which answers one request after the other."""

    def __init__(self, app: App, seen: Seen, latency_s: float, read_latency_s: float) -> None:
        self._app, self._seen = app, seen
        self._latency_s, self._read_latency_s = latency_s, read_latency_s
        self._data = bytearray()
        self._head: tuple[str, str, dict[str, str], int] | None = None
        self._busy = False
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._seen.connections += 1

    def data_received(self, data: bytes) -> None:
        self._data += data
        self._seen.received += len(data)
        self._next()

    def _next(self) -> None:
        if self._busy:
            return
        if self._head is None:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                return
            lines = self._data[:end].decode("latin-1").split("\r\n")
            method, target, _ = lines[0].split(" ", 2)
            pairs = (line.split(":", 1) for line in lines[1:])
            headers = {name.strip().lower(): value.strip() for name, value in pairs}
            self._head = method, target, headers, end + 4
            if "expect" in headers:
                self._transport.write(_CONTINUE)
        method, target, headers, start = self._head
        if headers.get("transfer-encoding", "").lower() == "chunked":
            taken = _chunks(self._data, start)
            if taken is None:
                return
            body, end = taken
        else:
            end = start + int(headers.get("content-length", "0"))
            if len(self._data) < end:
                return
            body = bytes(self._data[start:end])
        del self._data[:end]
        self._head, self._busy = None, True
        path, _, query = target.partition("?")
        request = Request(method, unquote(path), query, headers, body)
        task = asyncio.get_running_loop().create_task(self._answer(request, time.monotonic()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, request: Request, began_s: float) -> None:
        package = self._app.package_of(request)
        own_s = self._app.index_latency_s(request)
        self._seen.requests[f"{request.method} upload" if package else request.method] += 1
        # A fetch of git posts what it asks for. https://git-scm.com/docs/gitprotocol-http
        reads = request.method in {"GET", "HEAD"} or request.path.endswith("/git-upload-pack")
        usual_s = self._read_latency_s if reads else self._latency_s
        # First: what is uploaded is there when its answer is, and no earlier.
        await asyncio.sleep(usual_s if own_s is None else own_s)
        answer = await self._app.answer(request)
        if package:
            self._seen.uploads.append((package, began_s, time.monotonic()))
        closing = request.headers.get("connection", "").lower() == "close"
        head = [
            f"HTTP/1.1 {answer.status} {'OK' if answer.status < 400 else 'No'}",
            f"Content-Length: {len(answer.body)}",
            f"Content-Type: {answer.kind}",
            *(f"{name}: {value}" for name, value in answer.headers),
            *(["Connection: close"] if closing else []),
        ]
        body = b"" if request.method == "HEAD" or answer.status in {204, 304} else answer.body
        if answer.status in {204, 304}:
            del head[1]
        self._transport.write("\r\n".join([*head, "", ""]).encode("latin-1") + body)
        if closing:
            self._transport.close()
        self._busy = False
        self._next()


def _chunks(data: bytearray, at: int) -> tuple[bytes, int] | None:
    """The body of a chunked request, and where it ends; None before all of it is there."""
    parts: list[bytes] = []
    while True:
        line = data.find(b"\r\n", at)
        if line < 0:
            return None
        size = int(data[at:line].split(b";")[0], 16)
        at = line + 2 + size + 2
        if len(data) < at:
            return None
        if not size:
            return b"".join(parts), at
        parts.append(bytes(data[line + 2 : line + 2 + size]))
