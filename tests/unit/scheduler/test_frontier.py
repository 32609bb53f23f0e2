"""What single calls do; that they are right together is what tests/simulation is about."""

from __future__ import annotations

import pytest

from releasekit.errors import PlanError, UnknownDependency
from releasekit.model import Outcome
from releasekit.scheduler.frontier import Frontier, State, Task

LANES: dict[str, int | None] = {"publish": 2}


def frontier(
    *tasks: Task[str], lanes: dict[str, int | None] | None = None, done: tuple[str, ...] = ()
) -> Frontier[str]:
    return Frontier(tasks, lanes=lanes or LANES, done=done)


def task(name: str, *after: str, weight: float = 1.0, lane: str = "publish") -> Task[str]:
    return Task(name, lane, frozenset(after), weight)


def test_the_longest_remaining_path_goes_first() -> None:
    """R9"""
    front = frontier(task("a"), task("b"), task("z"), task("y", "z"))
    assert front.take() == ["z", "a"]


def test_ties_go_by_name() -> None:
    """R9, R13"""
    assert frontier(task("b"), task("a"), task("c")).take() == ["a", "b"]


def test_lanes_have_their_own_limits() -> None:
    """R2"""
    lanes: dict[str, int | None] = {"build": 1, "confirm": None}
    front = frontier(
        *(task(f"b{at}", lane="build") for at in range(3)),
        *(task(f"c{at}", lane="confirm") for at in range(3)),
        lanes=lanes,
    )
    assert front.take() == ["b0", "c0", "c1", "c2"]
    assert front.lane_of("c0") == "confirm"


def test_a_failure_blocks_exactly_its_transitive_dependents() -> None:
    """R6"""
    front = frontier(task("a"), task("b", "a"), task("c", "b"), task("other"))
    front.take()
    assert front.settle("a", Outcome.FAILED) == ["a", "b", "c"]
    assert front.causes() == {"b": "a", "c": "a"}
    assert front.blockers("c") == ["b"]
    assert not front.finished
    assert front.settle("other", Outcome.PUBLISHED) == ["other"]
    assert front.finished


def test_of_several_causes_the_first_by_name_is_told() -> None:
    """R5"""
    front = frontier(task("x"), task("y"), task("low", "y"), task("top", "low", "x"))
    front.take()
    front.settle("y", Outcome.FAILED)
    front.settle("x", Outcome.FAILED)
    assert front.causes() == {"low": "y", "top": "x"}


def test_a_chain_of_thousands_is_blocked_without_recursion() -> None:
    """R6"""
    front = frontier(*(task(f"n{i}", *([f"n{i - 1}"] if i else [])) for i in range(5_000)))
    front.take()
    assert len(front.settle("n0", Outcome.FAILED)) == 5_000


def test_adding_below_a_waiting_package_raises_its_priority() -> None:
    """R9, R11"""
    front = frontier(task("a"), task("b"), task("c"), lanes={"publish": 1})
    front.add(task("after-c", "c"))
    assert front.take() == ["c"]


def test_removing_lowers_it_again() -> None:
    """R9, R11"""
    front = frontier(task("a"), task("c"), task("after-c", "c"), lanes={"publish": 1})
    front.remove("after-c")
    assert front.take() == ["a"]


def test_what_is_done_is_not_waited_for() -> None:
    front = frontier(task("a"), task("b", "a"), done=("a",))
    assert front.outcomes == {"a": Outcome.ALREADY_PUBLISHED}
    assert front.take() == ["b"]


@pytest.mark.parametrize(
    ("added", "error", "text"),
    [
        (task("a"), PlanError, "a is already part of this run"),
        (task("n", "ghost"), UnknownDependency, "n depends on ghost"),
        (task("n", lane="side"), ValueError, "lane 'side'"),
    ],
)
def test_what_cannot_be_added(added: Task[str], error: type[Exception], text: str) -> None:
    """R11"""
    with pytest.raises(error, match=text):
        frontier(task("a")).add(added)


