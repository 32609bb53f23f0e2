"""SIGINT, SIGTERM, SIGHUP and the keys of a person who watches: what ends a run, and how strictly,
and what lets it pause.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
from typing import TYPE_CHECKING, Self

from releasekit.errors import INTERRUPTED
from releasekit.scheduler.controls import CANCEL_GRACE_S, keys_are_read, listening

if TYPE_CHECKING:
    from releasekit.release.release import ReleaseRun

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GRACES_S = (None, CANCEL_GRACE_S, 0.0)  # each stricter than the one before


class Interruption:
    """`with Interruption()`, inside the task that the signals are meant for.

    Until there is a release to end, that task is cancelled, and the second signal ends the process
    with the words of `leaving`. With `keys`, it also listens to p, r and q and their signals; a
    pause that is wanted before there is a release begins with it.
    """

    def __init__(
        self, leaving: str = "cancelled before anything was published", *, keys: bool = False
    ) -> None:
        self._leaving = leaving
        self._hears_keys = keys
        self._keys = contextlib.ExitStack()
        self._paused = False
        self._task = asyncio.current_task()
        self._release: ReleaseRun | None = None
        self._leaves = False  # at the next signal
        self._left = threading.Lock()
        self._tells: socket.socket | None = None
        self._strictness = -1  # the strictest end that was asked for, if any
        before = {number: signal.getsignal(number) for number in SIGNALS}
        # A hang-up that is ignored, as under nohup, stays so.
        self._before = {
            number: action
            for number, action in before.items()
            if number != signal.SIGHUP or action is not signal.SIG_IGN
        }

    @property
    def happened(self) -> bool:
        return self._strictness >= 0

    def ends(self, release: ReleaseRun) -> None:
        """From now on, end `release` instead, which accounts for every package."""
        self._release = release
        self._leaves = False
        self._listen()
        if self._tells is not None:
            self._tells.close()
            self._tells = None
        if self._paused:
            release.pause()

    def pause(self) -> None:
        self._paused = True
        if self._release is not None:
            self._release.pause()

    def resume(self) -> None:
        self._paused = False
        if self._release is not None:
            self._release.resume()

    def by_key(self) -> None:
        """What is in flight runs to its end; the second time, it is treated like a signal."""
        self._interrupt("cancelled by the key q", self._strictness + 1)

    def _by_signal(self, number: signal.Signals) -> None:
        """What is in flight gets a few seconds; the second time, none.

        When a terminal hangs up, the shell and the kernel each say so: that is one time.
        """
        if self._leaves:  # the loop was busy, and heard of two at once
            self._leave(number)
        stricter = self._strictness + (number != signal.SIGHUP)
        # A runner cancels jobs by the same signal.
        by_hand = number == signal.SIGINT and keys_are_read()
        by = "Ctrl-C" if by_hand else number.name
        self._interrupt(f"cancelled by {by}", max(stricter, 1))

    def __enter__(self) -> Self:
        self._listen()
        if self._hears_keys:
            keys = listening(pause=self.pause, resume=self.resume, cancel=self.by_key)
            self._keys.enter_context(keys)
        return self

    def ignore_keys(self) -> None:
        """From now on: what follows a release can neither be paused nor be cut off in order."""
        self._keys.close()

    def __exit__(self, *_: object) -> None:
        self._keys.close()
        self._tell()  # where the loop has no handlers left, it takes the descriptor back
        if not self.happened or self._release is not None:
            # For SIGINT asyncio would leave the handler that raises KeyboardInterrupt.
            loop = asyncio.get_running_loop()
            for number, action in self._before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, action)

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number in self._before:
            loop.add_signal_handler(number, self._by_signal, number)

    def _interrupt(self, reason: str, strictness: int) -> None:
        self._strictness = min(strictness, len(GRACES_S) - 1)
        if self._release is not None:
            self._release.stop(reason, grace_s=GRACES_S[self._strictness])
        elif self._task is not None:
            self._task.cancel(reason)
            if not self._leaves:
                self._leave_at_the_next_signal()

    def _leave_at_the_next_signal(self) -> None:
        """Whatever the main thread waits for by then: it may be another thread, the parser of a
        long manifest perhaps, which cannot be cancelled.

        Python calls a handler between two instructions of the main thread alone, and one that came
        just before that thread began to wait would never be called. The number is written to the
        descriptor at once: https://docs.python.org/3/library/signal.html#signal.set_wakeup_fd.
        """
        self._leaves = True
        loop = asyncio.get_running_loop()
        for number in self._before:
            loop.remove_signal_handler(number)
            signal.signal(number, lambda number, _: self._leave(number))
        with contextlib.suppress(OSError):  # no descriptor is left
            told, self._tells = socket.socketpair()
            self._tells.setblocking(False)
            threading.Thread(target=self._watch, args=(told,), daemon=True).start()
            self._tell()

    def _tell(self) -> None:
        if self._tells is not None:
            signal.set_wakeup_fd(self._tells.fileno(), warn_on_full_buffer=False)

    def _watch(self, told: socket.socket) -> None:
        with told:
            while number := told.recv(1):
                self._leave(number[0])

    def _leave(self, number: int) -> None:
        """At once, for a second signal that is none of a hang-up: no release is under way."""
        if number not in {signal.SIGINT, signal.SIGTERM} or not self._left.acquire(blocking=False):
            return
        with contextlib.suppress(ValueError):  # another thread may not take back its handlers
            self._keys.close()  # the terminal is given back
        with contextlib.suppress(OSError):  # a terminal that has hung up
            os.write(2, f"error: {self._leaving}\n".encode())
        os._exit(INTERRUPTED)
