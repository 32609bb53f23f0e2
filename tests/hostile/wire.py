"""A server that may break every rule of HTTP: each answer is bytes, pauses and resets, by table."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, Self

from processes import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_MAX_HEAD: Final = 1024 * 1024


class Cut(Enum):
    """How an answer may end before its end."""

    RESET = "reset"


# A number is a pause in seconds, which the end of the server ends.
Part = bytes | float | Cut


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    @property
    def credentials(self) -> str:
        return self.header("Authorization")


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()

    def head(self, **more: object) -> bytes:
        """Status line and headers, with the length unless `more` says another; None for none."""
        named: dict[str, object] = {"Content_Type": self.kind, "Content_Length": len(self.body)}
        pairs = [(key.replace("_", "-"), value) for key, value in (named | more).items()]
        lines = [f"HTTP/1.1 {self.status} Said"]
        lines += [f"{key}: {value}" for key, value in pairs if value is not None]
        lines += [f"{key}: {value}" for key, value in self.headers]
        return "\r\n".join([*lines, "Connection: close", "", ""]).encode("utf-8", "surrogateescape")

    def wire(self) -> bytes:
        return self.head() + self.body


@dataclass
class Wire:
    """`answer` is asked in a thread for each request."""

    answer: Callable[[Request], Iterable[Part]]
    seen: list[Request] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        # Wakes the thread that accepts.
        with contextlib.suppress(OSError):
            socket.create_connection(self._listener.getsockname(), timeout=PATIENCE_S).close()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def elsewhere(self) -> str:
        """The same server by another name, which is another origin."""
        return f"http://localhost:{self.port}"

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._stopped.is_set():
                connection.close()
                return
            connection.settimeout(30)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, ValueError):
            request = _read(connection)
            self.seen.append(request)
            if self._say(connection, self.answer(request)):
                connection.shutdown(socket.SHUT_WR)
                # Until it has read all: to close on what is unread resets the connection.
                while connection.recv(65536):
                    pass

    def _say(self, connection: socket.socket, parts: Iterable[Part]) -> bool:
        for part in parts:
            if self._stopped.is_set():
                return False
            if isinstance(part, bytes):
                connection.sendall(part)
            elif isinstance(part, float):
                self._stopped.wait(part)
            else:
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                return False
        return True


def _read(connection: socket.socket) -> Request:
    stream = connection.makefile("rb")
    first = stream.readline(_MAX_HEAD).decode("latin-1").split()
    if len(first) < 2:
        raise ValueError("it hung up")
    headers: list[tuple[str, str]] = []
    while (line := stream.readline(_MAX_HEAD)).strip():
        key, _, value = line.decode("latin-1").partition(":")
        headers.append((key, value.strip()))
    plain: Mapping[str, str] = {key.lower(): value for key, value in headers}
    if plain.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(stream.readline(), 16):
            body += stream.read(size)
            stream.readline()
        stream.readline()
    else:
        body = stream.read(int(plain.get("content-length", "0")))
    return Request(first[0], first[1], tuple(headers), body)
