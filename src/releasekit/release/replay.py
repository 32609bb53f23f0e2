"""A run on paper: how long it would have lasted with other limits, or with other gates."""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import TYPE_CHECKING

from releasekit.graph import gc_paused
from releasekit.model import Outcome
from releasekit.scheduler import Task
from releasekit.scheduler.frontier import Frontier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from releasekit.model import Node
    from releasekit.release.timesheet import Attempt, Timesheet

    Change = Callable[[Task[Node]], Task[Node]]


class Replay:
    """Of a run whose tasks were all carried out, each changed by `change`, which lets none wait for
    what settled later. Each attempt and each pause lasts as long as it did, but for what a build
    waited for others while it had its slot.
    """

    @gc_paused()
    def __init__(self, sheet: Timesheet, change: Change | None = None) -> None:
        nodes = sorted(sheet.lives, key=lambda node: sheet.lives[node].place)
        # Numbers, because a run on paper does hardly anything but look tasks up.
        numbers = {node: number for number, node in enumerate(nodes)}
        # How long each attempt lasts, and the pause after it.
        self._attempts = [
            [(_lasts(sheet, attempt), attempt.pause_ms) for attempt in sheet.lives[node].attempts]
            for node in nodes
        ]
        self._tasks = []
        for number, node in enumerate(nodes):
            task = sheet.tasks[node] if change is None else change(sheet.tasks[node])
            after = frozenset(numbers[on] for on in task.after)
            weight = sum(lasts for lasts, _ in self._attempts[number])
            self._tasks.append(Task(number, task.lane, after, float(weight)))

    @gc_paused()
    def lasts_s(self, lanes: Mapping[str, int | None]) -> float:
        """How long it lasts with so many slots in each lane."""
        frontier = Frontier(self._tasks, lanes=lanes)
        done = [0] * len(self._tasks)
        due: list[tuple[int, int, bool, int]] = []
        now = order = 0
        while not frontier.finished:
            for task in frontier.take():
                lasts, _ = self._attempts[task][done[task]]
                order += 1
                heapq.heappush(due, (now + lasts, order, False, task))
            now, _, waking, task = heapq.heappop(due)
            if waking:
                frontier.wake(task)
                continue
            _, pause = self._attempts[task][done[task]]
            done[task] += 1
            if done[task] == len(self._attempts[task]):
                frontier.settle(task, Outcome.PUBLISHED)
            else:
                frontier.defer(task)
                order += 1
                heapq.heappush(due, (now + pause, order, True, task))
        return now / 1000


def _lasts(sheet: Timesheet, attempt: Attempt) -> int:
    if attempt.node not in sheet.pauses:
        return attempt.end_ms - attempt.start_ms
    return sum(piece.lasts for piece in sheet.within(attempt) if piece.what != "build-slot")


def gates_accepted(sheet: Timesheet) -> Change:
    """As with `gate: accepted`."""
    uploads = {
        package: node for package, chain in sheet.chains.items() for node in chain if _sends(node)
    }

    def change(task: Task[Node]) -> Task[Node]:
        if not _sends(task.name):
            return task
        after = (uploads.get(on.package, on) if on.phase == "confirm" else on for on in task.after)
        return replace(task, after=frozenset(after))

    return change


def _sends(node: Node) -> bool:
    return node.phase == "upload"
