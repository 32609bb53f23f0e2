"""The longest that the thread of an event loop was busy between two turns, in CPU time of that
thread: what others do on a busy machine does not count.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

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
