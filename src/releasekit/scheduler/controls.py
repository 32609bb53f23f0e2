"""Pause, resume and cancel a run from outside: SIGUSR1, SIGUSR2, and the keys p, r and q."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import termios
import threading
import tty
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# A runner leaves 7.5 s between its first signal and its second one.
# https://github.com/actions/runner/blob/main/src/Runner.Sdk/ProcessInvoker.cs
CANCEL_GRACE_S = 6.0
POLL_S = 0.5  # how long the key reader may outlive the run


def keys_are_read() -> bool:
    """Whether `listening` would hear a key that is pressed now."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    return in_main_thread and _terminal() is not None


@contextlib.contextmanager
def listening(
    *, pause: Callable[[], None], resume: Callable[[], None], cancel: Callable[[], None]
) -> Iterator[None]:
    """Call these functions in the running loop, on SIGUSR1 or `p`, SIGUSR2 or `r`, and `q`.

    What is not available is silently absent: signals outside the main thread, and where the
    application handles them itself; keys without a terminal in the foreground.
    """
    with contextlib.ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            stack.enter_context(_signals({signal.SIGUSR1: pause, signal.SIGUSR2: resume}))
            stack.enter_context(_keys({"p": pause, "r": resume, "q": cancel}))
        yield


@contextlib.contextmanager
def _signals(actions: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    installed = [each for each in actions if signal.getsignal(each) is signal.SIG_DFL]
    for number in installed:
        loop.add_signal_handler(number, actions[number])
    try:
        yield
    finally:
        for number in installed:
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def _keys(actions: Mapping[str, Callable[[], None]]) -> Iterator[None]:
    descriptor = _terminal()
    try:
        saved = termios.tcgetattr(descriptor) if descriptor is not None else None
    except termios.error:  # it hung up
        saved = None
    if descriptor is None or saved is None:
        yield
        return
    stopped = threading.Event()
    reader = threading.Thread(
        target=_read_keys,
        args=(descriptor, actions, asyncio.get_running_loop(), stopped),
        name="releasekit-keys",
        daemon=True,
    )
    try:
        with contextlib.suppress(termios.error):  # it hung up
            tty.setcbreak(descriptor)  # Ctrl-C stays a signal
        reader.start()
        yield
    finally:
        stopped.set()
        # In the background that would stop the process, and a shell has set its own by then.
        if _terminal() is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(descriptor, termios.TCSANOW, saved)


def _terminal() -> int | None:
    """Standard input, if it is a terminal that this process may read without being stopped."""
    try:
        descriptor = sys.stdin.fileno()
        return descriptor if _in_foreground(descriptor) else None
    except (AttributeError, OSError, ValueError):  # no stdin, no descriptor, no terminal
        return None


def _in_foreground(descriptor: int) -> bool:
    return os.tcgetpgrp(descriptor) == os.getpgrp()


def _read_keys(
    descriptor: int,
    actions: Mapping[str, Callable[[], None]],
    loop: asyncio.AbstractEventLoop,
    stopped: threading.Event,
) -> None:
    while not stopped.is_set():
        try:
            readable, _, _ = select.select([descriptor], [], [], POLL_S)
            if not readable or stopped.is_set():
                continue
            if not _in_foreground(descriptor):  # to read there would stop the process
                stopped.wait(POLL_S)
                continue
            key = os.read(descriptor, 1).decode("ascii", "replace").lower()
        except (OSError, ValueError):  # standard input was closed, or its terminal hung up
            return
        if not key:
            return
        if key in actions:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(actions[key])
