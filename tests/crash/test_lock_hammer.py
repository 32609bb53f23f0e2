"""Four processes fight for one lock while its holders are killed; a witness looks for two at once.

`SOAK` multiplies the seconds. On a busy machine it lasts until each has had its turns.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from releasekit.errors import LockHeld
from releasekit.state import locks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE_S = 40.0
SECONDS = 5 * float(os.environ.get("SOAK", "1"))

fork = multiprocessing.get_context("fork")


def _sections(state: Path, ends_at: float, least: int, counted: Path) -> None:
    """Enter the section again and again; two inside at once cannot both create the witness."""
    entered = overlaps = 0
    while _goes_on(ends_at, entered < least):
        with contextlib.suppress(LockHeld), locks.acquire(state, ["npm", "pypi"]):
            entered += 1
            overlaps += not _alone(state / "witness")
    counted.write_text(f"{entered} {overlaps}")


def _goes_on(ends_at: float, lacks: bool) -> bool:
    return time.monotonic() < ends_at + (PATIENCE_S if lacks else 0.0)


def _alone(witness: Path) -> bool:
    try:
        witness.touch(exist_ok=False)
    except FileExistsError:
        return False
    os.sched_yield()
    witness.unlink()
    return True


def _dies_holding(state: Path) -> None:
    while True:
        with contextlib.suppress(LockHeld), locks.acquire(state, ["pypi"]):
            os.kill(os.getpid(), signal.SIGKILL)


def hammer(directory: Path, seconds: float) -> tuple[int, int, int]:
    """Sections entered, overlaps seen, holders killed."""
    ends_at = time.monotonic() + seconds
    state = directory / "state"
    counts = [directory / f"count-{number}" for number in range(4)]
    least = math.ceil(5 * seconds)
    workers = [fork.Process(target=_sections, args=(state, ends_at, least, to)) for to in counts]
    for worker in workers:
        worker.start()
    killed = 0
    while _goes_on(ends_at, killed < 2 * seconds):
        mortal = fork.Process(target=_dies_holding, args=(state,))
        mortal.start()
        mortal.join(timeout=10)
        killed += mortal.exitcode == -signal.SIGKILL
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0
    entered, overlaps = zip(*(map(int, path.read_text().split()) for path in counts), strict=True)
    return sum(entered), sum(overlaps), killed


def test_no_two_processes_are_ever_inside(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """R26"""
    entered, overlaps, killed = hammer(tmp_path, SECONDS)
    record_property("sections", entered)
    record_property("killed", killed)
    assert overlaps == 0
    assert entered >= 20 * SECONDS
    assert killed >= 2 * SECONDS


def test_an_orphan_keeps_the_lock_until_it_ends(tmp_path: Path) -> None:
    """R27"""
    state = tmp_path / "state"
    here, there = os.pipe()

    def parent() -> None:
        held = locks.acquire(state, ["pypi"])
        if os.fork() == 0:
            os.close(there)
            os.read(here, 1)  # the orphan's upload, which ends when the test lets it
            os._exit(0)
        assert held.ecosystems
        os.kill(os.getpid(), signal.SIGKILL)

    process = fork.Process(target=parent)
    process.start()
    process.join()
    os.close(here)
    with pytest.raises(LockHeld) as caught:
        locks.acquire(state, ["pypi"])
    assert "one it started still runs" in caught.value.hint
    os.close(there)
    for _ in range(1000):
        with contextlib.suppress(LockHeld), locks.acquire(state, ["pypi"]):
            return
    pytest.fail("the lock outlived the orphan")
