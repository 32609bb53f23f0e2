"""Four processes fight for one lock while its holders are killed; a witness looks for two at once.

`SOAK` multiplies how often.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import re
import signal
from typing import TYPE_CHECKING

import pytest

from processes import PATIENCE_S, wait_until
from releasekit.errors import LockHeld
from releasekit.state import locks

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Event
    from pathlib import Path

SOAK = float(os.environ.get("SOAK", "1"))
# Of each process, and of all of them.
SECTIONS = math.ceil(50 * SOAK)
KILLED = math.ceil(10 * SOAK)

fork = multiprocessing.get_context("fork")


def _sections(state: Path, enough: Event, counted: Path) -> None:
    """Enter the section again and again; two inside at once cannot both create the witness."""
    entered = overlaps = 0
    while entered < SECTIONS or not enough.is_set():
        with contextlib.suppress(LockHeld), locks.acquire(state, ["npm", "pypi"]):
            entered += 1
            overlaps += not _alone(state / "witness")
    counted.write_text(f"{entered} {overlaps}")


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


def test_no_two_processes_are_ever_inside(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """R26"""
    state, enough = tmp_path / "state", fork.Event()
    counts = [tmp_path / f"count-{number}" for number in range(4)]
    workers = [fork.Process(target=_sections, args=(state, enough, to)) for to in counts]
    for worker in workers:
        worker.start()
    for _ in range(KILLED):
        mortal = fork.Process(target=_dies_holding, args=(state,))
        mortal.start()
        mortal.join(PATIENCE_S)
        assert mortal.exitcode == -signal.SIGKILL
    enough.set()
    for worker in workers:
        worker.join(PATIENCE_S)
        assert worker.exitcode == 0
    entered, overlaps = zip(*(map(int, path.read_text().split()) for path in counts), strict=True)
    record_property("sections", sum(entered))
    assert min(entered) >= SECTIONS
    assert sum(overlaps) == 0


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
    assert re.search(r"what it started still runs: \S+ \(process \d+\); the run", str(caught.value))
    assert re.search(r"run `kill \d+`", caught.value.hint)
    os.close(there)

    def is_free() -> bool:
        with contextlib.suppress(LockHeld), locks.acquire(state, ["pypi"]):
            return True
        return False

    wait_until(is_free)
