"""Breaks the silence of a log, in which a job would look as if it hung."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# Each silence that follows on one may be twice as long.
_FIRST_S: Final = 30.0
_LONGEST_S: Final = 300.0


class Silence:
    """Calls `tell`, with the seconds since `begin`, when nothing was said for long."""

    def __init__(self, tell: Callable[[float], bool]) -> None:
        self._tell = tell
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._began = self._since = 0.0
        self._patience_s = _FIRST_S

    def begin(self) -> None:
        """Only in a loop: outside of one nothing goes on."""
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._began = self._since = self._loop.time()
        self._timer = self._loop.call_at(self._since + self._patience_s, self._due)

    def broken(self) -> None:
        """Somebody has said something; the timer finds out when it is due."""
        if self._loop is not None:
            self._since, self._patience_s = self._loop.time(), _FIRST_S

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _due(self) -> None:
        assert self._loop is not None  # noqa: S101 (it has called this)
        now = self._loop.time()
        if now >= self._since + self._patience_s:
            self._since = now
            if self._tell(now - self._began):
                self._patience_s = min(2 * self._patience_s, _LONGEST_S)
        # Whoever speaks meanwhile makes the next silence a short one.
        self._timer = self._loop.call_at(
            min(self._since + self._patience_s, now + _FIRST_S), self._due
        )
