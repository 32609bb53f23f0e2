"""SIGINT and SIGTERM: the first ends a run in order, the next at once."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    from releasekit.release.release import ReleaseRun

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """`with Interruption()`, inside the task that the signals are meant for.

    Until there is a release to end, that task is cancelled.
    """

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._release: ReleaseRun | None = None
        self._before = {number: signal.getsignal(number) for number in SIGNALS}
        self.happened = False

    def ends(self, release: ReleaseRun) -> None:
        """From now on a signal ends `release`, which then accounts for every package."""
        self._release = release

    def by_key(self) -> None:
        """The key for it was pressed."""
        self._interrupt("cancelled by the key q")

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        # Windows has no handlers on the loop; there Ctrl-C cancels the task, as everywhere else.
        with contextlib.suppress(NotImplementedError):
            for number in SIGNALS:
                loop.add_signal_handler(number, self._interrupt, f"cancelled by {number.name}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(NotImplementedError):
            for number in SIGNALS:
                loop.remove_signal_handler(number)
                # For SIGINT asyncio would leave the handler that raises KeyboardInterrupt.
                signal.signal(number, self._before[number])

    def _interrupt(self, reason: str) -> None:
        again, self.happened = self.happened, True
        if self._release is not None:
            self._release.stop(reason, immediately=again)
        elif self._task is not None:
            self._task.cancel(reason)