def test_only_what_is_part_of_the_run_can_be_removed() -> None:
    with pytest.raises(PlanError, match="ghost is not part of this run"):
        frontier(task("a")).remove("ghost")


def test_only_what_waits_can_be_woken() -> None:
    with pytest.raises(ValueError, match="a is READY, not WAITING"):
        frontier(task("a")).wake("a")


def test_a_limit_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="lane 'publish' is 0"):
        frontier(lanes={"publish": 0})


def test_states_tell_the_life_of_a_task() -> None:
    front = frontier(task("a"), task("b", "a"))
    assert "a" in front
    assert (front.state("a"), front.state("b")) == (State.READY, State.PENDING)
    front.take()
    assert front.state("a") is State.RUNNING
    assert front.defer("a") == []
    assert front.state("a") is State.WAITING
    front.wake("a")
    front.take()
    front.settle("a", Outcome.PUBLISHED)
    assert (front.state("a"), front.state("b")) == (State.SETTLED, State.READY)


def test_nothing_happens_to_what_has_ended() -> None:
    front = frontier(task("a"))
    front.take()
    front.settle("a", Outcome.PUBLISHED)
    assert front.remove("a") == []
    assert front.cancel() == []
    assert front.outcomes == {"a": Outcome.PUBLISHED}


def test_pause_holds_everything_back_and_what_was_taken_can_be_given_back() -> None:
    """R10"""
    front = frontier(task("a"), task("b"))
    assert front.take() == ["a", "b"]
    front.paused = True
    assert not front.may_run("a")
    assert front.give_back("a") == []
    assert front.take() == []
    front.paused = False
    assert front.take() == ["a"]


def test_what_was_taken_and_then_removed_leaves_when_it_is_given_back() -> None:
    """R11"""
    front = frontier(task("a"), task("b", "a"), task("c"))
    front.take()
    assert front.remove("a") == []
    assert front.give_back("a") == ["a"]
    assert front.remove("c", block_dependents=True) == []
    assert front.settle("c", Outcome.FAILED) == ["c"]
    assert front.outcomes == {"a": Outcome.REMOVED, "c": Outcome.REMOVED}
    assert front.add(task("d", "c")) == ["d"]
    assert front.outcomes["d"] is Outcome.BLOCKED


def test_a_package_blocked_from_two_sides_is_blocked_once() -> None:
    """R4, R9"""
    front = frontier(task("a"), task("x"), task("b", "a"), task("c", "a", "x"), task("d", "b", "c"))
    front.take()
    assert front.settle("a", Outcome.FAILED) == ["a", "b", "c", "d"]


def test_blocking_lowers_the_priority_of_what_is_ready() -> None:
    """R9"""
    front = frontier(
        task("a"), task("b"), task("top", "a", "b"), task("c", weight=1.5), lanes={"publish": 1}
    )
    assert front.take() == ["a"]
    front.settle("a", Outcome.FAILED)
    assert front.take() == ["c"]
    front.settle("c", Outcome.PUBLISHED)
    assert front.take() == ["b"]


def test_cancel_settles_what_waits_for_a_running_task_after_it() -> None:
    """R5"""
    front = frontier(task("a"), task("b", "a"))
    front.take()
    assert front.cancel() == []
    assert front.settle("a", Outcome.PUBLISHED) == ["a", "b"]
    assert front.outcomes["b"] is Outcome.CANCELLED


def test_only_what_completes_something_starts_after_cancel() -> None:
    """R41"""
    lanes: dict[str, int | None] = {"upload": 2, "confirm": None}
    front = Frontier(
        [
            task("up a", lane="upload"),
            task("up b", lane="upload"),
            task("up c", lane="upload"),
            task("see a", "up a", lane="confirm"),
            task("see b", "up b", lane="confirm"),
            task("see c", "up c", lane="confirm"),
        ],
        lanes=lanes,
        completing={"confirm"},
    )
    assert front.take() == ["up a", "up b"]
    assert front.cancel() == ["up c", "see c"]
    front.settle("up a", Outcome.PUBLISHED)
    assert front.take() == ["see a"]
    assert front.settle("up b", Outcome.FAILED) == ["up b", "see b"]
    assert front.outcomes["see b"] is Outcome.BLOCKED
    assert front.may_run("see a")
    front.cancel(())
    assert not front.may_run("see a")
    assert front.give_back("see a") == ["see a"]
    assert front.outcomes["see a"] is Outcome.CANCELLED


