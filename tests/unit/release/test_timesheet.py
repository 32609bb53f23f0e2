"""Each second of each package in exactly one place: by hand, and against a count of milliseconds
over random runs of the real scheduler.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pytest

from fakes import package_id
from releasekit.errors import CircuitOpen, Denied, Transient
from releasekit.fields import replace
from releasekit.http.traffic import Pause, record_wait
from releasekit.model import Node, PackageId
from releasekit.release.events import Events
from releasekit.release.timesheet import Moment, Timesheet, timesheet
from releasekit.scheduler import Scheduler, Task
from simulation.virtual_loop import VirtualLoop, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from releasekit.model import Phase
    from releasekit.spent import Wait
    from releasekit.state.journal import Journal

    Kind = Literal["started", "paused", "settled"]

LANES: dict[str, int | None] = {"build": 2, "upload": 2, "confirm": None, "follow-up": 1}


def node(phase: Phase, name: str) -> Node:
    return Node(phase, package_id(name))


def tasks_of(
    needs: Mapping[str, Sequence[str]], *, batch: Sequence[str] = ()
) -> tuple[list[Task[Node]], dict[Node, tuple[PackageId, ...]]]:
    """Build, upload and confirm each; those of `batch` are built together."""
    batches: dict[Node, tuple[PackageId, ...]] = {}
    if batch:
        batches[node("build", batch[0])] = tuple(map(package_id, batch))
    for name in needs:
        if name not in batch:
            batches[node("build", name)] = (package_id(name),)
    built_by = {package: build for build, ids in batches.items() for package in ids}
    tasks = [Task(build, "build") for build in batches]
    for name, on in needs.items():
        gates = {node("confirm", other) for other in on} | {built_by[package_id(name)]}
        tasks.append(Task(node("upload", name), "upload", frozenset(gates)))
        after = frozenset({node("upload", name)})
        tasks.append(Task(node("confirm", name), "confirm", after))
    return tasks, batches


def told(text: str) -> list[Moment]:
    """Lines of `2.5 started upload a`, `3 paused upload a until 7 rate-limit`."""
    moments = []
    for line in filter(None, map(str.strip, text.splitlines())):
        at, kind, phase, name, *rest = line.split()
        moment = Moment(node(cast("Phase", phase), name), cast("Kind", kind), float(at))
        if rest:
            moment = moment._replace(until_s=float(rest[1]), cause=cast("Wait", rest[2]))
        moments.append(moment)
    return moments


def seconds(sheet: Timesheet, name: str) -> dict[str, float]:
    found: Counter[str] = Counter()
    for piece in sheet.pieces(package_id(name)):
        found[piece.what] += piece.lasts
    return {what: ms / 1000 for what, ms in found.items()}


BOTH_DONE = """
    0 started build a
    0 started build b
    2 settled build a
    2 started upload a
    3 settled build b
    4 settled upload a
    4 started confirm a
    9 settled confirm a
    9.5 started upload b
    10 paused upload b until 12 rate-limit
    12.25 started upload b
    13 settled upload b
    13 started confirm b
    13.5 settled confirm b
