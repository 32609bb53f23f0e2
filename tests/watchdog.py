"""The longest that the thread of an event loop was busy in one turn, and how long a call takes, in
CPU time of that thread. What others do on a busy machine does not count, but for the caches that
they take: so the least of several tries is what counts, at the speed of a quick machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

TRIES = 5

# R51
LONGEST_STALL_S = 0.2


@dataclasses.dataclass(slots=True)
class Watchdog:
    """`longest_s` is the longest turn of the loop so far."""

    longest_s: float = 0.0


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[Watchdog]:
    """Watches the running loop for as long as the block lasts, by a callback in each turn: a timer
    that is due in the turn after a long one would count both.
    """
    dog, loop = Watchdog(), asyncio.get_running_loop()
    last_s, ended = time.thread_time(), False

    def measure() -> None:
        nonlocal last_s
        now_s = time.thread_time()
        dog.longest_s, last_s = max(dog.longest_s, now_s - last_s), now_s
        if not ended:
            loop.call_soon(measure)

    loop.call_soon(measure)
    try:
        yield dog
    finally:
        ended = True
        measure()


def slowness() -> float:
    """How many times slower than a quick machine this one is now, at a fixed piece of work."""
    began = time.thread_time()
    total = 0
    for number in range(300_000):
        total += number % 7
    return max(1.0, (time.thread_time() - began) / 0.02)


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
    """Eight times as much takes eight times as long, and not sixty-four times, once the machine
    lets it be seen.
    """
    seen = []
    for _ in range(10):
        eighth_s = least_s(lambda: call(size // 8))
        enough_s = 12 * eighth_s + 0.05
        whole_s = least_s(lambda: call(size), enough_s)
        if whole_s <= enough_s:
            return
        seen.append((eighth_s, whole_s))
    raise AssertionError(seen)
