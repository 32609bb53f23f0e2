"""Servers of the tests' own, each in a thread of its own."""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class HangUp(ConnectionError):
    """What a test raises while a request is answered: the client gets no answer."""


class Server(ThreadingHTTPServer):
    """Keeps what goes wrong in the server itself, for a test to look at."""

    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.defects: list[str] = []
        super().__init__(address, handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no defect, nor is one that is hung up on."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            self.defects.append("".join(traceback.format_exception(error)))
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    """Of a double, whose clients are killed while they ask, and which hangs up on them."""

    protocol_version = "HTTP/1.1"
    # Answers are small: without this each waits 40 ms for the acknowledgement of the one before.
    disable_nagle_algorithm = True

    def received(self) -> tuple[dict[str, str], bytes] | None:
        """Headers and body; None, and the connection is reset, where the body was cut off."""
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size)
        if len(body) < size:  # whoever asked was killed between the two
            self.hang_up()
            return None
        return {name.lower(): value for name, value in self.headers.items()}, body

    def send(self, status: int, headers: Iterable[tuple[str, str]] = (), body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def hang_up(self) -> None:
        """A reset instead of an orderly end."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextlib.contextmanager
def serving(
    handler: type[BaseHTTPRequestHandler],
    *,
    port: int = 0,
    checked: bool = False,
    **attributes: object,
) -> Iterator[str]:
    """A server on loopback, whose handler has these attributes. Yields its URL, without a slash at
    its end. What goes wrong in one that is `checked` fails the test.
    """
    bound = type(handler.__name__, (handler,), attributes)
    with Server(("127.0.0.1", port), bound) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
    assert not (checked and server.defects), "".join(server.defects)