def test_a_failure_after_cancel_is_one() -> None:
    """R41"""
    front = frontier(task("a"), task("b", "a"))
    front.take()
    front.cancel()
    assert front.defer("a") == ["a", "b"]
    assert front.outcomes == {"a": Outcome.FAILED, "b": Outcome.BLOCKED}


def test_cancel_ends_a_pause() -> None:
    """R10"""
    front = frontier(task("a"))
    front.paused = True
    front.cancel()
    assert not front.paused


def test_what_somebody_else_has_done_is_waited_for_no_longer() -> None:
    """R41"""
    front = frontier(task("a"), task("b", "a"), task("c", "b"))
    assert front.mark_done("b") == ["b"]
    assert front.take() == ["a", "c"]
    assert front.mark_done("b") == []
    assert front.outcomes == {"b": Outcome.ALREADY_PUBLISHED}


@pytest.mark.parametrize("end", ["settle", "defer", "give_back"])
def test_what_is_marked_as_done_holds_its_slot_until_its_attempt_ends(end: str) -> None:
    """R2, R41"""
    front = frontier(task("a"), task("b", "a"), lanes={"publish": 1})
    front.take()
    assert front.mark_done("a") == ["a"]
    assert front.take() == []
    ends = {
        "settle": lambda: front.settle("a", Outcome.UNKNOWN),
        "defer": lambda: front.defer("a"),
        "give_back": lambda: front.give_back("a"),
    }
    assert ends[end]() == []
    assert front.outcomes == {"a": Outcome.ALREADY_PUBLISHED}
    assert front.take() == ["b"]


def test_a_task_is_settled_once() -> None:
    """R4, R41"""
    front = frontier(task("a"), task("b"), lanes={"publish": 1})
    front.take()
    assert front.settle("a", Outcome.FAILED) == ["a"]
    assert front.settle("a", Outcome.PUBLISHED) == []
    assert front.mark_done("a") == []
    assert front.outcomes == {"a": Outcome.FAILED}
    with pytest.raises(ValueError, match="b is READY, not RUNNING"):
        front.settle("b", Outcome.PUBLISHED)


def test_only_what_is_part_of_the_run_can_be_done() -> None:
    with pytest.raises(PlanError, match="ghost is not part of this run"):
        frontier(task("a")).mark_done("ghost")


def test_a_sequence_has_one_slot_for_all_lanes_and_keeps_the_order_given() -> None:
    """R42"""
    lanes: dict[str, int | None] = {"build": 1, "upload": 1, "confirm": None}
    tasks = [
        task("x", lane="build"),
        task("y", "x", lane="upload"),
        task("z", "y", lane="confirm"),
        task("a", lane="build", weight=9.0),
        task("b", "a", lane="upload", weight=9.0),
    ]
    front = Frontier(tasks, lanes=lanes, sequential=True)
    for name in "xyzab":
        assert front.take() == [name]
        assert front.take() == []
        front.settle(name, Outcome.PUBLISHED)
    assert front.finished


def test_in_a_sequence_a_task_that_backs_off_keeps_its_turn() -> None:
    """R42"""
    front = Frontier([task("a"), task("b"), task("c")], lanes=LANES, sequential=True)
    front.take()
    front.defer("a")
    assert front.take() == []
    front.wake("a")
    assert front.take() == ["a"]
    front.defer("a")
    front.remove("a")
    assert front.take() == ["b"]
    front.add(task("0"))
    front.settle("b", Outcome.PUBLISHED)
    assert front.take() == ["c"]
