"""Counts requests where they are sent, for the package that they are about, and the pauses before
and between them. A watcher gets an event for each.

A request that serves several packages counts for the first one that needs it.
"""

from __future__ import annotations

import asyncio
import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import httpx
from msgspec import Struct, field

from releasekit.http.answers import is_passing
from releasekit.spent import PauseEvent, RequestEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from releasekit.model import PackageId
    from releasekit.spent import Wait

    Watch = Callable[[RequestEvent | PauseEvent], None]

# Raised before a connection stands, so the request cannot have taken effect.
NEVER_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
# Another attempt at a read may follow, as one follows 5xx. Uploads are numbered by the scheduler.
READS: Final = frozenset({"GET", "HEAD"})
# A pause before another attempt is reported when it begins.
_TOLD_BEFORE: Final = frozenset({"rate-limit", "retry"})
# A shorter wait is only a turn of the event loop.
_NOTICEABLE_S: Final = 0.05


class Counters(Struct):
    """Bytes of bodies: sent, as they were handed to a connection; received, before unpacking."""

    requests: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    retries: int = 0


class Metrics(Struct):
    """The counters of one command; `rest` counts requests for no package, as those for tokens are.
    `watch` gets each event as it happens, in seconds since `began_s`, on the clock of the loop.
    """

    rest: Counters = field(default_factory=Counters)
    packages: dict[PackageId, Counters] = field(default_factory=dict)
    watch: Watch | None = None
    began_s: float = 0.0
    # How often in a row a read was without success: of package, method and URL.
    failures: dict[tuple[str, str, str], int] = field(default_factory=dict)


class Pause(NamedTuple):
    """On the clock of the loop."""

    cause: Wait
    start_s: float
    end_s: float


class _Recorder(NamedTuple):
    pauses: list[Pause]
    on_wait: Callable[[Wait | None, str], None]


_metrics: ContextVar[Metrics | None] = ContextVar("_metrics", default=None)
# Outside of `collect`, requests are counted here, and nothing reads it.
_counters: ContextVar[Counters] = ContextVar("_counters", default=Counters())  # noqa: B039 (as above)
_pauses: ContextVar[_Recorder | None] = ContextVar("_pauses", default=None)
_about: ContextVar[str] = ContextVar("_about", default="")


@contextlib.contextmanager
def collect(watch: Watch | None = None) -> Iterator[Metrics]:
    """Counts all requests of this block, and of the tasks that it starts, and hands each event to
    `watch`.
    """
    metrics = Metrics(watch=watch, began_s=asyncio.get_running_loop().time() if watch else 0.0)
    before, payer = _metrics.set(metrics), _counters.set(metrics.rest)
    try:
        yield metrics
    finally:
        _counters.reset(payer)
        _metrics.reset(before)


def restart_clock() -> float:
    """From now on, the times of events count from now, which is returned."""
    now_s = asyncio.get_running_loop().time()
    if (metrics := _metrics.get()) is not None:
        metrics.began_s = now_s
    return now_s


@contextlib.contextmanager
def attribute_to(package: PackageId) -> Iterator[None]:
    """Requests in this block count for `package`."""
    metrics = _metrics.get()
    if metrics is None:
        yield
        return
    payer = _counters.set(metrics.packages.setdefault(package, Counters()))
    about = _about.set(str(package))
    try:
        yield
    finally:
        _about.reset(about)
        _counters.reset(payer)


@contextlib.contextmanager
def record_pauses(
    pauses: list[Pause], on_wait: Callable[[Wait | None, str], None] = lambda *_: None
) -> Iterator[None]:
    """Pauses in this block are added to `pauses`. `on_wait` is told of each as it begins, with its
    cause and what is waited for, and of its end, with None.
    """
    before = _pauses.set(_Recorder(pauses, on_wait))
    try:
        yield
    finally:
        _pauses.reset(before)


@contextlib.contextmanager
def record_wait(cause: Wait, what: str = "") -> Iterator[None]:
    """Records the block, which only waits for `what`, as a pause."""
    clock = asyncio.get_running_loop().time
    start_s, recorder = clock(), _pauses.get()
    if recorder is not None:
        recorder.on_wait(cause, what)
    try:
        yield
    finally:
        end_s = clock()
        if recorder is not None:
            recorder.pauses.append(Pause(cause, start_s, end_s))
            recorder.on_wait(None, "")
        if cause not in _TOLD_BEFORE and end_s - start_s >= _NOTICEABLE_S:
            _report_pause(cause, end_s - start_s, end=True, what=what)


