"""A reverse proxy on loopback before a real server, for tests that cut its requests off. It takes
them in turns, and carries them as they are.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from harness.http_server import Handler, HangUp, serving
from processes import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Of one connection, and the proxy reads whatever it carries whole.
_OF_A_CONNECTION: Final = {"connection", "content-length", "keep-alive", "transfer-encoding"}


@dataclass
class Proxy:
    """`around` is told "before" and "after" of each request and what it was, and may raise HangUp:
    before it, nothing has happened; after it, the answer is lost. `failing` are answers to the next
    requests of the API that write. `carried` is told, of each request that was, its path, its body
    and the status of the answer.
    """

    target: str
    origin: str = ""
    around: Callable[[str, str], None] = lambda moment, what: None
    carried: Callable[[str, bytes, int], None] = lambda path, body, status: None
    asked: list[str] = field(default_factory=list)
    failing: list[tuple[int, Any, dict[str, str]]] = field(default_factory=list)
    turn: threading.RLock = field(default_factory=threading.RLock)


class _Handler(Handler):
    proxy: Proxy

    def do_GET(self) -> None:
        received = self._receive()
        if received is None:
            return
        headers, body = received
        what = f"{self.command} {self.path}"
        with self.proxy.turn:
            try:
                self.proxy.around("before", what)
                self.proxy.asked.append(what)
                answered = self._answer(headers, body)
                self.proxy.around("after", what)
            except HangUp:
                self.hang_up()
                return
        self.send(*answered)

    do_DELETE = do_HEAD = do_PATCH = do_POST = do_PUT = do_GET

    def _receive(self) -> tuple[dict[str, str], bytes] | None:
        """As `received`, also of a body that comes in chunks: git sends those that are long."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.received()
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0] or b"0", 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        if self.rfile.readline() != b"\r\n":  # whoever asked was killed in the middle
            self.hang_up()
            return None
        return {name.lower(): value for name, value in self.headers.items()}, body

    def _answer(
        self, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        if self.path.startswith("/api/") and self.command != "GET" and self.proxy.failing:
            status, document, more = self.proxy.failing.pop(0)
            kind = ("Content-Type", "application/json")
            return status, [kind, *more.items()], json.dumps(document).encode()
        kept = {name: value for name, value in headers.items() if name not in _OF_A_CONNECTION}
        place = urlsplit(self.proxy.target).netloc
        with contextlib.closing(http.client.HTTPConnection(place, timeout=PATIENCE_S)) as server:
            server.request(self.command, self.path, body or None, kept)
            response = server.getresponse()
            content = response.read()
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.proxy.carried(self.path, body, response.status)
        told = [each for each in response.getheaders() if each[0].lower() not in _OF_A_CONNECTION]
        return response.status, told, content


@contextlib.contextmanager
def serving_proxy(target: str) -> Iterator[Proxy]:
    """Before the server at the URL `target`, which has no path."""
    proxy = Proxy(target)
    with serving(_Handler, checked=True, proxy=proxy) as origin:
        proxy.origin = origin
        yield proxy