"""


def test_every_second_of_two_packages_has_its_place() -> None:
    tasks, batches = tasks_of({"a": (), "b": ("a",)})
    sheet = timesheet(tasks, told(BOTH_DONE), batches=batches, end_s=14)
    assert seconds(sheet, "a") == {"build": 2, "upload": 2, "index-lag": 5}
    assert seconds(sheet, "b") == {
        "build": 3,
        "dependency": 6,
        "slot": 0.75,
        "upload": 1.25,
        "rate-limit": 2,
        "index-lag": 0.5,
    }
    assert sheet.waited_for(package_id("b")) == {package_id("a"): 6_000}
    assert sheet.waited_for(package_id("a")) == {}


def test_what_waited_for_all_builds_waited_for_the_package_that_was_built_last() -> None:
    """The task that holds uploads back belongs to no package, whatever its name says."""
    tasks, batches = tasks_of({"a": (), "b": ()})
    hold = node("hold", "a")
    held = [
        replace(task, after=task.after | {hold}) if task.name.phase == "upload" else task
        for task in tasks
    ]
    held.append(Task(hold, "hold", frozenset(batches)))
    moments = told(
        """
        0 started build a
        0 started build b
        2 settled build a
        6 settled build b
        6 started hold a
        6 settled hold a
        6 started upload a
        6 started upload b
        7 settled upload b
        8 settled upload a
        """
    )
    sheet = timesheet(held, moments, batches=batches, end_s=8)
    assert seconds(sheet, "a") == {"build": 2, "dependency": 4, "upload": 2}
    assert sheet.waited_for(package_id("a")) == {package_id("b"): 4_000}
    assert sheet.waited_for(package_id("b")) == {}


def test_what_is_built_together_is_at_work_together() -> None:
    tasks, batches = tasks_of({"a": (), "b": ()}, batch=("a", "b"))
    moments = told("""
        1 started build a
        5 settled build a
    """)
    sheet = timesheet(tasks, moments, batches=batches, end_s=5)
    assert seconds(sheet, "a") == seconds(sheet, "b") == {"build-slot": 1, "build": 4}


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        ("", {"build-slot": 20}),
        ("3 started build a", {"build-slot": 3, "build": 17}),
        (
            """
            0 started build a
            4 settled build a
            4 settled upload a
            4 settled confirm a
            """,
            {"build": 4},
        ),
        (
            """
            0 started build a
            4 settled build a
            5 started upload a
            6 paused upload a until 60 retry
            9 settled upload a
            9 settled confirm a
            """,
            {"build": 4, "slot": 1, "upload": 1, "retry": 3},
        ),
        (
            """
            0 started build a
            4 settled build a
            5 started upload a
            6 paused upload a until 60 retry
            """,
            {"build": 4, "slot": 1, "upload": 1, "retry": 14},
        ),
        (
            """
            0 started build a
            4 settled build a
            7 settled upload a
            7 settled confirm a
            """,
            {"build": 4, "slot": 3},
        ),
    ],
)
def test_a_run_may_end_at_any_point(moments: str, expected: dict[str, float]) -> None:
    tasks, batches = tasks_of({"a": ()})
    sheet = timesheet(tasks, told(moments), batches=batches, end_s=20)
    assert seconds(sheet, "a") == expected


def test_what_is_blocked_has_waited_until_it_was() -> None:
    tasks, batches = tasks_of({"a": (), "b": ("a",)})
    moments = told("""
        0 started build a
        0 started build b
        1 settled build b
        7 settled build a
        7 settled upload a
        7 settled confirm a
        7 settled upload b
        7 settled confirm b
    """)
    sheet = timesheet(tasks, moments, batches=batches, end_s=20)
    assert seconds(sheet, "b") == {"build": 1, "dependency": 6}
    assert sheet.waited_for(package_id("b")) == {package_id("a"): 6_000}


@pytest.mark.parametrize(
    ("pauses", "expected"),
    [
        ([], {"index-lag": 10}),
        ([("retry", -5.0, 2.0)], {"retry": 2, "index-lag": 8}),
        ([("retry", 9.0, 12.0)], {"retry": 1, "index-lag": 9}),
        ([("retry", 1.0, 4.0), ("rate-limit", 3.0, 5.0)], {"retry": 2, "rate-limit": 2}),
        ([("rate-limit", 1.0, 4.0), ("retry", 2.0, 3.0)], {"rate-limit": 3}),
        ([("retry", 1.0, 4.0), ("retry", 2.0, 6.0), ("retry", 7.0, 7.0)], {"retry": 5}),
        ([("retry", 0.0, 10.0)], {"retry": 10}),
        ([("retry", 1.0, 2.0), ("retry", 2.0, 3.0)], {"retry": 2}),
        ([("retry", 20.0, 30.0)], {"index-lag": 10}),
    ],
)
def test_pauses_within_an_attempt_are_no_work(
    pauses: list[tuple[Wait, float, float]], expected: dict[str, float]
) -> None:
    confirm = node("confirm", "a")
    sheet = timesheet(
        [Task(confirm, "confirm")],
        told("0 started confirm a\n10 settled confirm a"),
        batches={},
        end_s=10,
        pauses={confirm: [Pause(*each) for each in pauses]},
    )
    lag = 10 - sum(lasted for what, lasted in expected.items() if what != "index-lag")
    assert seconds(sheet, "a") == expected | ({"index-lag": lag} if lag else {})
    pieces = list(sheet.pieces(package_id("a")))
    assert [piece.end_ms for piece in pieces[:-1]] == [piece.start_ms for piece in pieces[1:]]


def test_approval_and_follow_ups_come_last() -> None:
    chain = [node("confirm", "a"), node("approval", "a"), node("follow-up", "a")]
    tasks = [
        Task(name, name.phase, frozenset(chain[place - 1 : place] if place else ()))
        for place, name in enumerate(chain)
    ]
    moments = told("""
        1 started confirm a
        2 settled confirm a
        2 started approval a
        12 settled approval a
        13 started follow-up a
        16 settled follow-up a
    """)
    sheet = timesheet(tasks, moments, batches={}, end_s=16)
    expected = {"index-lag": 2.0, "approval": 10.0, "slot": 1.0, "follow-up": 3.0}
    assert seconds(sheet, "a") == expected


@dataclass
class Story:
    """A random run of the real scheduler, all of whose times are whole milliseconds."""

    seed: int

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        names = [f"p{number}" for number in range(self.rng.randint(1, 9))]
        self.needs = {
            name: self.rng.sample(names[:place], self.rng.randint(0, min(place, 3)))
            for place, name in enumerate(names)
        }
        batch = self.rng.sample(names, self.rng.choice([0, 2])) if len(names) > 1 else []
        self.tasks, self.batches = tasks_of(self.needs, batch=batch)
        every = self.rng.choice([0, 1])
        self.lasts = {task.name: self.rng.randint(every, 40) for task in self.tasks}
        self.faults = {
            task.name: []
            if self.rng.random() < 0.6
            else self.rng.choices(
                [
                    Transient("busy", retry_after=0.02),
                    Transient("broken", retry_after=None),
                    CircuitOpen("down", retry_after=0.007),
                    Denied("no"),
                ],
                k=self.rng.randint(1, 2),
            )
            for task in self.tasks
        }

    def sheet(self) -> Timesheet:
        return run(self._run)

    async def _run(self, loop: VirtualLoop) -> Timesheet:
        self.events = Events(cast("Journal", None), lambda event: None)
        scheduler = Scheduler.from_tasks(
            self.tasks,
            lanes=LANES,
            max_retries=2,
            retry_base_delay=0.0,
            task_timeout=None,
            durations={name: float(lasts) for name, lasts in self.lasts.items()},
            completing={"confirm"},
            observer=self.events,
        )
        if self.rng.random() < 0.4:
            loop.call_later(self.rng.randint(1, 200) / 1000, scheduler.cancel)
        if self.rng.random() < 0.3:
            loop.call_later(self.rng.randint(1, 50) / 1000, scheduler.pause)
            loop.call_later(self.rng.randint(50, 99) / 1000, scheduler.resume)
        await scheduler.run(self._perform)
        self.end_s = self.events.now_s()
        return timesheet(
            self.tasks,
            self.events.moments,
            batches=self.batches,
            end_s=self.end_s,
            pauses=self.events.pauses(),
        )

    async def _perform(self, name: Node) -> None:
        with self.events.attempt(name):
            if self.rng.random() < 0.3:
                with record_wait("rate-limit"):
                    await asyncio.sleep(self.rng.randint(0, 9) / 1000)
            await asyncio.sleep(self.lasts[name] / 1000)
            if self.faults[name]:
                raise self.faults[name].pop(0)


def counted(story: Story, sheet: Timesheet, package: PackageId) -> Counter[str]:
    """Millisecond by millisecond, from what the scheduler told alone."""
    spans: dict[Node, list[tuple[int, int, str]]] = {task.name: [] for task in story.tasks}
    begun: dict[Node, int] = {}
    settled: dict[Node, int] = {}
    for moment in story.events.moments:
        at = round(moment.at_s * 1000)
        if moment.kind == "started":
            begun[moment.node] = at
            continue
        if moment.node in begun:
            spans[moment.node].append((begun.pop(moment.node), at, moment.node.phase))
        if moment.kind == "paused":
            spans[moment.node].append((at, round(moment.until_s * 1000), moment.cause))
        else:
            settled[moment.node] = at
    words = {"confirm": "index-lag"}
    ready = {"build": "build-slot", "upload": "slot", "confirm": "index-lag"}
    after = {task.name: task.after for task in story.tasks}
    found: Counter[str] = Counter()
    for at in range(round(story.end_s * 1000)):
        current = next((name for name in sheet.chains[package] if settled[name] > at), None)
        if current is None:
            break
        paused = any(
            pause.start_s * 1000 <= at + 0.5 < pause.end_s * 1000
            for pause in story.events.pauses().get(current, ())
        )
        now = [what for start, end, what in spans[current] if start <= at < end]
        if now:
            busy = now[0] in {"build", "upload", "confirm"}
            found["rate-limit" if busy and paused else words.get(now[0], now[0])] += 1
        elif all(settled[on] <= at for on in after[current]):
            found[ready[current.phase]] += 1
        else:
            found["dependency"] += 1
    return found


@pytest.mark.parametrize("seed", range(150))
def test_sums_are_those_of_a_count_of_milliseconds(seed: int) -> None:
    story = Story(seed)
    sheet = story.sheet()
    for package in sheet.chains:
        pieces = list(sheet.pieces(package))
        found: Counter[str] = Counter()
        for piece in pieces:
            found[piece.what] += piece.lasts
        assert found == counted(story, sheet, package)
        # From the run's start to its own end, without a gap.
        starts = [piece.start_ms for piece in pieces]
        ends = [piece.end_ms for piece in pieces]
        assert starts == [0, *ends][: len(starts)]
        assert sum(found.values()) == max(
            sheet.lives[each].settled_ms for each in sheet.chains[package]
        )
        longest = max(sheet.waited_for(package).values(), default=0)
        assert longest <= found["dependency"] <= sum(sheet.waited_for(package).values())
