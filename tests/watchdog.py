"""The longest that the thread of an event loop was busy between two turns, and how long a call
takes, in CPU time of that thread. What others do on a busy machine does not count, but for the
caches that they take: so the least of several tries is what counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

TRIES = 5

# R51
LONGEST_STALL_S = 0.2
_BEAT_S = 0.01


class Watchdog:
    """`longest_s` is the longest stall so far. Beats come from the loop that it watches."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.beats = 0
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """In the thread of the loop, which is running."""
        self._last = time.thread_time()
        self._timer = asyncio.get_running_loop().call_later(_BEAT_S, self._beat)

    def stop(self) -> None:
        self._measure()
        if self._timer is not None:
            self._timer.cancel()

    def _beat(self) -> None:
        self._measure()
        self.beats += 1
        self._timer = asyncio.get_running_loop().call_later(_BEAT_S, self._beat)

    def _measure(self) -> None:
        now = time.thread_time()
        # Between two beats the loop may have had many short turns; all of them are counted, so
        # what is found is never less than the longest of them.
        self.longest_s, self._last = max(self.longest_s, now - self._last), now


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[Watchdog]:
    """Watches the running loop for as long as the block lasts."""
    dog = Watchdog()
    dog.start()
    try:
        yield dog
    finally:
        dog.stop()


def least_s(call: Callable[[], object], soon_s: float = 0.0) -> float:
    """The least of several tries, or of the first ones if that is `soon_s` at most."""
    took_s = []
    for _ in range(TRIES):
        began = time.thread_time()
        call()
        took_s.append(time.thread_time() - began)
        if took_s[-1] <= soon_s:
            break
    return min(took_s)


def assert_no_worse_than_linear(call: Callable[[int], object], size: int) -> None:
    """Twice as much takes twice as long, and not four times, once the machine lets it be seen."""
    seen = []
    for _ in range(10):
        seen.append((least_s(lambda: call(size // 2)), least_s(lambda: call(size))))
        if seen[-1][1] < 3 * seen[-1][0] + 0.05:
            return
    raise AssertionError(seen)
