from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from releasekit.graph import DependencyGraph
from releasekit.scheduler import Scheduler, controls
from releasekit.scheduler.controls import listening

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


class Calls:
    """What was asked for, in order."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.changed = asyncio.Event()

    def _note(self, what: str) -> None:
        self.made.append(what)
        self.changed.set()

    def pause(self) -> None:
        self._note("pause")

    def resume(self) -> None:
        self._note("resume")

    def cancel(self) -> None:
        self._note("cancel")

    async def next(self) -> str:
        await self.changed.wait()
        self.changed.clear()
        return self.made[-1]


def listen(calls: Calls) -> AbstractContextManager[None]:
    return listening(pause=calls.pause, resume=calls.resume, cancel=calls.cancel)


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Standard input is a terminal of ours, in the foreground; we hold the keyboard."""
    keyboard, screen = os.openpty()
    with open(screen, closefd=False) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp())
        try:
            yield keyboard, screen
        finally:
            os.close(keyboard)
            os.close(screen)


def test_signals_pause_and_resume() -> None:
    """R10"""

    async def main() -> None:
        calls = Calls()
        with listen(calls):
            os.kill(os.getpid(), signal.SIGUSR1)
            assert await calls.next() == "pause"
            os.kill(os.getpid(), signal.SIGUSR2)
            assert await calls.next() == "resume"
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL

    asyncio.run(main())


def test_signals_that_the_application_handles_are_left_alone() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))

    async def main() -> None:
        calls = Calls()
        with listen(calls):
            os.kill(os.getpid(), signal.SIGUSR1)
            await asyncio.sleep(0)
        assert calls.made == []

    try:
        asyncio.run(main())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [signal.SIGUSR1]


def test_keys_pause_resume_and_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    """R10"""

    async def main(keyboard: int) -> None:
        calls = Calls()
        with listen(calls):
            for key, what in ((b"p", "pause"), (b"xR", "resume"), (b"q", "cancel")):
                os.write(keyboard, key)
                assert await calls.next() == what

    with terminal(monkeypatch) as (keyboard, screen):
        before = termios.tcgetattr(screen)
        asyncio.run(main(keyboard))
        assert termios.tcgetattr(screen) == before


def test_the_terminal_is_restored_after_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(screen: int, before: list[object]) -> None:
        with listen(Calls()):
            assert termios.tcgetattr(screen) != before
            raise LookupError("a bug")

    with terminal(monkeypatch) as (_, screen):
        before = termios.tcgetattr(screen)
        with pytest.raises(LookupError):
            asyncio.run(main(screen, before))
        assert termios.tcgetattr(screen) == before


def test_a_terminal_that_goes_away_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is read from has come to its end, or is none."""
    stopped = threading.Event()
    loop = asyncio.new_event_loop()
    reading, writing = os.pipe()
    os.close(writing)
    controls._read_keys(reading, {}, loop, stopped)
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp())
    controls._read_keys(reading, {}, loop, stopped)
    os.close(reading)
    loop.close()
    assert not stopped.is_set()


def test_a_terminal_that_hangs_up_is_let_go() -> None:
    keyboard, screen = os.openpty()
    os.close(keyboard)
    loop = asyncio.new_event_loop()
    controls._read_keys(screen, {}, loop, threading.Event())
    os.close(screen)
    controls._read_keys(screen, {}, loop, threading.Event())
    loop.close()


def test_a_reader_stops_soon_after_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controls, "POLL_S", 0.0)
    stopped = threading.Event()
    looks: list[float] = []

    def look(*_: object) -> tuple[list[int], list[int], list[int]]:
        looks.append(0.0)
        if len(looks) == 2:
            stopped.set()
        return [], [], []

    monkeypatch.setattr("select.select", look)
    loop = asyncio.new_event_loop()
    controls._read_keys(0, {}, loop, stopped)
    loop.close()
    assert len(looks) == 2


@pytest.mark.parametrize("stdin", [None, "closed", "background"])
def test_without_a_terminal_there_are_no_keys(
    monkeypatch: pytest.MonkeyPatch, stdin: str | None
) -> None:
    with terminal(monkeypatch) as (_, _):
        if stdin == "background":
            monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp() + 1)
        else:
            monkeypatch.setattr(sys, "stdin", None)
        assert controls._terminal() is None


def test_keys_are_read_where_somebody_can_press_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch):
        assert controls.keys_are_read()
        assert not asyncio.run(asyncio.to_thread(controls.keys_are_read))
        monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp() + 1)
        assert not controls.keys_are_read()


@pytest.mark.parametrize("call", ["tcgetattr", "tcsetattr"])
def test_a_terminal_that_has_hung_up_ends_no_run(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: object) -> None:
        raise termios.error(5, "Input/output error")

    async def main() -> str:
        with listen(Calls()):
            return "done"

    with terminal(monkeypatch):
        monkeypatch.setattr(termios, call, fail)
        assert asyncio.run(main()) == "done"


def test_what_went_to_the_background_leaves_the_terminal_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To read there, or to change its settings, would stop the process."""
    changed: list[object] = []

    async def main() -> None:
        with listen(Calls()):
            monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp() + 1)
            monkeypatch.setattr(termios, "tcsetattr", lambda *how: changed.append(how))

    with terminal(monkeypatch) as (keyboard, screen):
        asyncio.run(main())
        assert changed == []
        monkeypatch.setattr(controls, "POLL_S", 0.0)
        stopped = threading.Event()
        looks: list[float] = []

        def look(*_: object) -> tuple[list[int], list[int], list[int]]:
            looks.append(0.0)
            if len(looks) == 2:
                stopped.set()
            return [screen], [], []

        os.write(keyboard, b"p\n")
        monkeypatch.setattr("select.select", look)
        loop = asyncio.new_event_loop()
        controls._read_keys(screen, {}, loop, stopped)
        loop.close()
        monkeypatch.undo()
        assert os.read(screen, 2) == b"p\n"


def test_off_the_main_thread_there_is_nothing() -> None:
    async def main() -> str:
        with listen(Calls()):
            return threading.current_thread().name

    async def outer() -> None:
        assert await asyncio.to_thread(lambda: asyncio.run(main())) != "MainThread"

    asyncio.run(outer())


def test_a_run_is_paused_and_resumed_by_signals() -> None:
    """R10"""
    started: list[str] = []

    def resume() -> None:
        started.append("-")
        os.kill(os.getpid(), signal.SIGUSR2)

    async def publish(name: str) -> None:
        started.append(name)
        if name == "a":
            os.kill(os.getpid(), signal.SIGUSR1)
            for _ in range(50):  # until the loop has heard of it
                await asyncio.sleep(0)
            asyncio.get_running_loop().call_later(0.01, resume)

    scheduler = Scheduler.from_graph(DependencyGraph.from_edges({"a": [], "b": ["a"]}))
    assert asyncio.run(scheduler.run(publish)).ok
    assert started == ["a", "-", "b"]
