"""A server that means harm: what it says to every request is named by the first part of the path.

Sizes are close below the caps, so that what is read is read to its end.
"""

from __future__ import annotations

import contextlib
import gzip
import socketserver
import sys
import threading
from typing import TYPE_CHECKING, Final, cast

from effort import SEARCHING

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator

JSON: Final = "application/vnd.pypi.simple.v1+json"
HTML: Final = "text/html"
XML: Final = "text/xml"
TEXT: Final = "text/plain"
# The largest page, XML document and other answer that anything is read of.
CAPS: Final = {HTML: 32, JSON: 32, XML: 8, TEXT: 4}
_GO_BYTES: Final = 1024 * 1024
_PIECE: Final = 64 * 1024

# What a body begins with, what is repeated until the cap, and its type.
_REPEATED: Final = {
    "json-lists": (b'{"files":[', b"[],", JSON),
    "json-objects": (b'{"versions":{', b'"a":{"a":{}},', JSON),
    "json-nested": (b'{"files":', b"[", JSON),
    "json-digits": (b'{"files":[', b"9", JSON),
    "json-keys": (b"{", b'"files":[],', JSON),
    "json-name": (b'{"files":[{"filename":"', b"a", JSON),
    "json-halves": (b'{"Version":"', b"\\ud800", JSON),
    "json-one-file": (b'{"files":[', b'{"filename":"acme-1.0-0.tar.gz","hashes":{}},', JSON),
    "html-openings": (b"", b"<", HTML),
    "html-tags": (b"", b"<a>", HTML),
    "html-entities": (b'<a href="', b"&#x41;", HTML),
    "html-links": (b"", b'<a href="acme-1.0-1-py3-none-any.whl#sha256=ab">', HTML),
    "html-digits": (b'<a href="acme-', b"9", HTML),
    "html-attributes": (b"<a ", b"b=c ", HTML),
    "html-comments": (b"", b"<!--", HTML),
    "xml-tags": (b"<metadata>", b"<a/>", XML),
    "xml-attributes": (b"<a ", b"b='' ", XML),
    "xml-entities": (b"<metadata>", b"&lt;", XML),
    "xml-nested": (b"<metadata>", b"<a>", XML),
    "xml-name": (b"<", b"a", XML),
    "lines": (b"", b"\n", TEXT),
    "line-objects": (b"", b"{}\n", TEXT),
    "line-lists": (b"", b"[]," * 1000, TEXT),
    "hex": (b"", b"ab", TEXT),
    "spaces": (b"", b" ", JSON),
}
_DOCUMENTS: Final = tuple(name for name in _REPEATED if not name.startswith(("html-", "xml-")))
_CONNECTIONS: Final = (
    *("gzip-bomb", "gzip-thrice", "gzip-cut", "endless", "tiny-chunks", "charset-zlib"),
    *("endless-headers", "one-header", "many-headers", "cookies", "informational"),
    *("too-short", "too-long", "no-status", "no-http", "negative-length", "endless-reason"),
)
# One reader takes these keys for PyPI, and for npm, where that is quicker.
_SLOW: Final = () if SEARCHING else ("json-keys",)
# What each of them reads to its end.
CASES: Final = {
    "pypi": (
        *(name for name in _REPEATED if name.startswith(("json-", "html-")) and name not in _SLOW),
        *_CONNECTIONS,
    ),
    "npm": _DOCUMENTS,
    "cargo": _DOCUMENTS,
    "go": (*_DOCUMENTS, "gzip-bomb"),
    "maven": (*(name for name in _REPEATED if name.startswith("xml-")), "hex", "spaces"),
}


