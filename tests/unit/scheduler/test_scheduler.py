from __future__ import annotations

import asyncio
import random
import re
from contextvars import ContextVar
from typing import TYPE_CHECKING

import httpx
import pytest

from releasekit.errors import PlanError, Rejected, Transient, Undecided, UnknownDependency
from releasekit.graph import DependencyGraph
from releasekit.http.answers import check
from releasekit.http.circuit import Circuit
from releasekit.http.client import http_client, send
from releasekit.model import Node, Outcome, PackageId
from releasekit.scheduler import RunResult, Scheduler, Task
from simulation.virtual_loop import VirtualLoop, run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from releasekit.graph import Key

    Publish = Callable[[str], Awaitable[object]]

CHAIN = {"a": [], "b": ["a"], "c": ["b"]}


def seed_api(edges: dict[str, list[str]], **options: object) -> Scheduler[str]:
    graph = DependencyGraph.from_edges(edges)
    return Scheduler.from_graph(graph, rng=random.Random(1), **options)  # type: ignore[arg-type]


def outcome(scheduler: Scheduler[str], publish: Publish) -> tuple[RunResult[str], float]:
    async def main(loop: VirtualLoop) -> tuple[RunResult[str], float]:
        result = await scheduler.run(publish_fn=publish)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result, loop.time()

    return run(main)


async def second(_name: str) -> None:
    await asyncio.sleep(1)


def test_everything_is_published_in_order() -> None:
    """R1, R3"""
    result, took_s = outcome(seed_api(CHAIN | {"x": []}, concurrency=2), second)
    assert result.ok
    assert result.published in (["a", "x", "b", "c"], ["x", "a", "b", "c"])
    assert (result.failed, result.skipped, result.reasons) == ({}, [], {})
    assert result.attempts == dict.fromkeys("abcx", 1)
    assert took_s == 3


def test_nothing_to_do_is_done() -> None:
    result, took_s = outcome(seed_api({}), second)
    assert (result.ok, result.published, took_s) == (True, [], 0)


def test_failures_block_dependents_and_say_why() -> None:
    """R4, R6"""

    async def publish(name: str) -> None:
        if name == "a":
            raise ValueError("no such index")

    result, _ = outcome(seed_api(CHAIN | {"x": []}), publish)
    assert not result.ok
    assert result.published == ["x"]
    assert result.failed == {"a": "no such index"}
    assert result.skipped == ["b", "c"]
    assert result.reasons["c"] == "blocked by a (failed)"
    assert isinstance(result.errors["a"], ValueError)


def test_an_outage_uses_up_no_attempts_but_those_that_were_made() -> None:
    """R16: a server that is down for its first 9 requests gets everything once it is back."""
    asked: list[float] = []

    async def main(loop: VirtualLoop) -> RunResult[str]:
        circuit = Circuit("registry.example", failures=5)

        def answer(_request: httpx.Request) -> httpx.Response:
            asked.append(loop.time())
            return httpx.Response(503 if len(asked) <= 9 else 201)

        async with http_client(transport=httpx.MockTransport(answer)) as client:

            async def upload(name: str) -> None:
                request = client.build_request("PUT", f"https://registry.example/{name}")
                check(await send(client, request, circuit=circuit), name)

            tasks = [Task(f"p{number}", "upload") for number in range(10)]
            return await Scheduler.from_tasks(tasks, lanes={"upload": 5}, max_retries=3).run(upload)

    result = run(main)
    assert result.ok
    assert len(asked) == 9 + 10
    assert max(result.attempts.values()) <= 4


def test_what_is_there_counts_as_done() -> None:
    scheduler = seed_api(CHAIN, publishable={"b", "c"}, already_published={"a", "elsewhere"})
    result, _ = outcome(scheduler, second)
    assert result.published == ["b", "c"]
    assert sorted(result.already_published) == ["a", "elsewhere"]
    assert result.ok


def test_what_is_not_publishable_is_looked_through() -> None:
    result, _ = outcome(seed_api(CHAIN, publishable={"a", "c"}), second)
    assert result.published == ["a", "c"]


