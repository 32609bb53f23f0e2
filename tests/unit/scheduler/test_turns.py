"""Tasks that go one at a time once one has failed because of others beside it."""

from __future__ import annotations

import asyncio
import random

import pytest

from releasekit.errors import Transient
from releasekit.model import Outcome
from releasekit.scheduler import RunResult, Scheduler, Task
from releasekit.scheduler.engine import Turns
from simulation.virtual_loop import VirtualLoop, run

GROUPS = {"a": "index", "b": "index", "c": "index", "x": "other"}


def test_all_begin_until_one_was_in_a_crowd() -> None:
    turns = Turns(GROUPS)
    assert turns.begin("a")
    assert turns.begin("b")
    turns.record_contention("b")
    turns.record_contention("a")
    assert turns.spared == {"a", "b"}
    assert turns.end("b") == []
    assert not turns.begin("b")
    assert not turns.begin("c")
    assert turns.begin("x")
    assert turns.end("x") == []
    assert turns.end("a") == ["b", "c"]
    assert turns.begin("c")
    assert not turns.begin("b")


def test_whoever_had_its_turn_for_itself_was_in_no_crowd() -> None:
    turns = Turns(GROUPS)
    assert turns.begin("a")
    turns.record_contention("a")
    assert turns.end("a") == []
    assert turns.begin("b")
    turns.record_contention("b")
    assert turns.spared == {"a"}


def test_what_has_no_group_is_never_in_a_crowd() -> None:
    turns = Turns({"a": "index"})
    assert turns.begin("y")
    turns.record_contention("y")
    assert not turns.spared
    assert turns.end("y") == []


class Index:
    """Takes a second for each, and only what began and ended alone; `other` is elsewhere."""

    def __init__(self) -> None:
        self.inside: set[str] = set()
        self.peak = self.failures = 0
        self.ended: list[str] = []

    async def take(self, name: str) -> None:
        if name.startswith("other"):
            await asyncio.sleep(1)
            self.ended.append(name)
            return
        self.inside.add(name)
        self.peak = max(self.peak, len(self.inside))
        crowd = len(self.inside)
        try:
            await asyncio.sleep(1)
        finally:
            self.inside.discard(name)
        if crowd > 1:
            self.failures += 1
            raise Transient("cannot lock ref", contended=True)
        self.ended.append(name)


def release(
    index: Index, *names: str, slots: int = 4, at: dict[float, str] | None = None
) -> tuple[RunResult[str], float]:
    """The names before `other…` are of one group; no failure counts twice."""

    async def main(loop: VirtualLoop) -> tuple[RunResult[str], float]:
        tasks = [Task(name, group="" if name.startswith("other") else "index") for name in names]
        scheduler = Scheduler.from_tasks(
            tasks, lanes={"publish": slots}, retry_base_delay=0.0, rng=random.Random(1)
        )
        for when_s, name in (at or {}).items():
            if name:
                loop.call_later(when_s, scheduler.remove_package, name)
            else:
                loop.call_later(when_s, scheduler.cancel)
        return await scheduler.run(index.take), loop.time()

    return run(main)


def test_a_crowd_goes_one_by_one_and_loses_no_attempt() -> None:
    """R12: with no retries at all, and each of those that were in it fails at most once."""
    index = Index()
    result, took_s = release(index, *"abcdefgh")
    assert result.ok
    assert index.peak == 4
    assert index.failures == 3
    assert took_s == 8


def test_those_who_wait_for_their_turn_hold_no_slot() -> None:
    """R2: other registries are not kept waiting by it."""
    index = Index()
    others = [f"other{number}" for number in range(6)]
    result, took_s = release(index, *"abcdefgh", *others, slots=4)
    assert result.ok
    assert took_s == 8
    assert set(index.ended[:9]) >= set(others)


def test_failing_alone_counts() -> None:
    class Locked(Index):
        async def take(self, name: str) -> None:
            self.failures += 1
            await asyncio.sleep(1)
            raise Transient("cannot lock ref", contended=True)

    index = Locked()
    result, _ = release(index, "a", "b", "c")
    assert set(result.outcomes.values()) == {Outcome.FAILED}
    assert index.failures == 6


@pytest.mark.parametrize("gone", ["", "c", "d"])
def test_whoever_leaves_the_queue_leaves_the_others_their_turns(gone: str) -> None:
    """R10, R11: cancelled, or removed while it waits."""
    index = Index()
    result, _ = release(index, *"abcd", at={1.5: gone})
    ended = sorted(result.outcomes.values())
    cancelled = [Outcome.CANCELLED] * 2 + [Outcome.PUBLISHED] * 2
    assert ended == ([Outcome.PUBLISHED] * 3 + [Outcome.REMOVED] if gone else cancelled)
    assert not gone or result.outcomes[gone] is Outcome.REMOVED
