"""One client of many connections, cheap with many requests.

httpcore's own pool looks through all of its connections, and all that wait for one, some times for
each request, and hands one connection to several that wait: with 50 connections that took five
times as long as all the rest of a request. https://github.com/encode/httpcore/pull/1035
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, cast

import httpx

from releasekit.errors import Rejected
from releasekit.http import traffic
from releasekit.http.origins import describe_request, has_port
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import TracebackType

    Origin = tuple[bytes, bytes, int | None]

# A thousand lookups of 0.1 s each take 1.6 s. It is what pnpm has at most; uv and Yarn have 50.
# pypi.org answers from caches, and sets no limit there.
# https://github.com/pnpm/pnpm/releases/tag/v10.24.0
# https://docs.astral.sh/uv/reference/environment/#uv_concurrent_downloads
# https://yarnpkg.com/configuration/yarnrc#networkConcurrency
# https://docs.pypi.org/api/
CONNECTIONS: Final = 64

# httpcore tries to import it at each wait. Nothing here needs it, and only what is named in
# `sys.modules` is not looked for on the disk again. (`None` there says that there is none.)
# https://docs.python.org/3/reference/import.html#the-module-cache
# https://github.com/encode/httpcore/blob/1.0.9/httpcore/_synchronization.py
sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]


class PooledClient(httpx.AsyncClient):
    """At most `size` requests are under way, each until its answer is closed; the others wait,
    first come, first served. Each connection is a client with a pool of one, and the one that was
    used last is used next, so that as few as possible are open.

    `options` are those of each connection, `shared` those of the client itself as well.
    """

    def __init__(self, size: int, *, options: dict[str, Any], shared: dict[str, Any]) -> None:
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1)
        self._options = {**options, **shared, "limits": limits}
        self._turns = asyncio.Semaphore(size)
        self._free: dict[Origin, list[httpx.AsyncClient]] = {}
        # With this one, what is wrong with the options shows at once.
        self._unused = [httpx.AsyncClient(**self._options)]
        self._connections = [*self._unused]
        self._left: list[httpx.AsyncClient] = []
        self._size = size
        super().__init__(**shared, transport=httpx.AsyncBaseTransport())

    async def send(
        self, request: httpx.Request, *, stream: bool = False, **_options: Any
    ) -> httpx.Response:
        """Just as it is: no login of the client's own, no redirects.

        Raises Rejected for a port that there is not, which an answer may have named.
        """
        if not has_port(request.url):
            raise Rejected(
                f"{describe_request(request)}: {request.url.port} is not a port",
                problem=Problem.WRONG_ADDRESS,
            )
        origin = (request.url.raw_scheme, request.url.raw_host, request.url.port)
        with traffic.record_request(request) as seen:
            await self._turns.acquire()
            connection = self._take(origin)
            give_back = partial(self._give_back, origin, connection)
            try:
                response = await connection.send(
                    request, stream=True, auth=None, follow_redirects=False
                )
            except BaseException as error:
                give_back(cancelled=not isinstance(error, Exception))
                raise
        seen.report_when_closed(response)
        if response.is_closed:
            give_back()
            return response
        response.stream = _Turn(cast("httpx.AsyncByteStream", response.stream), give_back)
        if not stream:
            try:
                await response.aread()
            finally:
                await response.aclose()
        return response

    def _give_back(
        self, origin: Origin, connection: httpx.AsyncClient, *, cancelled: bool = False
    ) -> None:
        if cancelled:
            # httpcore shields nothing from a task that asyncio cancels: it may take this one for
            # busy for ever, and the next user of it would wait as long.
            # https://github.com/encode/httpcore/issues/830
            self._connections.remove(connection)
            self._left.append(connection)
        else:
            self._free.setdefault(origin, []).append(connection)
        self._turns.release()

    def _take(self, origin: Origin) -> httpx.AsyncClient:
        if free := self._free.get(origin):
            return free.pop()
        if self._unused:
            return self._unused.pop()
        if len(self._connections) < self._size:
            self._connections.append(httpx.AsyncClient(**self._options))
            return self._connections[-1]
        # One is free, as there is a turn for each; it closes its connection to elsewhere itself.
        return next(free for free in self._free.values() if free).pop(0)

    async def aclose(self) -> None:
        for connection in (*self._connections, *self._left):
            if connection not in self._unused:  # else httpcore imports half of anyio for it
                await connection.aclose()
        await super().aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        await self.aclose()


class _Turn(httpx.AsyncByteStream):
    """The body of an answer; closing it gives its connection back."""

    def __init__(self, body: httpx.AsyncByteStream, give_back: Callable[..., None]) -> None:
        self._body = body
        self._give_back: Callable[..., None] | None = give_back
        self._cancelled = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._body:
                yield part
        except asyncio.CancelledError:
            self._cancelled = True
            raise

    async def aclose(self) -> None:
        give_back, self._give_back = self._give_back, None
        try:
            await self._body.aclose()
        except asyncio.CancelledError:
            self._cancelled = True
            raise
        finally:
            if give_back is not None:
                give_back(cancelled=self._cancelled)
