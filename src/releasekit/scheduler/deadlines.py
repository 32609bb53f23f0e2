"""Time-outs for many tasks that all get the same time: one timer serves them all, where
`asyncio.timeout` sets one up and takes it down for every task.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from releasekit.errors import Transient
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Hashable


class Deadlines:
    """Cancels the tasks that were not stopped within `limit_s`; None is no limit.

    A task is cancelled only once. It may still end well: ask `expired` only if it did not.
    """

    def __init__(self, limit_s: float | None) -> None:
        self.limit_s = limit_s
        self._running: dict[Hashable, tuple[float, asyncio.Task[object]]] = {}  # earliest first
        self._expired: set[Hashable] = set()
        self._timer: asyncio.TimerHandle | None = None

    def start(self, name: Hashable, task: asyncio.Task[object]) -> None:
        if self.limit_s is None:
            return
        loop = task.get_loop()
        due = loop.time() + self.limit_s
        self._expired.discard(name)
        self._running[name] = (due, task)
        if self._timer is None:
            self._timer = loop.call_at(due, self._expire)

    def stop(self, name: Hashable) -> None:
        self._running.pop(name, None)

    def expired(self, name: Hashable) -> bool:
        """Since its last `start`."""
        return name in self._expired

    def passed(self) -> Transient:
        """What ends an attempt whose time is over."""
        return Transient(
            f"not finished within {self.limit_s:g} s",
            ambiguous=True,
            problem=Problem.NOT_SENT_IN_TIME,
        )

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        for name, (due, task) in list(self._running.items()):
            if due > loop.time():
                self._timer = loop.call_at(due, self._expire)
                break
            del self._running[name]
            self._expired.add(name)
            task.cancel()
