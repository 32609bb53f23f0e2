"""Groups own what is open and close it; cleanups run to their end, even if their caller is
cancelled meanwhile. Where the code rests on a guarantee of the standard library, a comment names
it.
"""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Generic, Self, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable, Iterator, Sequence

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


async def uncancellable(awaitable: Awaitable[T]) -> T:
    """Wait for `awaitable` to its end, however often the caller is cancelled meanwhile.

    Its result is returned, or its error raised, and the cancellation reaches the caller at its next
    `await` (or when its task ends). Before Python 3.13, that may be behind the block of a time-out
    that struck here: see `in_time`.
    """
    inner = asyncio.ensure_future(awaitable)
    interrupted = False
    while not inner.done():
        try:
            # Unlike `await inner`, a cancelled wait() leaves what it waits for alone.
            # https://docs.python.org/3/library/asyncio-task.html#asyncio.wait
            await asyncio.wait((inner,))
        except asyncio.CancelledError:
            interrupted = True
    if interrupted:
        _cancel_later()
    return inner.result()


@contextlib.asynccontextmanager
async def in_time(limit: asyncio.Timeout) -> AsyncIterator[asyncio.Timeout]:
    """`limit`, which does not strike behind its own block, as a cancellation of the whole task,
    where `uncancellable` has put it off. What has ended too late has not ended in time.
    """
    async with limit:
        yield limit
        if limit.expired():
            await asyncio.sleep(0)


def _cancel_later() -> None:
    """Put a cancellation that has arrived off to the next `await`."""
    caller = cast("asyncio.Task[object]", asyncio.current_task())
    # As TaskGroup.__aexit__ does it: the number of open cancellations, by which timeout() and
    # TaskGroup tell their own from others', stays what it was.
    # https://docs.python.org/3/library/asyncio-task.html#asyncio.Task.uncancel
    caller.uncancel()
    caller.cancel()


async def gather_all(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Every answer, or the first error once all have ended.

    Unlike `gather`, which leaves the others running behind an error.
    https://docs.python.org/3/library/asyncio-task.html#asyncio.gather
    """
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    await asyncio.gather(*tasks, return_exceptions=True)
    return [task.result() for task in tasks]


class GroupClosed(RuntimeError):
    """Nothing starts in a group that is not open: not yet, or not any more."""


class Group:
    """Owns tasks and resources. Open from `async with`, or `enter` of another group.

    Children close in the reverse order of their opening, one after the other and each to its end.
    In a group made with `together`, whose children do not need each other, they close side by side.
    A child's failure closes the group, interrupts the block, and is raised when all is closed; of
    several failures the first is raised, with the others as its `__cause__`. A child that is
    cancelled ends alone.
    """

    def __init__(self, *, together: bool = False) -> None:
        self._together = together
        self._children: dict[asyncio.Task[object], _Holding[object] | None] = {}
        self._failures: list[BaseException] = []
        self._outer: Group | None = None
        self._block: asyncio.Task[object] | None = None
        self._interrupted = False
        self._is_open = False
        self._began_to_close = asyncio.Event()
        self._closer: asyncio.Task[BaseException | None] | None = None

    @property
    def is_open(self) -> bool:
        return self._is_open

    @property
    def is_closing(self) -> bool:
        """Still true when it is closed."""
        return self._closer is not None

    @property
    def is_closed(self) -> bool:
        return self._closer is not None and self._closer.done()

    async def wait_closing(self) -> None:
        await self._began_to_close.wait()

    async def wait_closed(self) -> None:
        """For those who only watch: it neither closes the group nor raises its failures."""
        await self.wait_closing()
        await asyncio.wait((self._close(),))

    def start(self, coroutine: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """Raises GroupClosed unless the group is open; the coroutine is then closed, not left
        unawaited.

        As with every task, a caller that is cancelled while it awaits the task cancels it.
        """
        return self._start(coroutine, None)

    async def enter(self, manager: AbstractAsyncContextManager[T] | AbstractContextManager[T]) -> T:
        """Open `manager`, and leave it when its turn to close comes. A group, or a Resource, may
        close earlier.

        Raises GroupClosed unless the group is open, and when it closes meanwhile.
        `contextlib.aclosing` and `closing` make a context manager of what is open already.
        """
        holding = _Holding(manager)
        keeper = self._start(holding.keep(), holding)
        try:
            await asyncio.wait((holding.opened,))
        except asyncio.CancelledError:
            holding.end(keeper)
            await uncancellable(asyncio.wait((keeper,)))
            if isinstance(holding.opened.exception(), GroupClosed | None):
                raise
            _cancel_later()  # what kept it from opening comes first
        return holding.opened.result()

    def close(self) -> None:
        """Begin to close, from anywhere in the loop's thread, a child included."""
        _ = self._close()

    async def aclose(self) -> None:
        """Close, and wait for the end; raises what failed. A caller that is cancelled meanwhile
        waits all the same, and is cancelled then. Any number may call it, any number of times.
        """
        outer = _inside.get()
        while outer is not None:
            if outer is self:
                raise RuntimeError("a child would wait for its own end: call close()")
            outer = outer._outer  # noqa: SLF001 - another group
        if (failure := await uncancellable(self._close())) is not None:
            raise failure

    async def __aenter__(self) -> Self:
        if self._is_open or self.is_closing:
            raise RuntimeError("a group opens once")
        self._outer = _inside.get()
        self._block = asyncio.current_task()
        self._is_open = True
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        block, self._block = self._block, None
        if self._interrupted and block is not None:
            if not isinstance(error, asyncio.CancelledError):
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)  # where `uncancellable` put the interruption off
            block.uncancel()
        if error is not None and not isinstance(error, asyncio.CancelledError):
            self._failures.append(error)
        failure = await uncancellable(self._close())
        if failure is not None and failure is not error:
            raise failure

    def _close(self) -> asyncio.Task[BaseException | None]:
        if self._closer is None:
            self._is_open = False
            self._began_to_close.set()
            # A separate task, so that it goes on when a caller that waits for it is cancelled.
            self._closer = asyncio.get_running_loop().create_task(self._close_children())
        return self._closer

    def _start(
        self, coroutine: Coroutine[object, object, T], holding: _Holding[object] | None
    ) -> asyncio.Task[T]:
        if not self._is_open:
            coroutine.close()
            raise GroupClosed(f"the group is {'closing' if self.is_closing else 'not open yet'}")
        context = copy_context()
        context.run(_inside.set, self)
        task = asyncio.get_running_loop().create_task(coroutine, context=context)
        self._children[task] = holding
        task.add_done_callback(self._ended)
        return task

    def _ended(self, child: asyncio.Task[object]) -> None:
        holding = self._children.pop(child)
        error = None if child.cancelled() else child.exception()
        if holding is not None and not holding.opened.done():
            # For the caller of `enter`, as if there were no group.
            holding.opened.set_exception(error or GroupClosed("it closed before that was open"))
        elif error is not None:
            self._failures.append(error)
            _ = self._close()
            # As TaskGroup interrupts its block, and `__aexit__` takes it back.
            if self._block is not None and not self._interrupted:
                self._interrupted = True
                self._block.cancel()

    async def _close_children(self) -> BaseException | None:
        # Every child has begun by now, so its cleanup runs: tasks begin in the order of their
        # creation. https://docs.python.org/3/library/asyncio-eventloop.html#asyncio.loop.call_soon
        while self._children:
            last = [*reversed(self._children)][: None if self._together else 1]
            for child in last:
                holding = self._children[child]
                if holding is None:
                    child.cancel()
                else:
                    holding.end(child)
            await asyncio.wait(last)
        return _chained(self._failures)


