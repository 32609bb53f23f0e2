"""Leaving alone a registry that is down, and saying so."""

from __future__ import annotations

import asyncio
from typing import Final

from releasekit.errors import LeftAlone, Transient
from releasekit.http.remedies import PASSING
from releasekit.problems import Problem

MAX_PAUSE_S: Final = 60.0
# What has been down for longer may stay so: from then on, finding it down counts as an attempt.
PATIENCE_S: Final = 300.0


class Circuit:
    """Keeps requests from a registry that is down. `failures` failed requests in a row open it for
    `pause_s`, then for twice that, up to a minute. A status below 500 shows that the registry is
    up. `reached` tells whether it has ever given an answer.
    """

    def __init__(self, name: str, *, failures: int = 5, pause_s: float = 5.0) -> None:
        self._name = name
        self._limit = failures
        self._pause_s = pause_s
        self._failures = 0
        self._pauses = 0
        self._open_until = 0.0
        self._down_since = 0.0
        self._last = ""
        self.reached = False

    def check(self) -> None:
        """While the circuit is open, raises LeftAlone, with the time left as `retry_after`; and
        Transient where that has been so for too long.
        """
        now = asyncio.get_running_loop().time()
        left_s = self._open_until - now
        if left_s > 0:
            kind = LeftAlone if now - self._down_since < PATIENCE_S else Transient
            error = kind(
                f"{self._name} is down: it has failed {self._failures} times in a row, the last "
                f"time with {self._last!r}; asking again in {max(left_s, 1):.0f} s",
                retry_after=left_s,
                hint=PASSING,
            ).known_as(Problem.DOWN)
            error.asked_s, error.limited = 0.0, False
            raise error

    def failed(self, reason: str) -> None:
        now = asyncio.get_running_loop().time()
        if self._failures < self._limit:
            self._down_since = now
        self._failures += 1
        self._last = reason
        # Requests that were under way when it opened say nothing new.
        if self._failures >= self._limit and now >= self._open_until:
            self._open_until = now + min(self._pause_s * 2**self._pauses, MAX_PAUSE_S)
            self._pauses = min(self._pauses + 1, 16)

    def succeeded(self) -> None:
        self._failures = self._pauses = 0
        self._open_until = 0.0