@pytest.mark.parametrize(
    "options",
    [
        {"concurrency": 0},
        {"max_retries": -1},
        {"retry_base_delay": -1.0},
        {"retry_base_delay": float("nan")},
        {"task_timeout": 0.0},
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"is (0|-1|nan|0\.0|-1\.0), must be"):
        seed_api(CHAIN, **options)


def test_any_error_is_retried_with_full_jitter() -> None:
    """R12"""
    waits: list[float] = []

    class Watch:
        def started(self, name: str, attempt: int) -> None: ...
        def settled(self, name: str, outcome: Outcome, reason: str) -> None: ...
        def retrying(self, name: str, attempt: int, delay_s: float, error: BaseException) -> None:
            waits.append(delay_s)

    async def publish(_name: str) -> None:
        if len(waits) < 9:
            raise ConnectionError("reset")

    result, took_s = outcome(
        seed_api({"a": []}, max_retries=9, observer=Watch(), retry_base_delay=1.0), publish
    )
    assert result.ok
    assert result.errors == {}
    assert result.attempts == {"a": 10}
    assert took_s == pytest.approx(sum(waits))
    caps = [min(2.0**at, 60.0) for at in range(9)]
    assert all(0 <= wait <= cap for wait, cap in zip(waits, caps, strict=True))
    assert len(set(waits)) == 9


def test_waiting_for_a_retry_holds_no_slot() -> None:
    """R2"""
    failed: list[str] = []

    async def publish(name: str) -> None:
        await asyncio.sleep(1)
        if name == "a" and not failed:
            failed.append(name)
            raise Transient("busy", retry_after=30.0)

    result, took_s = outcome(
        seed_api({"a": [], "b": [], "c": []}, concurrency=1, max_retries=1), publish
    )
    assert result.published == ["b", "c", "a"]
    assert took_s == pytest.approx(32, abs=0.01)


@pytest.mark.parametrize(
    ("error", "delay_s"),
    [(Transient("busy", retry_after=90.0), 90.0), (Transient("busy", retry_after=float("nan")), 0)],
)
def test_retry_after_is_honoured_when_it_means_something(error: Exception, delay_s: float) -> None:
    """R12"""
    errors = [error]

    async def publish(_name: str) -> None:
        if errors:
            raise errors.pop()

    result, took_s = outcome(seed_api({"a": []}, max_retries=1, retry_base_delay=0.0), publish)
    assert result.ok
    assert took_s == delay_s


@pytest.mark.parametrize(
    ("error", "ends_as"),
    [(Rejected("not yours"), Outcome.FAILED), (Undecided("perhaps"), Outcome.UNKNOWN)],
)
def test_final_errors_are_not_retried(error: Exception, ends_as: Outcome) -> None:
    """R16, R17"""

    async def publish(_name: str) -> None:
        raise error

    result, _ = outcome(seed_api(CHAIN, max_retries=5), publish)
    assert result.attempts == {"a": 1}
    assert result.outcomes["a"] is ends_as
    assert result.failed == {"a": str(error)}
    assert result.reasons["b"] == f"blocked by a ({ends_as})"


@pytest.mark.parametrize(
    ("end", "ends_as"),
    [
        (None, Outcome.PUBLISHED),
        (Undecided("perhaps"), Outcome.UNKNOWN),
        (Transient("busy", retry_after=0.0), Outcome.FAILED),
    ],
)
def test_the_last_attempt_alone_is_concluded(end: Exception | None, ends_as: Outcome) -> None:
    """R12, R17: and that is its end, whatever comes of it."""
    concluded: list[str] = []

    async def publish(_name: str) -> None:
        raise Transient(f"busy since {len(concluded)}", retry_after=0.0)

    async def conclude(_name: str, error: Exception) -> None:
        concluded.append(str(error))
        if end is not None:
            raise end

    async def main(_: VirtualLoop) -> RunResult[str]:
        scheduler = Scheduler.from_tasks([Task("a")], lanes={"publish": 1}, max_retries=2)
        return await scheduler.run(publish, conclude)

    result = run(main)
    assert concluded == ["busy since 0"]
    assert (result.outcomes, result.attempts) == ({"a": ends_as}, {"a": 3})


def test_an_attempt_that_hangs_is_ended_and_tried_again() -> None:
    async def publish(name: str) -> None:
        await asyncio.sleep(3600 if name == "b" else 7)

    result, took_s = outcome(
        seed_api({"a": [], "b": []}, task_timeout=10.0, max_retries=1, retry_base_delay=0.0),
        publish,
    )
    assert result.published == ["a"]
    assert result.failed == {"b": "not finished within 10 s"}
    assert (result.attempts["b"], took_s) == (2, 20)


def test_a_cancellation_from_within_is_a_failure() -> None:
    async def publish(name: str) -> None:
        raise asyncio.CancelledError

    result, _ = outcome(seed_api(CHAIN, max_retries=2), publish)
    assert result.failed == {"a": "its attempt was cancelled, and not by this run"}
    assert result.attempts == {"a": 3}


def test_an_error_without_text_is_named() -> None:
    async def publish(name: str) -> None:
        raise KeyError

    assert outcome(seed_api({"a": []}), publish)[0].failed == {"a": "KeyError"}


def test_an_outer_time_out_ends_everything() -> None:
    """R29"""
    ended: list[str] = []

    async def publish(name: str) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(name)

    async def limited() -> None:
        async with asyncio.timeout(5):
            await seed_api({"a": [], "b": [], "c": ["a"]}).run(publish)

    async def main(_loop: VirtualLoop) -> None:
        with pytest.raises(TimeoutError):
            await limited()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main)
    assert sorted(ended) == ["a", "b"]


