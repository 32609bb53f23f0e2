from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, cast

import pytest

from releasekit.cli.interruption import Interruption

if TYPE_CHECKING:
    from releasekit.release.release import ReleaseRun


class FakeRelease:
    def __init__(self) -> None:
        self.stops: list[tuple[str, bool]] = []
        self.heard = asyncio.Event()

    def stop(self, reason: str, *, immediately: bool = False) -> None:
        self.stops.append((reason, immediately))
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
    assert release.stops == [("cancelled by SIGINT", False), ("cancelled by SIGTERM", True)]


def test_the_key_counts_as_a_signal() -> None:
    """R10"""
    release = FakeRelease()

    async def command() -> None:
        with Interruption() as interruption:
            interruption.ends(cast("ReleaseRun", release))
            interruption.by_key()

    asyncio.run(command())
    assert release.stops == [("cancelled by the key q", False)]


def test_afterwards_signals_are_what_they_were() -> None:
    async def command() -> None:
        with Interruption():
            pass
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

    asyncio.run(command())
