"""Runs of different ecosystems append to one journal at once, and some of them are killed."""

from __future__ import annotations

import asyncio
import fcntl
import multiprocessing
import os
import random
import signal
from typing import TYPE_CHECKING

from releasekit.state.journal import Journal, read_history

if TYPE_CHECKING:
    from pathlib import Path

fork = multiprocessing.get_context("fork")

WRITERS = 3
RUNS = 20
RECORDS = 20


def _runs(state: Path, ecosystem: str) -> None:
    for number in range(RUNS):
        journal = Journal.open(state, run_id=f"{ecosystem}-{number}")
        journal.run_started(
            plan_digest="", commit="", tool="", started_at="", ecosystems=[ecosystem]
        )
        for step in range(RECORDS):
            # Longer than a page, so that a write is more than one step for the kernel.
            journal.phase_ended(
                f"{ecosystem} {number} {step}", duration_s=1.0, error="x" * 9000 * (step % 2)
            )
        journal.close()


class ShortJournal(Journal):
    compact_above = 0


def _shortening_runs(state: Path, ecosystem: str) -> None:
    for number in range(RUNS):
        journal = ShortJournal.open(state, run_id=f"{ecosystem}-{number}")
        journal.run_started(
            plan_digest="", commit="", tool="", started_at="", ecosystems=[ecosystem]
        )
        for step in range(RECORDS):
            journal.phase_ended(f"{ecosystem} {step}", duration_s=float(number))
            asyncio.run(journal._log.sync())
        asyncio.run(journal.run_ended("success"))
        journal.close()


def _killed_while_writing(state: Path, seed: int) -> None:
    """Dies after half a line, as a process does that is killed in a write of several pages."""
    rng = random.Random(seed)
    with (state / "journal.jsonl").open("ab", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(b'{"v":1,"run":"dead","seq":0,"at":0.0,"event":"' + b"x" * rng.randrange(9000))
        os.kill(os.getpid(), signal.SIGKILL)


def test_records_of_all_runs_are_there_in_order(tmp_path: Path) -> None:
    """R26, R31, R32"""
    writers = [
        fork.Process(target=_runs, args=(tmp_path, f"ecosystem-{number}"))
        for number in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    seed = 0
    while any(writer.is_alive() for writer in writers):
        seed += 1
        mortal = fork.Process(target=_killed_while_writing, args=(tmp_path, seed))
        mortal.start()
        mortal.join()
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    Journal.open(tmp_path, run_id="after").close()
    history = read_history(tmp_path)
    assert history.torn == 0
    assert len(history.runs) == WRITERS * RUNS
    assert len(history.durations) == WRITERS * RUNS * RECORDS // 2


def test_nothing_is_lost_while_others_make_the_journal_shorter(tmp_path: Path) -> None:
    """R26, R31, R40"""
    writers = [
        fork.Process(target=_shortening_runs, args=(tmp_path, f"ecosystem-{number}"))
        for number in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    history = read_history(tmp_path)
    assert len(history.durations) == WRITERS * RECORDS
    assert set(history.durations.values()) == {float(RUNS - 1)}
    for number in range(WRITERS):
        last = history.last_run(f"ecosystem-{number}")
        assert last is not None
        assert (last.id, last.complete) == (f"ecosystem-{number}-{RUNS - 1}", True)
    assert len(history.runs) < WRITERS * RUNS