def test_packages_come_and_go_while_it_runs() -> None:
    """R11"""
    scheduler = seed_api({"a": [], "b": ["a"], "c": ["b"], "old": ["a"], "dead": []})

    async def publish(name: str) -> None:
        if name == "dead":
            raise ValueError("dead")
        if name == "a":
            scheduler.add_package("new", deps=["a"])
            scheduler.remove_package("old")
            scheduler.remove_package("b")
            with pytest.raises(UnknownDependency):
                scheduler.add_package("x", deps=["ghost"])
        if name == "c":
            scheduler.add_package("late", deps=["dead"])

    result, _ = outcome(scheduler, publish)
    assert set(result.published) == {"a", "c", "new"}
    assert result.reasons["old"] == "removed"
    assert result.reasons["late"] == "blocked by dead (failed)"
    with pytest.raises(RuntimeError, match="the run has ended"):
        scheduler.add_package("later")


def test_removing_what_runs_ends_it() -> None:
    """R11"""
    scheduler = seed_api({"a": [], "b": ["a"]})

    async def publish(name: str) -> None:
        if name == "a":
            asyncio.get_running_loop().call_later(
                1, lambda: scheduler.remove_package("a", block_dependents=True)
            )
            await asyncio.sleep(60)

    result, took_s = outcome(scheduler, publish)
    assert result.outcomes == {"a": Outcome.REMOVED, "b": Outcome.BLOCKED}
    assert result.reasons["b"] == "blocked by a (removed)"
    assert took_s == 1


def test_pause_holds_back_starts_and_retries() -> None:
    """R10"""
    scheduler = seed_api({"a": [], "b": ["a"]}, max_retries=1, retry_base_delay=0.0)
    starts: list[float] = []

    async def publish(name: str) -> None:
        loop = asyncio.get_running_loop()
        starts.append(loop.time())
        if len(starts) == 1:
            scheduler.pause()
            loop.call_later(50, scheduler.resume)
            raise ConnectionError("reset")

    assert outcome(scheduler, publish)[0].ok
    assert starts == [0, 50, 50]


def test_cancel_lets_what_runs_come_to_its_end_and_skips_the_rest() -> None:
    """R10, R41"""
    edges: dict[str, list[str]] = {"a": [], "b": ["a"], "c": [], "d": [], "e": ["d"], "f": []}
    scheduler = seed_api(edges, concurrency=4, max_retries=3, retry_base_delay=60.0)

    async def publish(name: str) -> None:
        if name == "c":
            raise Transient("busy", retry_after=60.0)
        if name == "a":
            asyncio.get_running_loop().call_later(1, scheduler.cancel)
        await asyncio.sleep(60 if name == "a" else 5)
        if name == "d":
            raise Transient("reset")

    result, took_s = outcome(scheduler, publish)
    assert took_s == 60
    assert result.published == ["f", "a"]
    assert result.failed == {"d": "reset"}
    assert result.attempts == {"a": 1, "c": 1, "d": 1, "f": 1}
    assert result.reasons == {
        "b": "cancelled by a call to `cancel`",
        "c": "cancelled by a call to `cancel`; its last attempt: busy",
        "d": "reset",
        "e": "blocked by d (failed)",
    }


def test_cancel_without_grace_settles_everything_at_once() -> None:
    """R10"""
    scheduler = seed_api({"a": [], "b": ["a"], "c": []}, max_retries=3, retry_base_delay=60.0)

    async def publish(name: str) -> None:
        if name == "c":
            raise Transient("busy", retry_after=60.0)
        asyncio.get_running_loop().call_later(
            1, lambda: scheduler.cancel(grace_s=0.0, reason="cancelled by the test")
        )
        await asyncio.sleep(60)

    result, took_s = outcome(scheduler, publish)
    assert took_s == 1
    assert set(result.outcomes.values()) == {Outcome.CANCELLED}
    assert result.reasons == {
        "a": "cancelled by the test, in the middle of an attempt",
        "b": "cancelled by the test",
        "c": "cancelled by the test; its last attempt: busy",
    }
    assert result.errors.keys() == {"c"}


