"""A web server for the programs that this process starts: GET, on loopback, while it is open."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Final

from releasekit.aio import GroupClosed, Resource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Self

    Answer = Callable[[str], Awaitable[tuple[int, bytes]]]

HOST: Final = "127.0.0.1"
_MAX_HEAD_BYTES: Final = 16 * 1024
_REASONS: Final = {200: "OK", 304: "Not Modified", 404: "Not Found", 502: "Bad Gateway"}
# Whoever talks to us is on this machine, and says all of a request at once.
_HEAD_END: Final = b"\r\n\r\n"


class Loopback(Resource):
    """`answer` gets the path of a request, and returns a status and a body. Each body has an ETag,
    so that a client asks for it whole once.
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__(together=True)
        self.answer = answer
        self.origin = ""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        try:
            server = await asyncio.start_server(
                self._connected, HOST, 0, limit=_MAX_HEAD_BYTES, start_serving=False
            )
            self.origin = f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
            await self.group.enter(server)
            await server.start_serving()
        except BaseException:
            await self.group.aclose()
            raise
        return self

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            _ = self.group.start(self._serve(reader, writer))
        except GroupClosed:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await _request(reader):
                path, etag = request
                status, body = await self.answer(path)
                writer.write(_response(status, body, etag))
                await writer.drain()
            writer.close()
            await writer.wait_closed()
        except ConnectionError:
            pass  # the client's own affair
        finally:
            # A server is closed when its connections are, and one with something left to say waits
            # for as long as nobody listens.
            # https://docs.python.org/3/library/asyncio-eventloop.html#asyncio.Server.wait_closed
            writer.transport.abort()


async def _request(reader: asyncio.StreamReader) -> tuple[str, str] | None:
    """The path, and the ETag that the client has; None where no more is to come that is a GET."""
    try:
        head = await reader.readuntil(_HEAD_END)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, _, rest = first.partition(" ")
    if method != "GET":
        return None
    fields = {
        name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
    }
    if "content-length" in fields or "transfer-encoding" in fields:
        return None
    return rest.partition(" ")[0], fields.get("if-none-match", "")


def _response(status: int, body: bytes, asked: str) -> bytes:
    """https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2"""
    etag = f'"{hashlib.sha256(body).hexdigest()}"'
    if status == 200 and asked == etag:
        status, body = 304, b""
    head = [f"HTTP/1.1 {status} {_REASONS[status]}"]
    if status in {200, 304}:
        head.append(f"ETag: {etag}")
    if status != 304:
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*head, "", ""]).encode() + body
