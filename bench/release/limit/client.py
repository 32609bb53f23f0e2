"""Plain HTTP requests on connections that stay open, and packages in order, so many at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping


class Client:
    def __init__(self, origin: str) -> None:
        parts = urlsplit(origin)
        self._host, self._port = parts.hostname, parts.port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def send(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/octet-stream"
    ) -> bytes:
        if self._idle:
            reader, writer = self._idle.pop()
        else:
            reader, writer = await asyncio.open_connection(self._host, self._port)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
            "Authorization: bench\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in answer[1:] if line)
        content = await reader.readexactly(int(fields.get("content-length", "0")))
        self._idle.append((reader, writer))
        if int(answer[0].split()[1]) >= 300:
            raise RuntimeError(f"{method} {path}: {answer[0]} {content[:200]!r}")
        return content


async def in_order(
    needs: Mapping[str, tuple[str, ...]],
    publish: Callable[[str], Awaitable[None]],
    *,
    slots: int,
    lag_s: float,
    confirm: Callable[[str], Awaitable[object]] | None,
    ready: Mapping[str, asyncio.Event] | None = None,
) -> None:
    """Each name after all that it needs, `lag_s` after the last of them, and once it is `ready`."""
    limit = asyncio.Semaphore(slots)
    needed = {need for below in needs.values() for need in below}
    shown = {name: asyncio.Event() for name in needs}

    async def one(name: str) -> None:
        for need in needs[name]:
            await shown[need].wait()
        if ready is not None:
            await ready[name].wait()
        async with limit:
            await publish(name)
        if name in needed or confirm is not None:
            # How far the index lags behind is told beforehand: one question finds it there.
            await asyncio.sleep(lag_s)
        if confirm is not None:
            await confirm(name)
        shown[name].set()

    async with asyncio.TaskGroup() as group:
        for name in needs:
            group.create_task(one(name))
