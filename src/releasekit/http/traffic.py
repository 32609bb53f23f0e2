"""What is asked of servers, counted where it is sent, for the package that it is about; and the
pauses that those who ask have to make. Whoever watches is told of each.

Of what is asked once for all, the package that comes first bears the cost.
"""

from __future__ import annotations

import asyncio
import contextlib
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import httpx

from releasekit.errors import Rejected
from releasekit.http.origins import describe_request, has_port
from releasekit.http.remedies import is_passing
from releasekit.problems import Problem
from releasekit.spent import Delay, Exchange

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from releasekit.model import PackageId
    from releasekit.spent import Wait

    Watch = Callable[[Exchange | Delay], None]

# Raised before a connection stands, so the request cannot have taken effect.
NEVER_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)


# Whoever pauses before another attempt says so when it begins.
_TOLD_BEFORE: Final = frozenset({"rate-limit", "retry"})
# What begins so soon has only waited for its turn in the event loop.
_NOTICEABLE_S: Final = 0.05
# Another attempt at a read may follow, as one follows 5xx. Uploads are numbered by the scheduler.
_READS: Final = frozenset({"GET", "HEAD"})


@dataclass(slots=True)
class Account:
    """Bytes of bodies: sent, as they were handed to a connection; received, before unpacking."""

    requests: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    retries: int = 0


@dataclass(slots=True)
class Book:
    """The accounts of one command; `rest` is what was asked for no package, as tokens are. `watch`
    is told of everything as it happens, in seconds since `began_s`, on the clock of the loop.
    """

    rest: Account = field(default_factory=Account)
    packages: dict[PackageId, Account] = field(default_factory=dict)
    watch: Watch | None = None
    began_s: float = 0.0
    # How often in a row a read was without success: of package, method and URL.
    failures: dict[tuple[str, str, str], int] = field(default_factory=dict)


class Pause(NamedTuple):
    """On the clock of the loop."""

    cause: Wait
    start_s: float
    end_s: float


_book: ContextVar[Book | None] = ContextVar("_book", default=None)
# Where nobody keeps a book, it is written to an account that nobody reads.
_account: ContextVar[Account] = ContextVar("_account", default=Account())  # noqa: B039 (as above)
_pauses: ContextVar[list[Pause] | None] = ContextVar("_pauses", default=None)
_about: ContextVar[str] = ContextVar("_about", default="")


@contextlib.contextmanager
def counted(watch: Watch | None = None) -> Iterator[Book]:
    """Whatever is asked in this block, and in the tasks that it starts, is written to the book, and
    told to `watch`.
    """
    book = Book(watch=watch, began_s=asyncio.get_running_loop().time() if watch else 0.0)
    before, payer = _book.set(book), _account.set(book.rest)
    try:
        yield book
    finally:
        _account.reset(payer)
        _book.reset(before)


def restarted() -> float:
    """From now on, whoever watches is told times since now, which is returned."""
    now_s = asyncio.get_running_loop().time()
    if (book := _book.get()) is not None:
        book.began_s = now_s
    return now_s


@contextlib.contextmanager
def billed_to(package: PackageId) -> Iterator[None]:
    """What is asked in this block is asked for `package`."""
    book = _book.get()
    if book is None:
        yield
        return
    payer = _account.set(book.packages.setdefault(package, Account()))
    about = _about.set(str(package))
    try:
        yield
    finally:
        _about.reset(about)
        _account.reset(payer)


@contextlib.contextmanager
def pauses_in(pauses: list[Pause]) -> Iterator[None]:
    """Pauses in this block are added to `pauses`."""
    before = _pauses.set(pauses)
    try:
        yield
    finally:
        _pauses.reset(before)


@contextlib.contextmanager
def waiting(cause: Wait, what: str = "") -> Iterator[None]:
    """The block does nothing but wait, for `what`."""
    clock = asyncio.get_running_loop().time
    start_s = clock()
    try:
        yield
    finally:
        end_s = clock()
        pauses = _pauses.get()
        if pauses is not None:
            pauses.append(Pause(cause, start_s, end_s))
        if cause not in _TOLD_BEFORE and end_s - start_s >= _NOTICEABLE_S:
            _tell_delay(cause, end_s - start_s, end=True, what=what)


