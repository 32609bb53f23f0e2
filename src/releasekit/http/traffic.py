"""What is asked of servers, counted where it is sent, for the package that it is about; and the
pauses that those who ask have to make.

Of what is asked once for all, the package that comes first bears the cost.
"""

from __future__ import annotations

import asyncio
import contextlib
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from releasekit.model import PackageId
    from releasekit.spent import Wait

# Raised before a connection stands, so the request cannot have taken effect.
NEVER_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)


@dataclass(slots=True)
class Account:
    """Bytes of bodies: sent, as they were handed to a connection; received, before unpacking."""

    requests: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    retries: int = 0


@dataclass(slots=True)
class Book:
    """The accounts of one command; `rest` is what was asked for no package, as tokens are."""

    rest: Account = field(default_factory=Account)
    packages: dict[PackageId, Account] = field(default_factory=dict)


class Pause(NamedTuple):
    """On the clock of the loop."""

    cause: Wait
    start_s: float
    end_s: float


_book: ContextVar[Book | None] = ContextVar("_book", default=None)
# Where nobody keeps a book, it is written to an account that nobody reads.
_account: ContextVar[Account] = ContextVar("_account", default=Account())  # noqa: B039 (as above)
_pauses: ContextVar[list[Pause] | None] = ContextVar("_pauses", default=None)


@contextlib.contextmanager
def counted() -> Iterator[Book]:
    """Whatever is asked in this block, and in the tasks that it starts, is written to the book."""
    book = Book()
    before, payer = _book.set(book), _account.set(book.rest)
    try:
        yield book
    finally:
        _account.reset(payer)
        _book.reset(before)


@contextlib.contextmanager
def billed_to(package: PackageId) -> Iterator[None]:
    """What is asked in this block is asked for `package`."""
    book = _book.get()
    if book is None:
        yield
        return
    payer = _account.set(book.packages.setdefault(package, Account()))
    try:
        yield
    finally:
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
def waiting(cause: Wait) -> Iterator[None]:
    """The block does nothing but wait."""
    clock = asyncio.get_running_loop().time
    start_s = clock()
    try:
        yield
    finally:
        pauses = _pauses.get()
        if pauses is not None:
            pauses.append(Pause(cause, start_s, clock()))


@contextlib.asynccontextmanager
async def waited_for(
    turn: contextlib.AbstractAsyncContextManager[None], cause: Wait
) -> AsyncIterator[None]:
    """`turn`, where the time until it comes is a pause."""
    async with contextlib.AsyncExitStack() as stack:
        with waiting(cause):
            await stack.enter_async_context(turn)
        yield


async def pause(delay_s: float, *, again: bool, limited: bool) -> None:
    """Before a read is tried `again`; `limited` where the server asked for it."""
    _account.get().retries += again
    with waiting("rate-limit" if limited else "retry"):
        await asyncio.sleep(delay_s)


async def exchange(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    """Send a request just as it is. The answer is not read yet, and has to be closed."""
    account = _account.get()
    account.requests += 1
    whole = isinstance(request.stream, httpx.ByteStream)
    if not whole:
        stream = cast("httpx.AsyncByteStream", request.stream)
        request.stream = _CountedStream(stream, account)
    try:
        response = await client.send(request, stream=True, auth=None, follow_redirects=False)
    except NEVER_SENT:
        whole = False
        raise
    finally:
        if whole:
            account.sent_bytes += int(request.headers.get("Content-Length", 0))
    return response


def received(size: int) -> None:
    """So much of the body of an answer has arrived."""
    _account.get().received_bytes += size


class _CountedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, account: Account) -> None:
        self._stream = stream
        self._account = account

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self._account.sent_bytes += len(part)
            yield part
