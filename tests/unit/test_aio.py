from __future__ import annotations

import asyncio
import contextlib
import gc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from releasekit.aio import (
    Group,
    GroupClosed,
    Resource,
    gather_all,
    in_time,
    uncancellable,
)
from simulation.virtual_loop import run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def messages(error: BaseException | None) -> set[str]:
    """Of all errors that are told with this one."""
    if error is None:
        return set()
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    own = {str(error)} if isinstance(error, Exception) and not inner else set()
    return own.union(*map(messages, (error.__cause__, error.__context__, *inner)))


async def slow(turns: int, result: str) -> str:
    for _ in range(turns):
        await asyncio.sleep(0)
    return result


def test_uncancellable_loses_neither_result_nor_cancellation() -> None:
    """R29"""
    seen: list[str] = []

    async def victim() -> None:
        seen.append(await uncancellable(slow(20, "closed")))
        await asyncio.sleep(0)
        seen.append("went on")

    async def main() -> None:
        task = asyncio.create_task(victim())
        for _ in range(3):
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelling() == 3

    asyncio.run(main())
    assert seen == ["closed"]


def test_uncancellable_ends_the_task_when_nothing_follows() -> None:
    async def main() -> None:
        task = asyncio.create_task(uncancellable(slow(5, "closed")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_time_out_around_uncancellable_still_times_out() -> None:
    """R29"""
    seen: list[str] = []

    async def limited() -> None:
        async with in_time(asyncio.timeout(0)):
            seen.append(await uncancellable(slow(5, "closed")))

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await limited()
        await asyncio.sleep(0)

    asyncio.run(main())
    assert seen == ["closed"]


def test_uncancellable_passes_errors_on() -> None:
    async def broken() -> None:
        await asyncio.sleep(0)
        raise OSError("disk full")

    async def main() -> None:
        with pytest.raises(OSError, match="disk full"):
            await uncancellable(broken())
        assert await uncancellable(slow(0, "fine")) == "fine"

    asyncio.run(main())


def test_all_of_waits_for_those_beside_the_one_that_failed() -> None:
    ended: list[str] = []

    async def noted(turns: int, text: str) -> str:
        ended.append(await slow(turns, text))
        return text

    async def broken() -> str:
        raise OSError("disk full")

    async def main() -> None:
        with pytest.raises(OSError, match="disk full"):
            await gather_all([noted(9, "slow"), broken(), noted(2, "quick")])
        assert ended == ["quick", "slow"]
        assert await gather_all([noted(3, "a"), noted(1, "b")]) == ["a", "b"]
        assert await gather_all([]) == []

    asyncio.run(main())


def test_all_of_takes_an_error_that_is_returned_for_an_answer() -> None:
    async def answer() -> Exception:
        return OSError("disk full")

    (error,) = asyncio.run(gather_all([answer()]))
    assert isinstance(error, OSError)


def test_all_of_cancels_what_it_waits_for() -> None:
    """R29"""

    async def main() -> None:
        inner = asyncio.create_task(slow(1000, "never"))
        outer = asyncio.create_task(gather_all([inner]))
        await asyncio.sleep(0)
        outer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await outer
        assert inner.cancelled()

    asyncio.run(main())


class Door:
    """A resource that notes in `seen` when it opens and closes, which takes it some turns."""

    def __init__(self, seen: list[str], name: str, *, turns: int = 1) -> None:
        self._seen = seen
        self._name = name
        self._turns = turns

    async def __aenter__(self) -> str:
        await slow(self._turns, "")
        self._seen.append(f"{self._name} opened")
        return self._name

    async def __aexit__(self, *_: object) -> None:
        await slow(self._turns, "")
        self._seen.append(f"{self._name} closed")


async def forever() -> None:
    await asyncio.Event().wait()


async def fail(message: str, turns: int = 0) -> None:
    await slow(turns, "")
    raise OSError(message)


async def noted(seen: list[str], name: str) -> None:
    """A task that takes its time to end."""
    try:
        await forever()
    finally:
        await slow(2, "")
        seen.append(f"{name} ended")


def test_children_close_one_by_one_in_reverse_order() -> None:
    """R46"""
    seen: list[str] = []

    async def main() -> None:
        async with Group() as group:
            assert await group.enter(Door(seen, "a")) == "a"
            _ = group.start(noted(seen, "task"))
            inner = await group.enter(Group())
            await inner.enter(Door(seen, "c"))
            await group.enter(Door(seen, "b"))
        assert inner.is_closed

    asyncio.run(main())
    assert seen == [
        "a opened",
        "c opened",
        "b opened",
        "b closed",
        "c closed",
        "task ended",
        "a closed",
    ]


def test_children_that_do_not_need_each_other_close_side_by_side() -> None:
    seen: list[str] = []

    async def main() -> None:
        async with Group(together=True) as group:
            await group.enter(Door(seen, "slow", turns=9))
            await group.enter(Door(seen, "quick"))
            await group.enter(Door(seen, "slower", turns=12))

    asyncio.run(main())
    assert seen[3:] == ["quick closed", "slow closed", "slower closed"]


def test_open_closing_and_closed_can_be_asked_and_waited_for() -> None:
    """R46"""
    stages: list[tuple[bool, bool, bool]] = []

    async def main() -> None:
        group = Group()

        def look() -> None:
            stages.append((group.is_open, group.is_closing, group.is_closed))

        async def watch() -> None:
            await group.wait_closing()
            look()
            await group.wait_closed()
            look()

        look()
        with pytest.raises(GroupClosed, match="not open yet"):
            _ = group.start(forever())
        async with group:
            look()
            watching = asyncio.create_task(watch())
            _ = group.start(noted([], ""))
            await asyncio.sleep(0)
        await watching
        with pytest.raises(GroupClosed, match="closing"):
            await group.enter(Door([], "late"))
        with pytest.raises(RuntimeError, match="opens once"):
            await group.__aenter__()

    asyncio.run(main())
    gc.collect()  # a warning about what was left unawaited would be an error
    no = False
    assert stages == [(no, no, no), (True, no, no), (no, True, no), (no, True, True)]


def test_what_was_just_started_comes_to_its_first_await() -> None:
    """So that its cleanup runs."""
    seen: list[str] = []

    async def main() -> None:
        async with Group() as group:
            _ = group.start(noted(seen, "task"))

    asyncio.run(main())
    assert seen == ["task ended"]


def test_a_failing_child_closes_the_group_interrupts_its_block_and_is_raised() -> None:
    """R46"""
    seen: list[str] = []

    async def main() -> None:
        async with Group() as group:
            await group.enter(Door(seen, "a"))
            _ = group.start(fail("broken"))
            try:
                await forever()
            finally:
                seen.append("interrupted")
                with pytest.raises(GroupClosed):
                    _ = group.start(forever())

    async def caller() -> None:
        with pytest.raises(OSError, match="broken") as caught:
            await main()
        assert caught.value.__cause__ is None
        assert (task := asyncio.current_task())
        assert not task.cancelling()

    asyncio.run(caller())
    assert seen[1:] == ["interrupted", "a closed"]


def test_an_interruption_that_was_put_off_does_not_strike_after_the_group() -> None:
    """R29"""

    async def failing() -> None:
        async with Group() as group:
            _ = group.start(fail("broken"))
            await uncancellable(slow(5, ""))

    async def main() -> str:
        with pytest.raises(OSError, match="broken"):
            await failing()
        return await slow(3, "went on")

    assert asyncio.run(main()) == "went on"


def test_of_several_failures_the_first_is_raised_because_of_the_others() -> None:
    """R46: none is lost, nor is what had caused the first."""

    async def caused() -> None:
        raise OSError("first") from KeyError("why")

    async def also() -> None:
        try:
            await forever()
        finally:
            raise ValueError("second")

    async def main() -> None:
        async with Group() as group:
            _ = group.start(also())
            inner = await group.enter(Group())
            _ = inner.start(also())
            _ = inner.start(caused())
            await forever()

    with pytest.raises(OSError, match="first") as caught:
        asyncio.run(main())
    assert messages(caught.value) == {"first", "'why'", "second"}
    assert isinstance(rest := caught.value.__cause__, ExceptionGroup)
    assert [str(error) for error in rest.exceptions] == ["second"]


def test_the_error_of_the_block_comes_before_what_fails_in_closing() -> None:
    class Broken(Door):
        async def __aexit__(self, *_: object) -> None:
            raise OSError("not closed")

    async def main(door: Door) -> None:
        async with Group() as group:
            await group.enter(door)
            raise KeyError("block")

    with pytest.raises(KeyError) as caught:
        asyncio.run(main(Broken([], "")))
    assert messages(caught.value) == {"'block'", "not closed"}
    with pytest.raises(KeyError) as caught:
        asyncio.run(main(Door([], "")))
    assert caught.value.__cause__ is None


def test_a_cancelled_child_ends_alone() -> None:
    async def main() -> None:
        async with Group() as group:
            task = group.start(forever())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait((task,))
            await asyncio.sleep(0)
            assert group.is_open

    asyncio.run(main())


def test_all_who_close_wait_for_the_same_end_however_often_they_are_cancelled() -> None:
    """R29 R46"""
    seen: list[str] = []

    async def main() -> None:
        group = Group()

        async def close() -> None:
            await group.aclose()
            seen.append("back")
            await asyncio.sleep(0)
            seen.append("went on")

        async with group:
            await group.enter(Door(seen, "a", turns=9))
            closing = [asyncio.create_task(close()) for _ in range(3)]
            for _ in range(3):
                await asyncio.sleep(0)
                closing[1].cancel()
            await asyncio.wait(closing)
            assert [task.cancelled() for task in closing] == [False, True, False]
        await group.aclose()

    asyncio.run(main())
    assert seen == ["a opened", "a closed", *["back"] * 3, *["went on"] * 2]


def test_leaving_the_block_is_not_cut_short_either() -> None:
    """R29 R46: cancelled before and while it closes, and told so then."""
    seen: list[str] = []

    async def main() -> None:
        async with Group() as group:
            await group.enter(Door(seen, "a", turns=9))
            await group.enter(Door(seen, "b", turns=9))
            await forever()

    async def cancelling() -> None:
        task = asyncio.create_task(main())
        await slow(25, "")
        for _ in range(3):
            task.cancel()
            await slow(3, "")
        await asyncio.wait((task,))
        assert task.cancelled()
        assert seen == ["a opened", "b opened", "b closed", "a closed"]

    asyncio.run(cancelling())


def test_all_who_close_are_told_what_failed() -> None:
    """R46"""

    async def failing(group: Group) -> None:
        async with group:
            _ = group.start(fail("broken"))
            await group.aclose()

    async def main() -> None:
        group = Group()
        for closing in (failing(group), group.aclose(), group.aclose()):
            with pytest.raises(OSError, match="broken"):
                await closing
        await slow(3, "")

    asyncio.run(main())


def test_a_time_limit_around_a_group_closes_it_and_is_told() -> None:
    """R29 R46"""
    seen: list[str] = []

    async def limited() -> None:
        async with asyncio.timeout(0), Group() as group:
            await group.enter(Door(seen, "a"))
            await forever()

    async def main() -> None:
        group = Group()
        with pytest.raises(TimeoutError):
            await limited()
        async with group:
            await group.enter(Door(seen, "b"))

    asyncio.run(main())
    assert seen[-2:] == ["b opened", "b closed"]
    assert seen[:-2] in ([], ["a opened", "a closed"])


def test_a_child_may_begin_to_close_its_group_and_cannot_wait_for_it() -> None:
    async def child(outer: Group) -> None:
        with pytest.raises(RuntimeError, match="its own end"):
            await outer.aclose()
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(waits(outer))
        assert waiting.done()
        outer.close()
        await forever()

    async def waits(outer: Group) -> None:
        with pytest.raises(RuntimeError, match="its own end"):
            await outer.aclose()

    async def main() -> None:
        async with Group() as outer:
            inner = await outer.enter(Group())
            task = inner.start(child(outer))
            await outer.wait_closed()
        assert task.cancelled()

    asyncio.run(main())


def test_what_cannot_be_opened_is_for_the_caller_and_the_group_stays_open() -> None:
    class Jammed(Door):
        async def __aenter__(self) -> str:
            raise OSError("jammed")

    async def main() -> None:
        async with Group() as group:
            with pytest.raises(OSError, match="jammed"):
                await group.enter(Jammed([], ""))
            assert group.is_open

    asyncio.run(main())


def test_a_group_that_closes_cancels_what_is_being_opened() -> None:
    """R46"""

    class Slow(Door):
        async def __aenter__(self) -> str:
            await forever()
            raise AssertionError

    async def main() -> None:
        async with Group() as group:
            opening = asyncio.create_task(group.enter(Slow([], "")))
            await asyncio.sleep(0)
        with pytest.raises(GroupClosed, match="closed before"):
            await opening

    asyncio.run(main())


@pytest.mark.parametrize("turns", range(8))
def test_what_is_opened_for_a_caller_that_is_cancelled_is_closed_again(turns: int) -> None:
    """R29 R46"""
    seen: list[str] = []

    async def main() -> None:
        async with Group() as group:
            opening = asyncio.create_task(group.enter(Door(seen, "a", turns=3)))
            await slow(turns, "")
            opening.cancel()
            await asyncio.wait((opening,))
            if opening.cancelled():
                assert seen in ([], ["a opened", "a closed"])
            else:
                assert opening.result() == "a"

    asyncio.run(main())


def test_what_opens_although_it_is_cancelled_is_closed() -> None:
    """R46"""
    seen: list[str] = []

    class Stubborn(Door):
        async def __aenter__(self) -> str:
            with contextlib.suppress(asyncio.CancelledError):
                await forever()
            return await super().__aenter__()

    async def main() -> None:
        async with Group() as group:
            opening = asyncio.create_task(group.enter(Stubborn(seen, "a")))
            await slow(3, "")
        await asyncio.wait((opening,))

    asyncio.run(main())
    assert seen == ["a opened", "a closed"]


def test_an_opening_that_is_given_up_is_cancelled_once() -> None:
    """R46: by its caller and by the group; its own cleanup comes to its end."""
    seen: list[str] = []

    class Slow(Door):
        async def __aenter__(self) -> str:
            try:
                return await slow(9, "opened")
            finally:
                await slow(9, "")
                seen.append("cleaned up")

    async def main() -> None:
        async with Group() as group:
            opening = asyncio.create_task(group.enter(Slow(seen, "")))
            await slow(3, "")
            opening.cancel()
            await slow(3, "")
        assert seen == ["cleaned up"]
        await asyncio.wait((opening,))
        assert opening.cancelled()

    asyncio.run(main())


def test_what_fails_to_open_for_a_caller_that_is_cancelled_is_told_before_that() -> None:
    seen: list[str] = []

    class Jammed(Door):
        async def __aenter__(self) -> str:
            try:
                await forever()
            finally:
                raise OSError("jammed")

    async def told(group: Group) -> None:
        with pytest.raises(OSError, match="jammed"):
            await group.enter(Jammed([], ""))
        seen.append("told")
        await forever()

    async def main() -> None:
        async with Group() as group:
            opening = asyncio.create_task(told(group))
            await slow(3, "")
            opening.cancel()
            await asyncio.wait((opening,))
            assert opening.cancelled()

    asyncio.run(main())
    assert seen == ["told"]


def test_ordinary_context_managers_are_entered_too() -> None:
    class File:
        closed = False

        def close(self) -> None:
            self.closed = True

    async def main() -> None:
        async with Group() as group:
            file = await group.enter(contextlib.closing(File()))
            assert not file.closed
        assert file.closed

    asyncio.run(main())


def test_a_resource_is_open_for_as_long_as_its_group() -> None:
    seen: list[str] = []

    async def main() -> None:
        async with Group() as group:
            inner, alone = await group.enter(Resource()), Resource()
            await inner.group.enter(Door(seen, "a"))
            await inner.aclose()
            assert seen == ["a opened", "a closed"]
            assert group.is_open
            async with alone:
                assert alone.group.is_open
            assert alone.group.is_closed

    asyncio.run(main())


@dataclass(frozen=True)
class Child:
    """What a child of a group does. A task without `life` goes on until it is asked to end."""

    kind: Literal["task", "resource", "group"]
    life: int | None = None
    opening: int = 0
    closing: int = 0
    fails: Literal["", "opening", "living", "closing"] = ""
    stubborn: bool = False  # swallows its cancellation, and comes to a result
    together: bool = False
    children: tuple[Child, ...] = ()


@dataclass(frozen=True)
class Actor:
    """Closes the root after some turns, or has it closed; is cancelled after some more."""

    turns: int
    how: Literal["close", "aclose", "child"]
    cancelled: tuple[int, ...]


@dataclass(frozen=True)
class Story:
    children: tuple[Child, ...]
    actors: tuple[Actor, ...]
    block: Literal["waits", "ends", "closes", "fails"]
    cancelled: tuple[int, ...]  # the block, after so many turns


class Witness:
    """What happened, and every promise that can be broken on the way."""

    def __init__(self) -> None:
        self.open: dict[Group, list[str]] = {}
        self.order: dict[str, int] = {}
        self.raised: set[str] = set()
        self.told: set[str] = set()
        self.results: dict[str, asyncio.Task[str]] = {}
        self.returned: set[str] = set()
        self.wrong: list[str] = []
        self.began = asyncio.Event()

    def name(self) -> str:
        """Of the next child; children of a group open in the order of their names."""
        name = f"child {len(self.order)}"
        self.order[name] = len(self.order)
        return name

    def error(self, name: str) -> OSError:
        self.raised.add(name)
        return OSError(name)

    def opened(self, group: Group, name: str) -> None:
        self.open.setdefault(group, []).append(name)

    def closes(self, group: Group, name: str) -> None:
        """It is asked to: all that was opened after it has come to its end."""
        after = [other for other in self.open[group] if self.order[other] > self.order[name]]
        if after and not group._together:
            self.wrong.append(f"{name} closes before {after}")

    def closed(self, group: Group, name: str) -> None:
        self.open[group].remove(name)  # ValueError: twice, or never open

    async def to_its_end(self, name: str, turns: int) -> None:
        try:
            await slow(turns, "")
        except asyncio.CancelledError:
            self.wrong.append(f"{name} was cut short")
            raise


async def task(child: Child, group: Group, name: str, witness: Witness) -> str:
    witness.opened(group, name)
    try:
        if child.life is None:
            await forever()
        await slow(child.life or 0, "")
        if child.fails == "living":
            raise witness.error(name)
    except asyncio.CancelledError:
        witness.closes(group, name)
        await witness.to_its_end(name, child.closing)
        if child.fails == "closing":
            raise witness.error(name) from None
        if not child.stubborn:
            raise
    finally:
        witness.closed(group, name)
    witness.returned.add(name)
    return name


@contextlib.asynccontextmanager
async def resource(child: Child, group: Group, name: str, witness: Witness) -> AsyncIterator[None]:
    try:
        await slow(child.opening, "")
    except asyncio.CancelledError:
        await witness.to_its_end(name, child.closing)
        if not child.stubborn:
            raise
    if child.fails == "opening":
        raise OSError(name)
    witness.opened(group, name)
    try:
        yield
    finally:
        witness.closes(group, name)
        await witness.to_its_end(name, child.closing)
        witness.closed(group, name)
        if child.fails == "closing":
            raise witness.error(name)


async def populate(group: Group, children: tuple[Child, ...], witness: Witness) -> None:
    for child in children:
        name = witness.name()
        try:
            if child.kind == "task":
                witness.results[name] = group.start(task(child, group, name, witness))
            elif child.kind == "resource":
                await group.enter(resource(child, group, name, witness))
            else:
                inner = await group.enter(Group(together=child.together))
                await populate(inner, child.children, witness)
        except GroupClosed:
            if not group.is_closing:
                witness.wrong.append(f"{name} is refused by a group that is open")
            return
        except OSError as error:
            if str(error) != name or child.fails != "opening":
                raise


async def owner(story: Story, root: Group, witness: Witness) -> None:
    try:
        await block(story, root, witness)
    finally:
        if not story.cancelled:
            await witness.to_its_end("what comes after the group", 3)


async def block(story: Story, root: Group, witness: Witness) -> None:
    async with root:
        witness.began.set()
        await populate(root, story.children, witness)
        match story.block:
            case "waits" if story.actors:
                await root.wait_closing()
            case "closes":
                await root.aclose()
            case "fails":
                raise witness.error("block")
            case _:
                pass


async def act(actor: Actor, root: Group, witness: Witness) -> None:
    await slow(actor.turns, "")
    if actor.how == "aclose":
        try:
            await root.aclose()
        finally:
            if not root.is_closed:
                witness.wrong.append("the end was not waited for")
    elif actor.how == "close":
        root.close()
    elif root.is_open:
        _ = root.start(from_inside(root))


async def from_inside(root: Group) -> None:
    root.close()
    await forever()


async def play(story: Story, witness: Witness) -> None:
    root = Group()
    main = asyncio.create_task(owner(story, root, witness))
    await witness.began.wait()
    actors = [asyncio.create_task(act(each, root, witness)) for each in story.actors]
    victims = [(main, story.cancelled)]
    victims += zip(actors, (actor.cancelled for actor in story.actors), strict=True)
    for turn in range(30):
        for victim, turns in victims:
            if turn in turns:
                victim.cancel()
        await asyncio.sleep(0)
    root.close()
    await asyncio.wait((main, *actors))
    assert root.is_closed
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert not any(witness.open.values())
    assert not witness.wrong
    for name in witness.returned:
        assert witness.results[name].result() == name
    error = None if main.cancelled() else main.exception()
    assert witness.raised == messages(error)
    for actor in actors:
        told = set() if actor.cancelled() else messages(actor.exception())
        assert told <= witness.raised


TURNS = st.integers(0, 6)
CHILDREN = st.recursive(
    st.builds(
        Child,
        kind=st.sampled_from(["task", "resource"]),
        life=st.none() | TURNS,
        opening=TURNS,
        closing=TURNS,
        fails=st.sampled_from(["", "", "", "opening", "living", "closing"]),
        stubborn=st.booleans(),
    ),
    lambda inner: st.builds(
        Child,
        kind=st.just("group"),
        together=st.booleans(),
        children=st.lists(inner, max_size=4).map(tuple),
    ),
    max_leaves=6,
)
CANCELLED = st.sets(st.integers(0, 20), max_size=3).map(lambda turns: tuple(sorted(turns)))
STORIES = st.builds(
    Story,
    children=st.lists(CHILDREN, max_size=5).map(tuple),
    actors=st.lists(
        st.builds(
            Actor,
            turns=st.integers(0, 12),
            how=st.sampled_from(["close", "aclose", "child"]),
            cancelled=CANCELLED,
        ),
        max_size=3,
    ).map(tuple),
    block=st.sampled_from(["waits", "ends", "closes", "fails"]),
    cancelled=CANCELLED,
)


@settings(max_examples=60)
@given(STORIES, st.none() | st.integers(0, 1000))
def test_in_every_order_of_events_all_is_closed_once_in_order_and_nothing_is_lost(
    story: Story, seed: int | None
) -> None:
    """R29 R46: cancelled while it closes, closed while it opens, from inside and from outside, by
    failures and beside them, with children that go on; nested.
    """
    run(lambda _: play(story, Witness()), seed)