@contextlib.asynccontextmanager
async def waited_for(
    turn: contextlib.AbstractAsyncContextManager[None], cause: Wait, what: str = ""
) -> AsyncIterator[None]:
    """`turn`, where the time until it comes is a pause."""
    async with contextlib.AsyncExitStack() as stack:
        with waiting(cause, what):
            await stack.enter_async_context(turn)
        yield


async def pause(delay_s: float, *, again: bool, limited: bool) -> None:
    """Before a read is tried `again`; `limited` where the server asked for it."""
    _account.get().retries += again
    cause: Wait = "rate-limit" if limited else "retry"
    _tell_delay(cause, delay_s)
    with waiting(cause):
        await asyncio.sleep(delay_s)


def _tell_delay(cause: Wait, lasted_s: float, *, end: bool = False, what: str = "") -> None:
    book = _book.get()
    if book is not None and book.watch is not None:
        at_s = asyncio.get_running_loop().time() - book.began_s
        book.watch(
            Delay(
                package=_about.get(), cause=cause, at_s=at_s, lasted_s=lasted_s, end=end, what=what
            )
        )


async def exchange(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    """Send a request just as it is. The answer is not read yet, and has to be closed.

    Raises Rejected for a port that there is not, which an answer may have named.
    """
    if not has_port(request.url):
        raise Rejected(
            f"{describe_request(request)}: {request.url.port} is no port",
            problem=Problem.WRONG_ADDRESS,
        )
    account = _account.get()
    account.requests += 1
    seen, size = _Seen(request, account), 0
    if isinstance(request.stream, httpx.ByteStream):
        size = int(request.headers.get("Content-Length", 0))
    else:
        stream = cast("httpx.AsyncByteStream", request.stream)
        request.stream = _CountedStream(stream, seen)
    try:
        response = await client.send(request, stream=True, auth=None, follow_redirects=False)
    except NEVER_SENT as error:
        seen.ended(trouble=_named(error))
        raise
    except BaseException as error:
        seen.sent(size)
        seen.ended(trouble=_named(error))
        raise
    seen.sent(size)
    return seen.until_closed(response)


def received(size: int) -> None:
    """So much of the body of an answer has arrived."""
    _account.get().received_bytes += size


class _CountedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, seen: _Seen) -> None:
        self._stream = stream
        self._seen = seen

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self._seen.sent(len(part))
            yield part


class _Seen:
    """One exchange, of which whoever watches is told once, at its end."""

    __slots__ = (
        *("_about", "_account", "_book", "_request", "_start_s"),
        *("received_bytes", "sent_bytes"),
    )

    def __init__(self, request: httpx.Request, account: Account) -> None:
        self._account = account
        book = _book.get()
        self._book = book if book is not None and book.watch is not None else None
        self._request = request
        self._about = _about.get()
        self._start_s = asyncio.get_running_loop().time()
        self.sent_bytes = self.received_bytes = 0

    def sent(self, size: int) -> None:
        self._account.sent_bytes += size
        self.sent_bytes += size

    def until_closed(self, response: httpx.Response) -> httpx.Response:
        """`response`, which tells of itself when it is closed."""
        if response.is_closed:  # there is nothing more to come
            self.received_bytes = len(response.content)
            self.ended(response.status_code)
        elif self._book is not None:
            body = cast("httpx.AsyncByteStream", response.stream)
            response.stream = _SeenStream(body, self, response.status_code)
        return response

    def ended(self, status: int = 0, trouble: str = "") -> None:
        book, self._book = self._book, None
        if book is None or book.watch is None:
            return
        request = self._request
        key = (self._about, request.method, str(request.url))
        attempt = book.failures.pop(key, 0) + 1
        failed = trouble or is_passing(status)
        if failed and request.method in _READS:
            book.failures[key] = attempt
        now_s = asyncio.get_running_loop().time()
        book.watch(
            Exchange(
                package=self._about,
                method=request.method,
                url=str(request.url),
                at_s=now_s - book.began_s,
                lasted_s=now_s - self._start_s,
                status=status,
                trouble=trouble,
                sent_bytes=self.sent_bytes,
                received_bytes=self.received_bytes,
                attempt=attempt,
            )
        )


class _SeenStream(httpx.AsyncByteStream):
    def __init__(self, body: httpx.AsyncByteStream, seen: _Seen, status: int) -> None:
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
            self._trouble = _named(error)
            raise

    async def aclose(self) -> None:
        try:
            await self._body.aclose()
        finally:
            self._seen.ended(self._status, self._trouble)


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")
