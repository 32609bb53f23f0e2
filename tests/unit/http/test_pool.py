"""The pool against a server on this machine that counts its connections."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pytest

from processes import PATIENCE_S
from releasekit.http.client import http_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from releasekit.http.pool import PooledClient


class Server:
    """Answers with the path asked for: at once, or once as many ask as are to be `together`."""

    def __init__(self) -> None:
        self.url = ""
        self.connections = self.open = self.asked = 0
        self.order: list[str] = []
        self.together = 1
        self.changed = asyncio.Condition()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self.answer(head.split()[1].decode(), writer)
        writer.close()
        async with self.changed:
            self.open -= 1
            self.changed.notify_all()

    async def answer(self, path: str, writer: asyncio.StreamWriter) -> None:
        self.order.append(path)
        async with self.changed:
            self.asked += 1
            self.changed.notify_all()
            await self.changed.wait_for(lambda: self.asked >= self.together)
        if path == "/half":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
            return
        body = path.encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    async def was_asked(self, times: int) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: self.asked == times)

    async def all_closed(self) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: self.open == 0)


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()  # without waiting for its connections, as its __aexit__ does since 3.12


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def running(size: int, body: Callable[[PooledClient, Server], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S), serving() as server:
            async with http_client(size) as client:
                await body(client, server)
            await server.all_closed()

    asyncio.run(main())


def test_as_many_connections_as_are_needed_and_no_more_than_allowed() -> None:
    """R40: a thousand packages are looked up by a few connections, each used again and again."""

    async def body(client: PooledClient, server: Server) -> None:
        for _ in range(3):
            await client.get(server.url)
        assert server.connections == 1
        server.together = server.asked + 4  # never reached, were fewer under way at once
        answers = await asyncio.gather(*(client.get(f"{server.url}/{n}") for n in range(40)))
        assert [answer.text for answer in answers] == [f"/{n}" for n in range(40)]
        assert server.connections == 4

    running(4, body)


def test_first_come_first_served() -> None:
    async def body(client: PooledClient, server: Server) -> None:
        await asyncio.gather(*(client.get(f"{server.url}/{n}") for n in range(20)))
        assert server.order == [f"/{n}" for n in range(20)]

    running(1, body)


def test_a_turn_lasts_until_the_answer_is_closed() -> None:
    async def body(client: PooledClient, server: Server) -> None:
        request = client.build_request("GET", server.url)
        held = await client.send(request, stream=True)
        second = asyncio.ensure_future(client.get(f"{server.url}/second"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert server.order == ["/"]
        await held.aclose()
        await held.aclose()
        assert (await second).text == "/second"

    running(1, body)


def test_a_turn_ends_with_a_failure_and_with_a_cancellation() -> None:
    async def body(client: PooledClient, server: Server) -> None:
        for _ in range(3):
            with pytest.raises(httpx.ConnectError):
                await client.get("http://127.0.0.1:1/")
        server.together = 99
        for asked in (1, 2):
            task = asyncio.ensure_future(client.get(server.url))
            await server.was_asked(asked)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        server.together = 1
        assert (await client.get(f"{server.url}/last")).text == "/last"

    running(1, body)


def test_a_cancellation_at_whatever_moment_keeps_nobody_waiting() -> None:
    """R51: httpcore loses a connection for good that is being given back just then."""

    async def body(client: PooledClient, server: Server) -> None:
        await client.get(server.url)
        for steps in range(1, 1000):
            task = asyncio.ensure_future(client.get(server.url))
            for _ in range(steps):
                await asyncio.sleep(0)
            if task.done():
                assert steps > 5
                break
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await client.get(f"{server.url}/{steps}")).text == f"/{steps}"

    running(1, body)


def test_a_cancellation_amid_an_answer_keeps_nobody_waiting() -> None:
    async def body(client: PooledClient, server: Server) -> None:
        half = await client.send(client.build_request("GET", f"{server.url}/half"), stream=True)
        arrived, pieces = asyncio.Event(), []

        async def read() -> None:
            try:
                async for piece in half.aiter_raw():
                    pieces.append(piece)
                    arrived.set()
            finally:
                await half.aclose()

        task = asyncio.ensure_future(read())
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert pieces == [b"half"]
        assert (await client.get(f"{server.url}/next")).text == "/next"

    running(1, body)


def test_the_connections_are_shared_by_all_servers() -> None:
    async def body(client: PooledClient, server: Server) -> None:
        async with serving() as other:
            for each in (server, other, server, other, other):
                assert (await client.get(f"{each.url}/a")).text == "/a"
            assert (server.connections, other.connections) == (1, 1)
            await asyncio.gather(*(client.get(other.url) for _ in range(9)))
            assert other.connections == 2
            await server.all_closed()  # for the second one of the other server
            assert (await client.get(f"{server.url}/b")).text == "/b"

    running(2, body)


def test_what_was_never_used_costs_nothing_to_close() -> None:
    """httpcore would import what it takes to wait for a connection's end."""
    code = (
        "import asyncio, sys\n"
        "from releasekit.http.client import http_client\n"
        "async def main():\n"
        "    async with http_client(): pass\n"
        "asyncio.run(main())\n"
        "assert 'anyio._backends._asyncio' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_looks_for_sniffio_on_the_disk() -> None:
    """httpcore would, some times for each request."""
    assert sys.modules["sniffio"] is None