def test_of_two_cancels_the_stricter_holds_and_each_names_what_it_ended() -> None:
    """R41"""
    scheduler = seed_api({"a": [], "b": []}, concurrency=1)

    async def publish(name: str) -> None:
        loop = asyncio.get_running_loop()
        scheduler.cancel(reason="cancelled mildly")
        loop.call_later(1, lambda: scheduler.cancel(grace_s=0.0, reason="cancelled at once"))
        loop.call_later(2, scheduler.cancel)
        await asyncio.sleep(60)

    result, took_s = outcome(scheduler, publish)
    assert took_s == 1
    assert result.reasons == {
        "a": "cancelled at once, in the middle of an attempt",
        "b": "cancelled mildly",
    }


def test_an_attempt_that_answers_an_interruption_with_a_passing_error_is_cancelled() -> None:
    scheduler = seed_api({"a": []}, max_retries=3)

    async def publish(name: str) -> None:
        asyncio.get_running_loop().call_later(1, lambda: scheduler.cancel(grace_s=0.0))
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ConnectionError("closed") from None

    result, _ = outcome(scheduler, publish)
    assert result.outcomes == {"a": Outcome.CANCELLED}
    assert result.reasons["a"].endswith("in the middle of an attempt; its last attempt: closed")


def test_cancel_before_the_run() -> None:
    scheduler = seed_api(CHAIN)
    scheduler.cancel()
    assert outcome(scheduler, second)[0].skipped == ["a", "b", "c"]


def test_grace_is_for_the_lanes_named_and_its_results_count() -> None:
    """R28, R29"""
    scheduler = Scheduler.from_tasks(
        [
            Task("build", "build"),
            Task("quick", "upload"),
            Task("slow", "upload"),
            Task("next", "build", frozenset({"quick"})),
            Task("below", "build", frozenset({"broken"})),
            Task("broken", "upload"),
        ],
        lanes={"build": 2, "upload": None},
    )

    async def publish(name: str) -> None:
        if name == "build":
            asyncio.get_running_loop().call_later(
                1, lambda: scheduler.cancel(grace_s=6.0, lanes={"upload"})
            )
        await asyncio.sleep({"quick": 5, "broken": 5}.get(name, 60))
        if name == "broken":
            raise Rejected("no")

    result, took_s = outcome(scheduler, publish)
    assert took_s == 7
    assert result.outcomes == {
        "build": Outcome.CANCELLED,
        "quick": Outcome.PUBLISHED,
        "next": Outcome.CANCELLED,
        "broken": Outcome.FAILED,
        "below": Outcome.BLOCKED,
        "slow": Outcome.CANCELLED,
    }


def test_observers_see_everything_and_hurt_nothing(caplog: pytest.LogCaptureFixture) -> None:
    events: list[tuple[object, ...]] = []

    class Watch:
        def started(self, name: str, attempt: int) -> None:
            events.append(("started", name, attempt))
            raise ValueError("a broken progress bar")

        def retrying(self, name: str, attempt: int, delay_s: float, error: BaseException) -> None:
            events.append(("retrying", name, attempt, delay_s, str(error)))
            raise asyncio.CancelledError

        def settled(self, name: str, outcome: Outcome, reason: str) -> None:
            events.append(("settled", name, outcome, reason))

    async def publish(name: str) -> None:
        if name == "b":
            raise ConnectionError("reset")

    scheduler = seed_api(
        CHAIN, already_published={"a"}, max_retries=1, retry_base_delay=0.0, observer=Watch()
    )
    outcome(scheduler, publish)
    assert events == [
        ("settled", "a", Outcome.ALREADY_PUBLISHED, ""),
        ("started", "b", 1),
        ("retrying", "b", 1, 0.0, "reset"),
        ("started", "b", 2),
        ("settled", "b", Outcome.FAILED, "reset"),
        ("settled", "c", Outcome.BLOCKED, "blocked by b (failed)"),
    ]
    assert caplog.text.count("an observer of the run failed") == 3


