from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import termios
from typing import TYPE_CHECKING, cast

import pytest

from processes import PATIENCE_S
from releasekit.__main__ import main
from releasekit.cli.interruption import SIGNALS, Interruption
from releasekit.errors import INTERRUPTED
from releasekit.scheduler.controls import CANCEL_GRACE_S
from unit.scheduler.test_controls import terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from releasekit.release.release import ReleaseRun


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """As they are where nobody has changed them: tests may run under nohup, and a command that was
    cancelled early leaves its own behind.
    """
    usual = dict.fromkeys(SIGNALS, signal.SIG_DFL) | {signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, usual[number]) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    signal.set_wakeup_fd(-1)


class FakeRelease:
    def __init__(self) -> None:
        self.stops: list[tuple[str, float | None]] = []
        self.pauses = 0
        self.heard = asyncio.Event()

    def pause(self) -> None:
        self.pauses += 1

    def stop(self, reason: str, *, grace_s: float | None = None) -> None:
        self.stops.append((reason, grace_s))
        self.heard.set()


def test_before_there_is_a_release_the_command_is_cancelled() -> None:
    """R28"""

    async def command() -> None:
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGTERM)
            try:
                await asyncio.Event().wait()
            finally:
                assert interruption.happened

    with pytest.raises(asyncio.CancelledError, match="cancelled by SIGTERM"):
        asyncio.run(command())


STUCK = """
import asyncio, threading
from releasekit.cli.interruption import Interruption

async def command():
    with Interruption():
        try:
            print("ready", flush=True)
            await asyncio.to_thread(threading.Event().wait)
        except asyncio.CancelledError:
            print("cancelled", flush=True)
            raise

asyncio.run(command())
"""

# It waits in C for the lock that it holds, and goes on waiting when a signal was handled: as where
# the signal comes just before any wait.
STUCK_IN_C = """
import asyncio, ctypes, threading
from releasekit.cli.interruption import Interruption

async def command():
    libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(256)
    with Interruption(keys=True):
        print("ready", flush=True)
        try:
            await asyncio.Event().wait()
        finally:
            print("cancelled", flush=True)
            libc.pthread_mutex_lock(mutex)
            libc.pthread_mutex_lock(mutex)

asyncio.run(command())
"""


@pytest.mark.parametrize("stuck", [STUCK, STUCK_IN_C])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_does_not_wait_for_a_parser(number: signal.Signals, stuck: str) -> None:
    """R28, R51: a thread cannot be cancelled, and asyncio and the interpreter would wait for it."""
    argv = [sys.executable, "-c", stuck]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for word in (b"ready\n", b"cancelled\n"):
            assert process.stdout.readline() == word
            process.send_signal(number)
        assert process.wait(PATIENCE_S) == INTERRUPTED
        assert process.stderr.read() == b"error: cancelled before anything was published\n"


BEGIN = """
import asyncio, contextlib, os, signal, sys, threading
from releasekit.aio import uncancellable
from releasekit.cli.interruption import Interruption

def hang():
    return uncancellable(asyncio.to_thread(threading.Event().wait))

def raise_signals(*numbers):
    for number in numbers:
        os.kill(os.getpid(), number)
"""
AFTER_A_DEADLINE = """
class Told(Interruption):
    def _interrupt(self, *given):
        super()._interrupt(*given)
        raise_signals(signal.SIGTERM)

async def command():
    asyncio.current_task().cancel()
    asyncio.get_running_loop().call_soon(raise_signals, signal.SIGTERM)
    with Told():
        await hang()

asyncio.run(command())
"""
TWO_AT_ONCE = """
async def command():
    asyncio.get_running_loop().call_soon(raise_signals, signal.SIGTERM, signal.SIGINT)
    with Interruption():
        await hang()

asyncio.run(command())
"""
AFTER_ANOTHER_COMMAND = """
async def command(*numbers):
    with Interruption():
        raise_signals(*numbers)
        await asyncio.sleep(0 if not numbers else 600)

with contextlib.suppress(asyncio.CancelledError):
    asyncio.run(command(signal.SIGTERM))
asyncio.run(command())
raise_signals(signal.SIGTERM)
threading.Event().wait()
"""
WITHOUT_DESCRIPTORS = """
import resource

async def command():
    with Interruption():
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
        raise_signals(signal.SIGTERM)
        try:
            await asyncio.Event().wait()
        finally:
            raise_signals(signal.SIGTERM)
            threading.Event().wait()

asyncio.run(command())
"""
OTHERS_SIGNALS = """
signal.signal(signal.SIGALRM, lambda *_: None)

async def command():
    with Interruption(keys=True):
        raise_signals(signal.SIGTERM)
        try:
            await asyncio.Event().wait()
        finally:
            raise_signals(signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)
            for _ in range(100):
                os.sched_yield()
            sys.exit(7)

asyncio.run(command())
"""


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (AFTER_A_DEADLINE, INTERRUPTED),
        (TWO_AT_ONCE, INTERRUPTED),
        (AFTER_ANOTHER_COMMAND, INTERRUPTED),
        (WITHOUT_DESCRIPTORS, INTERRUPTED),
        (OTHERS_SIGNALS, 7),
    ],
)
def test_the_second_signal_ends_the_process_whatever_was_before(script: str, code: int) -> None:
    """R28: and no signal of another kind does."""
    argv = [sys.executable, "-c", BEGIN + script]
    done = subprocess.run(argv, check=False, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == code


def test_what_was_cancelled_and_goes_on_to_a_release_ends_that() -> None:
    """R28"""
    release = FakeRelease()

    async def command() -> None:
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGTERM)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            interruption.ends(cast("ReleaseRun", release))
            os.kill(os.getpid(), signal.SIGTERM)
            await release.heard.wait()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

    asyncio.run(command())
    assert release.stops == [("cancelled by SIGTERM", 0.0)]


