"""An event loop without waiting: its clock jumps to the next timer, and the order in which tasks
wake up within one instant is drawn from a seed. One seed is one run, exactly.
"""

from __future__ import annotations

import asyncio
import random
import selectors
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextvars import Context

T = TypeVar("T")


MOST_TURNS = 10_000


class Deadlock(RuntimeError):
    """Every task waits for something that will never happen."""


class Livelock(RuntimeError):
    """The loop turns and turns, and the present instant does not end."""


class _Jumps(selectors.DefaultSelector):
    """Never waits: what the loop would have slept is added to its clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.turns = 0
        self.before_jump: Callable[[], None] = lambda: None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Deadlock(f"at {self.now_s:.3f} s")
        self.turns += 1
        if self.turns > MOST_TURNS:
            raise Livelock(f"at {self.now_s:.3f} s")
        if timeout > 0:
            self.turns = 0
            self.before_jump()
            self.now_s += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, seed: int | None = None) -> None:
        self._jumps = _Jumps()
        self._order = None if seed is None else random.Random(seed)
        super().__init__(self._jumps)

    def time(self) -> float:
        return self._jumps.now_s

    def before_jump(self, look: Callable[[], None]) -> None:
        """Call `look` whenever nothing is left to do in the present instant."""
        self._jumps.before_jump = look

    def run_in_executor(
        self, executor: object, func: Callable[..., T], *args: object
    ) -> asyncio.Future[T]:
        """What belongs into a thread takes no time here, and comes in the same order each time."""
        answer: asyncio.Future[T] = self.create_future()
        self.call_soon(_answer, answer, func, args)
        return answer

    # Order among tasks that are ready together is not promised by asyncio; among callbacks it is.
    # https://docs.python.org/3/library/asyncio-eventloop.html#asyncio.loop.call_soon
    def call_soon(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        if (
            self._order is not None
            and isinstance(getattr(callback, "__self__", None), asyncio.Task)
            and self._order.random() < 0.5
        ):
            return super().call_soon(
                lambda: self.call_soon(callback, *args, context=context), context=context
            )
        return super().call_soon(callback, *args, context=context)


def _answer(answer: asyncio.Future[T], func: Callable[..., T], args: tuple[object, ...]) -> None:
    try:
        result = func(*args)
    except Exception as error:  # noqa: BLE001 - it belongs to whoever waits for the answer
        if not answer.done():
            answer.set_exception(error)
    else:
        if not answer.done():
            answer.set_result(result)


def run(main: Callable[[VirtualLoop], Coroutine[object, object, T]], seed: int | None = None) -> T:
    """`asyncio.run` in no time; raises Deadlock or Livelock where that would hang."""
    loop = VirtualLoop(seed)
    try:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(main(loop))
    except (Deadlock, Livelock):
        loop.before_jump(lambda: None)
        raise
