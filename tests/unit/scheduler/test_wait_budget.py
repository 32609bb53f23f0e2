from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

import pytest

import virtual_time
from releasekit.errors import CircuitOpen, Rejected, Transient
from releasekit.http.client import RetryPolicy, retry
from releasekit.scheduler import Scheduler, Task
from releasekit.scheduler.retries import PATIENT, WaitBudget, in_words


def test_patience_without_limits_is_endless() -> None:
    assert PATIENT.allows(Transient("busy", retry_after=1e300))


@pytest.mark.parametrize(
    ("error", "allowed"),
    [
        (Transient("busy", retry_after=3600.0), True),
        (Transient("busy", retry_after=3600.1), False),
        (Transient("busy", retry_after=math.inf), False),
        (CircuitOpen("down", retry_after=3601.0), False),
        (Transient("busy"), True),
        (Rejected("no"), True),
        (ValueError("a bug"), True),
    ],
)
def test_a_wish_is_granted_up_to_max_wait(error: Exception, allowed: bool) -> None:
    """R51"""
    assert WaitBudget(3600.0).allows(error) is allowed


def test_a_queue_of_ours_is_no_wish_of_the_registry() -> None:
    """R51: the tenth crate in line waits longer than what crates.io asks for each."""
    error = Transient("not its turn yet", retry_after=6000.0)
    error.asked_s = 600.0
    assert WaitBudget(3600.0).allows(error)
    error.asked_s = 3601.0
    assert not WaitBudget(3600.0).allows(error)


def test_it_says_once_when_to_come_back_and_what_would_have_helped() -> None:
    """R51"""
    error = Transient("HTTP 429 slow down", retry_after=7300.0, hint="Ask for more.")
    for _ in range(2):
        WaitBudget(3600.0).explain(error)
    found = re.fullmatch(
        r"HTTP 429 slow down; come back in 2 h 2 min, at (.{16}) UTC "
        r"\(`max-wait` is 1 h, so this run does not wait\)",
        str(error),
    )
    assert found
    then = datetime.strptime(found[1], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    assert abs(then - datetime.now(UTC) - timedelta(seconds=7300)) < timedelta(minutes=5)
    assert error.hint == "Run the same command again then, or raise `max-wait`. Ask for more."


def test_what_is_not_too_long_is_not_explained() -> None:
    error = Transient("busy", retry_after=1.0)
    WaitBudget(3600.0).explain(error)
    WaitBudget(3600.0).explain(Rejected("no"))
    assert (str(error), error.hint) == ("busy", "")


@pytest.mark.parametrize("wait_s", [1e9, 1e18, math.inf])
def test_no_wish_is_beyond_the_calendar(wait_s: float) -> None:
    """R51"""
    error = Transient("busy", retry_after=wait_s)
    WaitBudget(0.0).explain(error)
    assert "come back in " in str(error)
    assert "`max-wait` is 0 s" in str(error)


def test_the_tighter_of_two_ends_counts() -> None:
    """R51"""

    async def main() -> None:
        run = WaitBudget.from_now(max_wait_s=60.0, deadline_s=30.0)
        assert run.within(20.0, "task-timeout").ends_by == "task-timeout"
        assert run.within(40.0, "task-timeout") is run
        assert WaitBudget.from_now(max_wait_s=60.0, deadline_s=None).until == math.inf
        error = Transient("busy", retry_after=45.0)
        run.explain(error)
        assert "(the `deadline` ends before, so" in str(error)

    virtual_time.run(main())


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.2, "1 min"), (61, "1 min 1 s"), (3600, "1 h"), (1e9, "277777 h 47 min")],
)
def test_times_are_told_in_two_units(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_a_read_does_not_wait_for_what_is_too_late() -> None:
    """R51: a billion seconds were obeyed as long as the deadline of the call allowed for them."""
    attempts = []

    async def attempt() -> None:
        attempts.append(virtual_time.now())
        raise Transient("HTTP 429", retry_after=1e9)

    policy = RetryPolicy(deadline_s=1e10, patience=WaitBudget(3600.0))
    with pytest.raises(Transient, match=r"come back in 277777 h .*`max-wait` is 1 h"):
        virtual_time.run(retry(attempt, policy))
    assert attempts == [0]


def test_a_read_names_the_time_limit_that_its_pause_would_pass() -> None:
    """R51"""

    async def attempt() -> None:
        raise Transient("HTTP 429", retry_after=700.0)

    with pytest.raises(Transient, match="the `task-timeout` ends before"):
        virtual_time.run(retry(attempt, RetryPolicy(deadline_s=600.0, patience=WaitBudget(3600.0))))


@pytest.mark.parametrize("error", [Transient, CircuitOpen])
def test_the_scheduler_does_not_wait_for_what_is_too_late(error: type[Transient]) -> None:
    """R51: and what does not depend on it goes on meanwhile."""

    async def publish(name: str) -> None:
        if name == "slow":
            raise error("HTTP 429", retry_after=1e9)

    async def main() -> None:
        scheduler = Scheduler.from_tasks(
            [Task("slow", "l"), Task("after", "l", frozenset({"slow"})), Task("other", "l")],
            lanes={"l": 2},
            max_retries=3,
            patience=WaitBudget.from_now(max_wait_s=3600.0, deadline_s=None),
        )
        result = await scheduler.run(publish)
        outcomes = {name: str(outcome) for name, outcome in result.outcomes.items()}
        assert outcomes == {"slow": "failed", "after": "blocked", "other": "published"}
        assert virtual_time.now() == 0
        assert result.attempts["slow"] == 1

    virtual_time.run(main())
