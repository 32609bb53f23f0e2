"""Lifetimes in asyncio: cleanups that end, and tasks that end with what owns them. Each guarantee
is one of the standard library's, named beside the code that rests on it.
"""

from __future__ import annotations

import asyncio
import math
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Self, TypeVar

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Coroutine, Iterable
    from types import TracebackType

T = TypeVar("T")

MAX_DELAY_S: Final = 60.0


async def uncancellable(awaitable: Awaitable[T]) -> T:
    """Wait for `awaitable` to its end, however often the caller is cancelled meanwhile.

    Its result is returned, or its error raised, and the cancellation reaches the caller at its next
    `await` (or when its task ends). Before Python 3.13 a time-out that strikes here and whose block
    ends without another `await` is delivered after the block: leave one in between.
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
    caller = asyncio.current_task()
    if interrupted and caller is not None:
        # As TaskGroup.__aexit__ does it: the number of open cancellations, by which timeout() and
        # TaskGroup tell their own from others', stays what it was.
        # https://docs.python.org/3/library/asyncio-task.html#asyncio.Task.uncancel
        caller.uncancel()
        caller.cancel()
    return inner.result()


async def gather_all(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Every answer, or the first error once all have ended.

    Unlike `gather`, which leaves the others running behind an error.
    https://docs.python.org/3/library/asyncio-task.html#asyncio.gather
    """
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    await asyncio.gather(*tasks, return_exceptions=True)
    return [task.result() for task in tasks]


class Stage(Enum):
    OPEN = auto()
    CLOSING = auto()  # takes no new tasks; those it owns are ending
    CLOSED = auto()  # all it ever owned is done


class Lifetime:
    """An `asyncio.TaskGroup` that a resource owns, and whose stage can be asked.

    It closes when its `async with` block is left or one of its tasks fails. From then on `start`
    refuses. It is closed only when every task is done, also under repeated cancellation: that is
    TaskGroup's promise, https://docs.python.org/3/library/asyncio-task.html#task-groups.
    """

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._stage = Stage.CLOSED

    @property
    def stage(self) -> Stage:
        return self._stage

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._stage = Stage.OPEN
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stage = Stage.CLOSING
        try:
            await self._group.__aexit__(kind, error, traceback)
        finally:
            self._stage = Stage.CLOSED

    def start(self, coroutine: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """RuntimeError unless open; the coroutine is closed then, not left behind unawaited."""
        if self._stage is not Stage.OPEN:
            coroutine.close()
            raise RuntimeError(f"nothing can be started: {self._stage.name.lower()}")
        task = self._group.create_task(self._owned(coroutine))
        # Cancelled before its first step, the task would leave it behind just the same.
        task.add_done_callback(lambda _: coroutine.close())
        return task

    async def _owned(self, coroutine: Coroutine[object, object, T]) -> T:
        try:
            return await coroutine
        except asyncio.CancelledError:
            raise  # ends this task only, by TaskGroup's rules
        except BaseException:
            self._stage = Stage.CLOSING
            raise


def backoff(retry: int, base_s: float, rng: random.Random) -> float:
    """Seconds, with full jitter; `retry` counts from 0.

    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    """
    # 2**64 times any delay that matters is beyond the cap; without a bound it overflows.
    return rng.uniform(0.0, min(math.ldexp(base_s, min(retry, 64)), MAX_DELAY_S))