class Resource:
    """Anything with a group: it is open for as long as its group is, and opens things in it."""

    def __init__(self, *, together: bool = False) -> None:
        self.group = Group(together=together)

    async def __aenter__(self) -> Self:
        await self.group.__aenter__()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        await self.group.__aexit__(kind, error, traceback)

    async def aclose(self) -> None:
        """As `Group.aclose`."""
        await self.group.aclose()


class _Holding(Generic[T_co]):
    """A resource in a group. One task opens and closes it: what it enters, a time limit or a task
    group, has to be left by the same one.
    """

    def __init__(
        self, manager: AbstractAsyncContextManager[T_co] | AbstractContextManager[T_co]
    ) -> None:
        self._manager = manager
        self._group: Group
        match manager:
            case Group():
                self._group = manager
            case Resource():
                self._group = manager.group
            case _:
                self._group = Group()  # only to say when
        self._ending = False
        self.opened: asyncio.Future[T_co] = asyncio.get_running_loop().create_future()

    async def keep(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            if isinstance(self._manager, AbstractAsyncContextManager):
                value = await stack.enter_async_context(self._manager)
            else:
                value = stack.enter_context(self._manager)
            self.opened.set_result(value)
            if not self._ending:  # else it opened all the same
                await self._group.wait_closing()

    def end(self, keeper: asyncio.Task[object]) -> None:
        """What is open is closed in order; what is opening is cancelled, once."""
        if self.opened.done():
            self._group.close()
        elif not self._ending:
            self._ending = True
            keeper.cancel()


# The group whose child is running. Tasks that a child starts inherit it.
_inside: ContextVar[Group | None] = ContextVar("_inside", default=None)


def _chained(failures: Sequence[BaseException]) -> BaseException | None:
    """The first failure, with the others as its cause; its own cause becomes theirs."""
    if not failures:
        return None
    first, *others = failures
    if others:
        rest = BaseExceptionGroup("failed afterwards", others)
        rest.__cause__, first.__cause__ = first.__cause__, rest
    return first


def growing_pauses(first_s: float, longest_s: float) -> Iterator[float]:
    """Seconds between one question and the next, for as long as somebody asks."""
    pause_s = first_s
    while True:
        yield pause_s
        pause_s = min(pause_s * 1.5, longest_s)