def test_pause_comes_in_time_for_what_was_just_chosen() -> None:
    """R10"""
    scheduler = seed_api({"a": [], "b": []})
    starts: list[tuple[str, float]] = []

    async def publish(name: str) -> None:
        loop = asyncio.get_running_loop()
        starts.append((name, loop.time()))
        if len(starts) == 1:
            scheduler.pause()
            loop.call_later(9, scheduler.resume)

    assert outcome(scheduler, publish)[0].ok
    assert [at for _, at in starts] == [0, 9]


def test_what_fails_during_its_grace_has_failed() -> None:
    """R41"""
    scheduler = seed_api({"a": []}, max_retries=3)

    async def publish(name: str) -> None:
        scheduler.cancel(grace_s=10.0)
        raise ConnectionError("reset")

    result, took_s = outcome(scheduler, publish)
    assert result.failed == {"a": "reset"}
    assert took_s == 0


def test_what_somebody_else_completes_is_done_and_its_attempt_is_interrupted() -> None:
    """R41"""
    scheduler = seed_api({"a": [], "b": ["a"], "late": [], "bad": []}, concurrency=3)
    seen: list[tuple[str, float]] = []

    async def publish(name: str) -> None:
        loop = asyncio.get_running_loop()
        seen.append((name, loop.time()))
        if name == "a":
            for other in ("a", "late", "bad"):
                loop.call_later(1, scheduler.mark_done, other)
                loop.call_later(2, scheduler.mark_done, other)
        if name == "b":
            await asyncio.sleep(5)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if name == "a":
                raise
        if name == "bad":
            raise Undecided("who knows")

    result, took_s = outcome(scheduler, publish)
    assert sorted(result.already_published) == ["a", "bad", "late"]
    assert result.published == ["b"]
    assert result.ok
    assert result.errors == {}
    assert ("b", 1.0) in seen
    assert took_s == 66


def test_what_backs_off_and_is_completed_elsewhere_is_done() -> None:
    """R41"""
    scheduler = seed_api({"a": []}, max_retries=1)

    async def publish(name: str) -> None:
        asyncio.get_running_loop().call_later(1, scheduler.mark_done, "a")
        raise Transient("busy", retry_after=60.0)

    result, took_s = outcome(scheduler, publish)
    assert (result.already_published, result.errors, took_s) == (["a"], {}, 1)


def test_what_has_its_outcome_keeps_it_when_it_is_completed_elsewhere() -> None:
    """R41"""
    scheduler = seed_api({"a": [], "b": []}, concurrency=1)

    async def publish(name: str) -> None:
        if name == "a":
            raise ValueError("no")
        scheduler.mark_done("a")
        with pytest.raises(PlanError, match="ghost is not part of this run"):
            scheduler.mark_done("ghost")

    result, _ = outcome(scheduler, publish)
    assert result.failed == {"a": "no"}
    assert isinstance(result.errors["a"], ValueError)


def test_a_scheduler_runs_once() -> None:
    scheduler = seed_api({})
    outcome(scheduler, second)
    with pytest.raises(RuntimeError, match="runs once"):
        outcome(scheduler, second)


# The same engine, as the publish line uses it.


def lanes_of(*tasks: Task[str], **options: object) -> Scheduler[str]:
    lanes: dict[str, int | None] = {"build": 1, "upload": 1, "confirm": None}
    return Scheduler.from_tasks(tasks, lanes=lanes, **options)  # type: ignore[arg-type]


def test_a_slot_that_is_freed_goes_to_a_task_that_knows_nothing_of_the_one_before() -> None:
    """R3"""
    scheduler = lanes_of(Task("a", "build"), Task("b", "build"))
    holder = ContextVar("holder", default="nobody")
    seen: list[str] = []

    async def publish(name: str) -> None:
        seen.append(holder.get())
        holder.set(name)
        scheduler.free_slot(name)
        await asyncio.sleep(1)

    result, took_s = outcome(scheduler, publish)
    assert (result.published, took_s) == (["a", "b"], 1)
    assert seen == ["nobody", "nobody"]


def test_bugs_end_the_run_and_come_out_as_they_are() -> None:
    """R4"""

    async def publish(name: str) -> None:
        if name == "a":
            raise LookupError("a bug")
        await asyncio.sleep(60)

    async def main(_loop: VirtualLoop) -> None:
        with pytest.raises(LookupError, match="a bug"):
            await lanes_of(Task("a", "build"), Task("b", "upload")).run(publish)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main)


