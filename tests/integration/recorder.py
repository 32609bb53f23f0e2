"""A reverse proxy that sees what a server sees: when each request came, how many at once.

It can also be the bad day of a network: lag, 429, 503, resets, answers that get lost.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

from harness.http_server import Handler, Server
from processes import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}
_FILENAME = re.compile(rb'name="content"; filename="([^"]+)"')
_ATTACHMENT = re.compile(rb'"_attachments":\s*\{\s*"([^"]+\.tgz)"')


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One request as the server saw it; seconds of the machine's monotonic clock.

    `ended_s` is when the answer was there and about to leave: before any client can know of it.
    `filename` is what an upload carries, `in_flight` how many uploads there were with this one.
    `status` is None, and `answer` empty, when no answer went out.
    """

    method: str
    path: str
    began_s: float
    ended_s: float
    status: int | None
    filename: str
    in_flight: int
    headers: dict[str, str]
    body: bytes = field(repr=False)
    answer: bytes = field(repr=False)


_WORDS: Final = b"the server has a bad day"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Befalls the next request whose method, path and uploaded file match.

    "late": kept from the server until the recorder's `let_go`; "status": answered without asking
    the server; "refused": the server acts on it, and it is answered with `status` all the same;
    "reset": cut off before the server sees it; "lost": the server acts on it, and its answer never
    arrives; "held": likewise, but the client waits for it until `let_go`.
    """

    kind: Literal["late", "status", "refused", "reset", "lost", "held"]
    method: str = "POST"
    path: str = ".*"
    filename: str = ".*"
    status: int = 503
    headers: tuple[tuple[str, str], ...] = ()

    def befalls(self, method: str, path: str, filename: str) -> bool:
        return (
            method == self.method
            and re.fullmatch(self.path, path) is not None
            and re.fullmatch(self.filename, filename) is not None
        )


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def _carried(method: str, path: str, body: bytes) -> str:
    """The name of the file that a request uploads; empty for every other request."""
    pattern = {"POST": _FILENAME, "PUT": _ATTACHMENT}.get(method)
    if pattern and (found := pattern.search(body)):
        return found[1].decode()
    if (method, path) == ("PUT", "/api/v1/crates/new"):
        crate = json.loads(body[4 : 4 + int.from_bytes(body[:4], "little")])
        return f"{crate['name']}-{crate['vers']}.crate"
    if method == "PUT" and path.endswith((".pom", ".jar", ".asc")):
        return path.rpartition("/")[2]
    return ""


class Recorder:
    """`url` is the proxy's, `exchanges` what went through so far, in order of arrival."""

    def __init__(self, upstream: str) -> None:
        self.upstream = urlsplit(upstream)
        self.faults: deque[Fault] = deque()
        self.lag_s = 0.0  # of every upload
        self.holding = 0  # requests that wait for `let_go`
        self._gate = threading.Event()
        self._lock = threading.Lock()
        self._exchanges: list[Exchange] = []
        self._uploading = 0
        recorder = self

        class Handler(_Handler):
            pass

        Handler.recorder = recorder
        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self.let_go()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def exchanges(self) -> list[Exchange]:
        with self._lock:
            return sorted(self._exchanges, key=lambda exchange: exchange.began_s)

    @property
    def uploads(self) -> list[Exchange]:
        """Uploads in order of arrival."""
        return [exchange for exchange in self.exchanges if exchange.filename]

    @property
    def uploading(self) -> int:
        """The uploads in flight now."""
        with self._lock:
            return self._uploading

    @property
    def peak_uploads(self) -> int:
        """The most uploads that were in flight at one instant."""
        return max((exchange.in_flight for exchange in self.exchanges), default=0)

    def forget(self) -> None:
        with self._lock:
            self._exchanges.clear()

    def start_over(self) -> None:
        self.forget()
        self.faults.clear()
        self.lag_s = 0.0

    def next_fault(self, method: str, path: str, filename: str) -> Fault | None:
        with self._lock:
            for fault in self.faults:
                if fault.befalls(method, path, filename):
                    self.faults.remove(fault)
                    return fault
        return None

    def hold(self) -> None:
        with self._lock:
            self.holding += 1
            gate = self._gate
        gate.wait()

    def let_go(self) -> None:
        """End what is held by now."""
        with self._lock:
            gate, self._gate, self.holding = self._gate, threading.Event(), 0
        gate.set()

    def record(self, exchange: Exchange) -> None:
        with self._lock:
            self._exchanges.append(exchange)

    @contextmanager
    def counted(self, *, upload: bool) -> Iterator[int]:
        """How many uploads are in flight, this one included."""
        with self._lock:
            self._uploading += upload
            now = self._uploading
        try:
            yield now
        finally:
            with self._lock:
                self._uploading -= upload


class _Server(Server):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what these tests are about."""


class _Handler(Handler):
    recorder: Recorder

    def do_GET(self) -> None:
        self._handle()

    do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_GET

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        filename = _carried(self.command, self.path, body)
        began_s = time.monotonic()
        with self.recorder.counted(upload=bool(filename)) as in_flight:
            answer = self._answer(body, filename)
            self.recorder.record(
                Exchange(
                    method=self.command,
                    path=self.path,
                    began_s=began_s,
                    ended_s=time.monotonic(),
                    status=answer.status if answer else None,
                    filename=filename,
                    in_flight=in_flight,
                    headers={name.lower(): value for name, value in self.headers.items()},
                    body=body,
                    answer=answer.body if answer else b"",
                )
            )
        # Only now: what a client does next must not be seen beside what it has the answer of.
        if answer is None:
            self.hang_up()
        else:
            self._reply(answer)

    def _answer(self, body: bytes, filename: str) -> _Answer | None:
        """None: the client gets none."""
        fault = self.recorder.next_fault(self.command, self.path, filename)
        if fault is not None and fault.kind == "reset":
            return None
        if fault is not None and fault.kind == "status":
            return _Answer(fault.status, fault.headers, _WORDS)
        if filename and self.recorder.lag_s:
            time.sleep(self.recorder.lag_s)
        if fault is not None and fault.kind == "late":
            self.recorder.hold()
        answer = self._ask_server(body)
        if fault is not None and fault.kind == "held":
            self.recorder.hold()
        if fault is not None and fault.kind in {"lost", "held"}:
            return None
        if fault is not None and fault.kind == "refused":
            return _Answer(fault.status, fault.headers, _WORDS)
        return answer

    def _ask_server(self, body: bytes) -> _Answer:
        upstream = self.recorder.upstream
        connection = http.client.HTTPConnection(
            upstream.hostname or "", upstream.port, timeout=PATIENCE_S
        )
        headers = {k: v for k, v in self.headers.items() if k.lower() != "connection"}
        try:
            connection.request(self.command, self.path, body or None, headers)
            response = connection.getresponse()
            return _Answer(response.status, tuple(response.getheaders()), response.read())
        finally:
            connection.close()

    def _reply(self, answer: _Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers:
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        # The answer to HEAD tells the length of a body that is not there.
        length = dict(answer.headers).get("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