def _head(kind: str, *lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Type: {kind}", *lines, "", ""]).encode()


def _repeated(start: bytes, again: bytes, kind: str, limit: int) -> Iterator[bytes]:
    size = min(CAPS[kind] * 1024 * 1024, limit) - 1000
    yield _head(kind, f"Content-Length: {size}") + start
    left = size - len(start)
    block = again * (1024 * 1024 // len(again) + 1)
    block = block[: len(block) // len(again) * len(again)]
    while left > 0:
        yield block[:left]
        left -= len(block)


def _endless(*pieces: bytes) -> Iterator[bytes]:
    yield from pieces[:-1]
    while True:
        yield pieces[-1]


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _packed(data: bytes, encoding: str) -> bytes:
    lines = (f"Content-Encoding: {encoding}", f"Content-Length: {len(data)}")
    return _head(JSON, *lines) + data


def _bomb() -> bytes:
    return gzip.compress(bytes(200 * 1024 * 1024), 1)


def answer(case: str, *, limit: int) -> Iterable[bytes]:
    if case in _REPEATED:
        return _repeated(*_REPEATED[case], limit)
    chunked = _head(HTML, "Transfer-Encoding: chunked")
    other: dict[str, Callable[[], Iterable[bytes]]] = {
        "gzip-bomb": lambda: [_packed(_bomb(), "gzip")],
        "gzip-thrice": lambda: [_packed(gzip.compress(gzip.compress(_bomb())), "gzip, gzip, gzip")],
        "gzip-cut": lambda: [_packed(gzip.compress(b"{}")[:-3], "gzip")],
        "endless": lambda: _endless(chunked, _chunk(bytes(_PIECE))),
        "tiny-chunks": lambda: [chunked, *[_chunk(b"<") * 10_000] * 10, _chunk(b"")],
        "charset-zlib": lambda: [_head("text/html; charset=zlib", "Content-Length: 4") + b"<a/>"],
        "endless-headers": lambda: _endless(b"HTTP/1.1 200 OK\r\n", b"X-Header: value\r\n" * 1000),
        "one-header": lambda: [_head(HTML, f"X-Header: {'v' * 1024 * 1024}")],
        "many-headers": lambda: [_head(HTML, *["X: y"] * 100_000)],
        "cookies": lambda: [
            _head(HTML, *["Set-Cookie: a=b; expires=" + " " * 900] * 90, "Content-Length: 0")
        ],
        "informational": lambda: [b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20_000],
        "too-short": lambda: [_head(HTML, "Content-Length: 1000000000") + b"<a>"],
        "too-long": lambda: [_head(HTML, "Content-Length: 3") + b"<a>" * 100_000],
        "no-status": lambda: [b"HTTP/1.1 " + b"9" * 5000 + b" OK\r\n\r\n"],
        "no-http": lambda: [bytes(range(256)) * 4000],
        "negative-length": lambda: [_head(HTML, "Content-Length: -1")],
        "endless-reason": lambda: _endless(b"HTTP/1.1 200 ", b"O" * _PIECE),
    }
    return other[case]()


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        connection: socket.socket = self.request
        connection.settimeout(60)
        with contextlib.suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                piece = connection.recv(_PIECE)
                if not piece:
                    return
                request += piece
            path = request.split(b" ", 2)[1].decode()
            case = path.split("/")[1]
            if path.endswith("/config.json"):  # of a sparse index, so that its pages are asked for
                body = b'{"dl": "https://127.0.0.1/", "api": "https://127.0.0.1"}'
                connection.sendall(_head(TEXT, f"Content-Length: {len(body)}") + body)
                return
            if case == "slow":
                self._drip(connection)
                return
            if path.endswith("/1.0.0"):  # so that the packument is asked for
                connection.sendall(_head(TEXT, "Content-Length: 0", status="404 Not Found"))
                return
            for piece in answer(case, limit=_GO_BYTES if "/@v/" in path else sys.maxsize):
                connection.sendall(piece)

    def _drip(self, connection: socket.socket) -> None:
        """A byte now and then, without end: no pause is long enough for a time-out."""
        stopped = cast("_Server", self.server).stopped
        connection.sendall(_head(HTML, "Content-Length: 1000000"))
        while not stopped.wait(0.2):
            connection.sendall(b" ")


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    stopped: threading.Event


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """On loopback. Yields its URL, without a slash at its end."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.stopped = threading.Event()
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.stopped.set()
            server.shutdown()
            thread.join()