def test_of_two_bugs_the_first_comes_out() -> None:
    async def publish(name: str) -> None:
        raise LookupError(name)

    async def main(_loop: VirtualLoop) -> None:
        with pytest.raises(LookupError) as caught:
            await lanes_of(Task("a", "build"), Task("b", "upload")).run(publish)
        assert isinstance(caught.value.__cause__, ExceptionGroup)

    run(main)


def test_only_what_is_transient_is_retried() -> None:
    """R12"""
    starts: list[str] = []

    async def publish(name: str) -> None:
        starts.append(name)
        if name == "a":
            raise Transient("busy")
        raise Rejected("no")

    result, _ = outcome(
        lanes_of(Task("a", "build"), Task("b", "upload"), max_retries={"build": 2}), publish
    )
    assert sorted(starts) == ["a", "a", "a", "b"]
    assert result.failed == {"a": "busy", "b": "no"}


def test_each_lane_has_its_own_time_out() -> None:
    async def publish(_name: str) -> None:
        await asyncio.sleep(700)

    result, took_s = outcome(
        lanes_of(
            Task("a", "build"),
            Task("b", "upload"),
            Task("c", "confirm"),
            task_timeout={"build": 5.0, "upload": None},
        ),
        publish,
    )
    assert result.published == ["b"]
    assert result.failed == {"a": "not finished within 5 s", "c": "not finished within 600 s"}
    assert took_s == 700


def test_durations_of_the_last_run_set_the_order() -> None:
    """R9"""
    starts: list[str] = []

    async def publish(name: str) -> None:
        starts.append(name)

    tasks = (Task(name, "build", weight=9.0 if name == "new" else 1.0) for name in ("a", "b", "c"))
    durations = {"a": 2.0, "b": 7.0, "c": -1.0, "stranger": 1e9}
    outcome(lanes_of(*tasks, Task("new", "build"), durations=durations), publish)
    assert starts == ["b", "c", "new", "a"]


def test_what_was_begun_is_completed_after_cancel() -> None:
    """R41"""
    scheduler = lanes_of(
        Task("a", "upload"),
        Task("see a", "confirm", frozenset({"a"})),
        Task("b", "upload"),
        Task("see b", "confirm", frozenset({"b"})),
        completing={"confirm"},
    )

    async def publish(name: str) -> None:
        if name == "a":
            scheduler.cancel()
        await asyncio.sleep(1)

    result, took_s = outcome(scheduler, publish)
    assert (result.published, result.skipped, took_s) == (["a", "see a"], ["b", "see b"], 2)


def test_a_sequence_keeps_the_order_of_its_tasks_but_for_what_has_to_wait() -> None:
    """R42"""
    names: list[str] = []

    async def publish(name: str) -> None:
        names.append(name)
        await asyncio.sleep(1)

    tasks = (
        Task("z", "build", frozenset({"b"})),
        Task("y", "upload"),
        Task("b", "confirm"),
        Task("a", "build", weight=9.0),
    )
    _, took_s = outcome(lanes_of(*tasks, sequential=True), publish)
    assert (names, took_s) == (["y", "b", "z", "a"], 4)


@pytest.mark.parametrize("key", [Node("build", PackageId("npm", "b")), 7, ("x", 1)])
def test_tasks_may_be_named_by_any_values_that_have_an_order(key: Key) -> None:
    """Messages and results show them as text."""

    async def publish(name: Key) -> None:
        raise Rejected("no")

    async def main(_loop: VirtualLoop) -> RunResult[Key]:
        return await Scheduler.from_tasks([Task(key)], lanes={"publish": 1}).run(publish)

    assert run(main).failed == {key: "no"}
    with pytest.raises(PlanError, match=re.escape(f"{key} is there more than once")):
        Scheduler.from_tasks([Task(key), Task(key)], lanes={"publish": 1})


def test_a_task_that_is_there_twice_is_an_error() -> None:
    with pytest.raises(PlanError, match="a is there more than once"):
        lanes_of(Task("a", "build"), Task("a", "upload"))


def test_one_slot_means_one_order() -> None:
    """R13"""
    edges = {f"p{at}": [f"p{at - 3}"] if at >= 3 else [] for at in range(30)}
    orders = {tuple(outcome(seed_api(edges, concurrency=1), second)[0].published) for _ in range(3)}
    assert len(orders) == 1


def test_a_chain_of_five_thousand() -> None:
    """R6"""
    edges = {f"p{at:05}": [f"p{at - 1:05}"] if at else [] for at in range(5_000)}
    result, _ = outcome(seed_api(edges), second)
    assert result.published == sorted(edges)
