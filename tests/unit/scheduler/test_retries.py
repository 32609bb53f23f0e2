from __future__ import annotations

import math
import random
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import virtual_time
from releasekit.errors import CircuitOpen, Rejected, Transient
from releasekit.http.client import RetryPolicy, retry
from releasekit.scheduler import Scheduler, Task
from releasekit.scheduler.retries import PATIENT, Backoff, Retry, WaitBudget, in_words


@given(
    error=st.sampled_from([Transient, CircuitOpen, Rejected, ValueError]),
    wish_s=st.none() | st.floats(0, 1e9),
    attempts=st.integers(0, 10_000),
    base_s=st.floats(0.001, 60),
    seed=st.integers(),
)
def test_the_pause_is_full_jitter_up_to_a_minute_and_never_less_than_the_wish(
    error: type[Exception], wish_s: float | None, attempts: int, base_s: float, seed: int
) -> None:
    """R12"""
    wished = {"retry_after": wish_s} if issubclass(error, Transient) else {}
    retry_rule = Retry(max_retries=5_000, base_delay_s=base_s)
    backoff = retry_rule.decide(error("no", **wished), attempts=attempts, now_s=0.0)
    if attempts > 5_000 or not issubclass(error, Transient):
        assert backoff is None
        return
    assert backoff
    before = attempts if error is CircuitOpen else max(attempts - 1, 0)
    most_s = min(base_s * 2 ** min(before, 20), 60)
    assert backoff == Backoff(most_s, wish_s or 0.0)
    drawn = random.Random(seed).uniform(0.0, most_s)
    assert backoff.draw(random.Random(seed)) == max(drawn, backoff.least_s)


def test_any_error_is_worth_a_retry_where_the_caller_says_so() -> None:
    bug, final = ValueError("a bug"), Rejected("no")
    assert not Retry().decide(bug, attempts=1, now_s=0.0)
    assert Retry(any_error=True).decide(bug, attempts=1, now_s=0.0)
    assert not Retry(any_error=True).decide(final, attempts=1, now_s=0.0)


@pytest.mark.parametrize(
    ("error", "limit"),
    [
        (Transient("busy", retry_after=3600.0), ""),
        (Transient("busy", retry_after=3600.1), "max-wait"),
        (Transient("busy", retry_after=math.inf), "max-wait"),
        (CircuitOpen("down", retry_after=3601.0), "max-wait"),
        (Transient("busy"), ""),
        # The tenth crate in line waits longer than what crates.io asks for each.
        (Transient("not its turn yet", retry_after=6000.0, asked_s=600.0), ""),
        (Transient("not its turn yet", retry_after=6000.0, asked_s=3601.0), "max-wait"),
    ],
)
def test_a_wish_is_granted_up_to_max_wait(error: Exception, limit: str) -> None:
    """R51"""
    budget = WaitBudget(3600.0)
    assert budget.find_limit(error, 0.0) == limit
    assert bool(Retry(patience=budget).decide(error, attempts=1, now_s=0.0)) is not bool(limit)


def test_a_wish_is_granted_up_to_the_end_of_the_run() -> None:
    """R51: and without limits, always."""
    error, budget = Transient("busy", retry_after=30.0), WaitBudget(until=100.0)
    assert [budget.find_limit(error, now_s) for now_s in (70.0, 70.1)] == ["", "deadline"]
    assert not PATIENT.find_limit(Transient("busy", retry_after=1e300), 1e300)


def test_it_says_once_when_to_come_back_and_what_would_have_helped() -> None:
    """R51"""
    error = Transient("HTTP 429 slow down", retry_after=7300.0, hint="Ask for more.")
    for _ in range(2):
        error = WaitBudget(3600.0).explain(error, 0.0)
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
    for error in (Transient("busy", retry_after=1.0), Rejected("no")):
        assert WaitBudget(3600.0).explain(error, 0.0) is error


@pytest.mark.parametrize("wait_s", [1e9, 1e18, math.inf])
def test_no_wish_is_beyond_the_calendar(wait_s: float) -> None:
    """R51"""
    error = WaitBudget(0.0).explain(Transient("busy", retry_after=wait_s), 0.0)
    assert "come back in " in str(error)
    assert "`max-wait` is 0 s" in str(error)


def test_the_tighter_of_two_ends_counts() -> None:
    """R51"""

    async def main() -> None:
        run = WaitBudget.from_now(max_wait_s=60.0, deadline_s=30.0)
        assert run.within(20.0, "task-timeout").ends_by == "task-timeout"
        assert run.within(40.0, "task-timeout") is run
        assert WaitBudget.from_now(max_wait_s=60.0, deadline_s=None).until == math.inf
        error = run.explain(Transient("busy", retry_after=45.0), virtual_time.now())
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
