"""The rate plan of crates.io."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

import virtual_time
from releasekit.ecosystems.cargo.rates import NEW_CRATES, NEW_VERSIONS, Limit, Pace, plan_note
from releasekit.errors import Transient
from releasekit.scheduler import Scheduler, Task
from releasekit.scheduler.retries import WaitBudget


@pytest.mark.parametrize(
    ("least_s", "time"), [(60.0, "1 min"), (600.0, "10 min"), (4200.0, "1 h 10 min")]
)
def test_how_long_a_release_takes_is_said_before_it_begins(least_s: float, time: str) -> None:
    assert f"takes at least {time}:" in plan_note(least_s)


def test_where_nobody_has_to_wait_nothing_is_said() -> None:
    assert plan_note(0.0) == ""


def test_nobody_waits_before_the_registry_has_said_so() -> None:
    assert Pace(Limit(5, 600.0)).wait_s("a", 0.0) == 0.0


def test_each_gets_a_turn_of_its_own() -> None:
    pace = Pace(Limit(5, 600.0))
    assert pace.record_refusal("a", 100.0, 30.0) == 30.0
    assert pace.record_refusal("b", 100.0, 30.0) == 630.0
    assert pace.wait_s("c", 110.0) == 1220.0
    assert pace.wait_s("a", 130.0) == 0.0
    pace.record_acceptance("a")
    assert pace.wait_s("b", 600.0) == 130.0
    assert pace.wait_s("b", 730.0) == 0.0
    assert pace.wait_s("c", 1330.0) == 0.0


def test_who_is_refused_in_its_turn_goes_behind_the_others() -> None:
    pace = Pace(Limit(5, 600.0))
    pace.record_refusal("a", 0.0, 10.0)
    pace.record_refusal("b", 0.0, 10.0)
    assert pace.record_refusal("a", 10.0, 5.0) == 1200.0


def test_once_all_turns_are_over_nobody_waits() -> None:
    pace = Pace(Limit(1, 1.0))
    pace.record_refusal("a", 0.0, 1.0)
    assert pace.wait_s("b", 5.0) == 0.0
    pace.record_acceptance("a")
    pace.record_acceptance("b")
    assert pace.wait_s("b", 0.5) == 0.0


def test_jobs_that_are_told_the_same_come_at_times_of_their_own() -> None:
    """One user has one limit, whatever the number of jobs."""
    jobs, turns = 4, []
    for number in range(jobs):
        pace = Pace(NEW_VERSIONS.share(jobs), NEW_VERSIONS.interval_s * number)
        turns += [pace.record_refusal(name, 0.0, 10.0) for name in "abc"]
    assert sorted(turns) == [10.0 + NEW_VERSIONS.interval_s * turn for turn in range(3 * jobs)]


class CratesIo:
    """Lets in as many new crates as it says, and asks everybody else to wait for the next one."""

    def __init__(self) -> None:
        self._left, self._since = float(NEW_CRATES.burst), 0.0

    def put(self, now: float) -> float:
        """0, or how long it asks to wait."""
        refilled = (now - self._since) / NEW_CRATES.interval_s
        self._left, self._since = min(NEW_CRATES.burst, self._left + refilled), now
        if self._left < 0.999:
            return (1 - self._left) * NEW_CRATES.interval_s
        self._left -= 1
        return 0.0


def released(count: int, *, deadline_s: float | None) -> Counter[str]:
    """The outcomes of that many new crates, as `registry.upload` sends them."""

    async def main() -> Counter[str]:
        loop, server, pace = asyncio.get_running_loop(), CratesIo(), Pace(NEW_CRATES)
        patience = WaitBudget.from_now(max_wait_s=3600.0, deadline_s=deadline_s)

        async def publish(name: str) -> None:
            if wait_s := pace.wait_s(name, loop.time()):
                raise Transient(
                    "it is not its turn yet",
                    retry_after=wait_s,
                    asked_s=pace.asked_s(loop.time()),
                )
            if asked_s := server.put(loop.time()):
                wait_s = pace.record_refusal(name, loop.time(), asked_s)
                raise Transient("HTTP 429", retry_after=wait_s, asked_s=asked_s)
            pace.record_acceptance(name)

        scheduler = Scheduler.from_tasks(
            [Task(f"crate-{number}", "upload") for number in range(count)],
            lanes={"upload": 5},
            max_retries=3,
            patience=patience,
        )
        if deadline_s is not None:
            loop.call_at(patience.until, scheduler.cancel)
        result = await scheduler.run(publish)
        return Counter(map(str, result.outcomes.values()))

    return virtual_time.run(main())


def test_sixty_new_crates_go_through_one_after_the_other() -> None:
    """R51: crates.io asks for ten minutes each time, and the line behind it is ours."""
    assert released(60, deadline_s=None) == {"published": 60}


def test_a_place_in_line_behind_the_deadline_is_no_failure() -> None:
    """R51: nobody has refused those crates; running again is enough."""
    assert released(60, deadline_s=3630.0) == {"published": 11, "cancelled": 49}