def test_the_first_signal_stops_the_release_and_the_next_at_once() -> None:
    """R28"""
    release = FakeRelease()

    async def command() -> None:
        with Interruption() as interruption:
            interruption.ends(cast("ReleaseRun", release))
            for number in (signal.SIGINT, signal.SIGTERM):
                release.heard.clear()
                os.kill(os.getpid(), number)
                await release.heard.wait()

    asyncio.run(command())
    assert release.stops == [("cancelled by SIGINT", CANCEL_GRACE_S), ("cancelled by SIGTERM", 0.0)]


def test_the_key_lets_what_is_in_flight_end_and_is_stricter_each_time() -> None:
    """R10, R41"""
    release = FakeRelease()

    async def command() -> None:
        with Interruption() as interruption:
            interruption.ends(cast("ReleaseRun", release))
            assert not interruption.happened
            for _ in range(4):
                interruption.by_key()
            assert interruption.happened

    asyncio.run(command())
    assert {reason for reason, _ in release.stops} == {"cancelled by the key q"}
    assert [grace_s for _, grace_s in release.stops] == [None, CANCEL_GRACE_S, 0.0, 0.0]


def test_keys_are_heard_before_there_is_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """R10: p pauses it as soon as there is one, q ends what plans it; neither shows on the screen.
    By then a Ctrl-C is one, by name.
    """
    release = FakeRelease()

    class Planning(Interruption):
        def pause(self) -> None:
            super().pause()
            release.heard.set()

    async def command(keyboard: int) -> None:
        before = termios.tcgetattr(screen)
        with Planning(keys=True) as interruption:
            os.write(keyboard, b"p")
            await release.heard.wait()
            interruption.ends(cast("ReleaseRun", release))
            assert release.pauses == 1
            release.heard.clear()
            os.kill(os.getpid(), signal.SIGINT)
            await release.heard.wait()
        with Interruption(keys=True) as interruption:
            interruption.ignore_keys()
            assert termios.tcgetattr(screen) == before
        with Interruption(keys=True):
            os.write(keyboard, b"q")
            await asyncio.Event().wait()

    with terminal(monkeypatch) as (keyboard, screen):
        before = termios.tcgetattr(screen)
        with pytest.raises(asyncio.CancelledError, match="cancelled by the key q"):
            asyncio.run(command(keyboard))
        assert termios.tcgetattr(screen) == before
    assert release.stops == [("cancelled by Ctrl-C", CANCEL_GRACE_S)]


def test_a_signal_after_the_key_is_a_first_signal() -> None:
    """R28, R41"""
    release = FakeRelease()

    async def command() -> None:
        with Interruption() as interruption:
            interruption.ends(cast("ReleaseRun", release))
            interruption.by_key()
            for number in (signal.SIGINT, signal.SIGINT):
                release.heard.clear()
                os.kill(os.getpid(), number)
                await release.heard.wait()

    asyncio.run(command())
    assert [grace_s for _, grace_s in release.stops] == [None, CANCEL_GRACE_S, 0.0]


def test_afterwards_signals_are_what_they_were() -> None:
    async def command() -> None:
        with Interruption():
            pass
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

    asyncio.run(command())


def test_a_hang_up_is_a_first_signal_however_often_it_is_told() -> None:
    """R28: the shell and the kernel each tell of it."""
    release = FakeRelease()

    async def command() -> None:
        with Interruption() as interruption:
            interruption.ends(cast("ReleaseRun", release))
            for _ in range(2):
                release.heard.clear()
                os.kill(os.getpid(), signal.SIGHUP)
                await release.heard.wait()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL

    asyncio.run(command())
    assert release.stops == [("cancelled by SIGHUP", CANCEL_GRACE_S)] * 2


def test_a_hang_up_that_is_ignored_stays_so() -> None:
    """As under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def command() -> None:
        with Interruption() as interruption:
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0)
            assert not interruption.happened
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN

    asyncio.run(command())


def test_before_there_is_a_release_a_second_hang_up_changes_nothing() -> None:
    """What was cancelled is left in order; a second SIGTERM does not wait for that."""
    argv = [sys.executable, "-c", STUCK]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGHUP)
        assert process.stdout.readline() == b"cancelled\n"
        process.send_signal(signal.SIGHUP)
        process.stderr.close()  # as if it had hung up
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == INTERRUPTED


@pytest.mark.parametrize(("terminal", "before"), [(True, "\n"), (False, "")])
def test_cancelled_while_planning_says_how_to_go_on(
    terminal: bool,
    before: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """R28: on a line of its own, behind the ^C of a terminal."""

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("releasekit.__main__._carry_out", interrupted)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert main(["plan", str(tmp_path)]) == INTERRUPTED
    _, told = capsys.readouterr().err.split("\n", 1)
    assert told == (
        f"{before}error: cancelled before anything was published [RK-154]\n"
        "  Run the same command again.\n"
    )