@contextlib.asynccontextmanager
async def wait_for_turn(
    turn: contextlib.AbstractAsyncContextManager[None], cause: Wait, what: str = ""
) -> AsyncIterator[None]:
    """Enters `turn`, and records the time until it comes as a pause."""
    async with contextlib.AsyncExitStack() as stack:
        with record_wait(cause, what):
            await stack.enter_async_context(turn)
        yield


async def pause(delay_s: float, *, again: bool, limited: bool) -> None:
    """Waits before a read is tried `again`; `limited` where the server asked for that."""
    _counters.get().retries += again
    cause: Wait = "rate-limit" if limited else "retry"
    _report_pause(cause, delay_s)
    with record_wait(cause):
        await asyncio.sleep(delay_s)


def _report_pause(cause: Wait, lasted_s: float, *, end: bool = False, what: str = "") -> None:
    metrics = _metrics.get()
    if metrics is not None and metrics.watch is not None:
        at_s = asyncio.get_running_loop().time() - metrics.began_s
        metrics.watch(
            PauseEvent(
                package=_about.get(), cause=cause, at_s=at_s, lasted_s=lasted_s, end=end, what=what
            )
        )


@contextlib.contextmanager
def record_request(request: httpx.Request) -> Iterator[SeenRequest]:
    """Counts `request`, which is sent in this block."""
    counters = _counters.get()
    counters.requests += 1
    seen, size = SeenRequest(request, counters), 0
    if isinstance(request.stream, httpx.ByteStream):
        size = int(request.headers.get("Content-Length", 0))
    else:
        stream = cast("httpx.AsyncByteStream", request.stream)
        request.stream = _CountedStream(stream, seen)
    try:
        yield seen
    except NEVER_SENT as error:
        seen.end(trouble=_describe(error))
        raise
    except BaseException as error:
        seen.count_sent(size)
        seen.end(trouble=_describe(error))
        raise
    seen.count_sent(size)


def count_received(size: int) -> None:
    """Counts `size` bytes of the body of an answer."""
    _counters.get().received_bytes += size


class _CountedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, seen: SeenRequest) -> None:
        self._stream = stream
        self._seen = seen

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self._seen.count_sent(len(part))
            yield part


class SeenRequest:
    """One request, which the watcher gets once, at its end."""

    __slots__ = (
        *("_about", "_counters", "_metrics", "_request", "_start_s"),
        *("received_bytes", "sent_bytes"),
    )

    def __init__(self, request: httpx.Request, counters: Counters) -> None:
        self._counters = counters
        metrics = _metrics.get()
        self._metrics = metrics if metrics is not None and metrics.watch is not None else None
        self._request = request
        self._about = _about.get()
        self._start_s = asyncio.get_running_loop().time()
        self.sent_bytes = self.received_bytes = 0

    def count_sent(self, size: int) -> None:
        self._counters.sent_bytes += size
        self.sent_bytes += size

    def report_when_closed(self, response: httpx.Response) -> None:
        """Have `response` report the request when it is closed."""
        if response.is_closed:  # there is nothing more to come
            self.received_bytes = len(response.content)
            self.end(response.status_code)
        elif self._metrics is not None:
            body = cast("httpx.AsyncByteStream", response.stream)
            response.stream = _SeenStream(body, self, response.status_code)

    def end(self, status: int = 0, trouble: str = "") -> None:
        metrics, self._metrics = self._metrics, None
        if metrics is None or metrics.watch is None:
            return
        request = self._request
        key = (self._about, request.method, str(request.url))
        attempt = metrics.failures.pop(key, 0) + 1
        failed = trouble or is_passing(status)
        if failed and request.method in READS:
            metrics.failures[key] = attempt
        now_s = asyncio.get_running_loop().time()
        metrics.watch(
            RequestEvent(
                package=self._about,
                method=request.method,
                url=str(request.url),
                at_s=now_s - metrics.began_s,
                lasted_s=now_s - self._start_s,
                status=status,
                trouble=trouble,
                sent_bytes=self.sent_bytes,
                received_bytes=self.received_bytes,
                attempt=attempt,
            )
        )


class _SeenStream(httpx.AsyncByteStream):
    def __init__(self, body: httpx.AsyncByteStream, seen: SeenRequest, status: int) -> None:
        self._body = body
        self._seen = seen
        self._status = status
        self._trouble = ""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._body:
                self._seen.received_bytes += len(part)
                yield part
        except (httpx.TransportError, asyncio.CancelledError) as error:
            self._trouble = _describe(error)
            raise

    async def aclose(self) -> None:
        try:
            await self._body.aclose()
        finally:
            self._seen.end(self._status, self._trouble)


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")
