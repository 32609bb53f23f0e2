"""A release on paper: the scheduler's own decisions, and times that were thought up."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from releasekit.model import Node, Outcome, Phase, Span
from releasekit.release.timesheet import Moment
from releasekit.scheduler import Task
from releasekit.scheduler.frontier import Frontier
from releasekit.spent import Spent, Wait, Work

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from releasekit.model import Package, PackageId
    from releasekit.release.package_run import PackageRun
    from releasekit.release.timesheet import Timesheet


class Try(NamedTuple):
    """One attempt at a task, and how long its registry is left alone afterwards, if it failed."""

    lasts_s: float
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What the scheduler would have told of such a run."""

    moments: Sequence[Moment]
    spans: Mapping[PackageId, Sequence[Span]]
    lasted_s: float


def tasks_of(packages: Iterable[Package], tries: Mapping[Node, Sequence[Try]]) -> list[Task[Node]]:
    """Of what there is something to do for; what is not among `packages` is there already."""
    found = []
    packages = list(packages)
    known = {package.id for package in packages}
    for package in packages:
        build, upload, confirm = (Node(phase, package.id) for phase in _PHASES)
        shown = {Node("confirm", need.on) for need in package.dependencies if need.on in known}
        for node, after in ((build, set()), (upload, {build, *shown}), (confirm, {upload})):
            weight = sum(each.lasts_s for each in tries[node])
            found.append(Task(node, node.phase, frozenset(after), weight))
    return found


def play(
    tasks: Sequence[Task[Node]],
    tries: Mapping[Node, Sequence[Try]],
    *,
    failing: Iterable[Node],
    lanes: Mapping[str, int | None],
) -> Played:
    """Every attempt lasts as long as `tries` says; those that are `failing` fail in the end."""
    frontier = Frontier(tasks, lanes=lanes)
    moments: list[Moment] = []
    due: list[tuple[float, int, Node | None, Node]] = []
    done: dict[Node, int] = {}
    spans: dict[PackageId, list[Span]] = {}
    now_s, failing = 0.0, frozenset(failing)
    while not frontier.finished:
        for node in frontier.take():
            moments.append(Moment(node, "started", now_s))
            lasts_s = tries[node][done.get(node, 0)].lasts_s
            spans.setdefault(node.package, []).append(
                Span(phase=node.phase, start_s=now_s, end_s=round(now_s + lasts_s, 3))
            )
            heapq.heappush(due, (round(now_s + lasts_s, 3), len(moments), node, node))
        now_s, _, ended, node = heapq.heappop(due)
        if ended is None:
            frontier.wake(node)
            continue
        number = done[node] = done.get(node, 0) + 1
        if number < len(tries[node]):
            until_s = round(now_s + tries[node][number - 1].pause_s, 3)
            moments.append(Moment(node, "paused", now_s, until_s))
            frontier.defer(node)
            heapq.heappush(due, (until_s, len(moments), None, node))
            continue
        outcome = Outcome.FAILED if node in failing else Outcome.PUBLISHED
        settled = frontier.settle(node, outcome)
        moments += [Moment(each, "settled", now_s) for each in settled]
    return Played(moments=moments, spans=spans, lasted_s=now_s)


def spent_on(sheet: Timesheet, run: PackageRun) -> Spent:
    ms: Counter[Wait | Work] = Counter()
    for piece in sheet.pieces(run.id):
        ms[piece.what] += piece.lasts
    waited = sheet.waited_for(run.id)
    longest = min(waited, key=lambda on: (-waited[on], on), default=None)
    sent = sum(each.size for each in run.artifacts) if run.attempts else 0
    looks = 1 + sum(span.phase == "confirm" for span in run.spans) * 2
    return Spent(
        requests=looks + run.attempts * max(1, len(run.artifacts)),
        sent_bytes=sent,
        received_bytes=looks * 2_300,
        retries=max(0, run.attempts - 1),
        seconds={what: lasted / 1000 for what, lasted in sorted(ms.items())},
        waited_for="" if longest is None else str(longest),
        longest_s=0.0 if longest is None else waited[longest] / 1000,
    )


_PHASES: Final[tuple[Phase, ...]] = ("build", "upload", "confirm")
