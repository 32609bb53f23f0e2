from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from fakes import package_id
from releasekit.http.traffic import record_wait
from releasekit.model import Event, Node, Phase
from releasekit.release.events import Events, Waits
from releasekit.scheduler import Task

if TYPE_CHECKING:
    from releasekit.state.journal import Journal


def node(phase: Phase, name: str) -> Node:
    return Node(phase, package_id(name))


def task(name: Node, *after: Node) -> Task[Node]:
    return Task(name=name, lane="upload", after=frozenset(after))


BUILD, UPLOAD = node("build", "app"), node("upload", "app")
CORE, BASE = node("confirm", "core"), node("confirm", "base")
WAITS = (task(BUILD), task(CORE), task(BASE), task(UPLOAD, BUILD, CORE, BASE))


def test_what_begins_at_once_has_waited_for_nothing() -> None:
    waits = Waits(WAITS)
    assert waits.why(BUILD, 0.0) == ""
    waits.settled(CORE, 1.0)
    waits.settled(BASE, 1.0)
    waits.settled(BUILD, 2.0)
    assert waits.why(UPLOAD, 2.01) == ""


def test_the_dependency_that_came_last_is_named_and_then_the_slot() -> None:
    waits = Waits(WAITS)
    waits.settled(BUILD, 2.0)
    waits.settled(BASE, 5.0)
    waits.settled(CORE, 9.0)
    assert waits.why(UPLOAD, 9.0) == "it waited 7.0 s for fake:core"
    assert waits.why(UPLOAD, 10.5) == "it waited 7.0 s for fake:core, then 1.5 s for a slot"
    assert waits.why(node("build", "lone"), 3.0) == "it waited 3.0 s for a slot"


def test_its_own_build_is_no_wait_even_where_that_was_one_of_several() -> None:
    together = node("build", "first")
    waits = Waits([task(together), task(UPLOAD, together)])
    waits.settled(together, 8.0)
    assert waits.why(UPLOAD, 8.0) == ""


def test_after_a_pause_only_the_slot_is_left_to_wait_for() -> None:
    waits = Waits(WAITS)
    waits.paused(UPLOAD, 30.0)
    assert waits.why(UPLOAD, 30.0) == ""
    assert waits.why(UPLOAD, 32.0) == "it waited 2.0 s for a slot"


def test_nobody_is_told_of_pauses_after_the_attempt() -> None:
    """Its package may have come to its end, and would be shown as waiting from then on."""

    async def main() -> list[str]:
        seen: list[Event] = []
        events, over = Events(cast("Journal", None), seen.append), asyncio.Event()

        async def look() -> None:
            await over.wait()
            with record_wait("rate-limit"):
                pass

        with events.attempt(UPLOAD):
            with record_wait("rate-limit"):
                pass
            looking = asyncio.ensure_future(look())
        over.set()
        await looking
        return [event.detail for event in seen]

    assert asyncio.run(main()) == ["a rate limit", ""]


def test_an_upload_that_waited_for_all_builds_names_the_one_that_came_last() -> None:
    slow, hold = node("build", "slow"), node("hold", "app")
    waits = Waits((task(BUILD), task(slow), task(hold, BUILD, slow), task(UPLOAD, BUILD, hold)))
    waits.settled(BUILD, 2.0)
    waits.settled(slow, 9.0)
    waits.settled(hold, 9.0)
    assert waits.why(UPLOAD, 9.0) == "it waited 7.0 s for fake:slow"


def test_what_was_built_last_itself_has_waited_for_no_other_build() -> None:
    other, hold = node("build", "other"), node("hold", "other")
    waits = Waits((task(BUILD), task(other), task(hold, BUILD, other), task(UPLOAD, BUILD, hold)))
    waits.settled(other, 2.0)
    waits.settled(BUILD, 9.0)
    waits.settled(hold, 9.0)
    assert waits.why(UPLOAD, 9.0) == ""
