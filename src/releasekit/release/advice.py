"""The one thing to change that would have made a run shorter, in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.release.replay import Replay, gates_accepted
from releasekit.report.text import few, packages, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from releasekit.release.timesheet import Piece, Timesheet
    from releasekit.spent import RunSpent, Wait

# Not every server names a time; those that do may answer with any status.
_NO_MORE: Final = "a registry wanted no more requests for a while (429, 503 or `Retry-After`)"
_LEAST_SHARE: Final = 0.1
_LEAST_S: Final = 1.0
# Of so many tasks, a run on paper takes some hundredths of a second.
_MOST_TASKS: Final = 6_000
_MOST_SLOTS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of the run: `lanes` as the scheduler has them, all in one where it is `sequential`, and the
    `cpus` of this machine. `crowded` says that a registry takes one upload at a time, whatever the
    limit; `words` what registries that asked for pauses let through, where that is known.
    """

    lanes: Mapping[str, int | None]
    gate: str
    cpus: int
    sequential: bool = False
    crowded: bool = False
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Change:
    saves_s: float
    words: str


def advice(sheet: Timesheet, spent: RunSpent, waits: Mapping[Wait, int], limits: Limits) -> str:
    """Of all that would have saved a tenth of the run, and a second, what would have saved most;
    empty where nothing would. `waits` tells how many packages waited for what.
    """
    case = _Case(sheet, spent, waits, limits)
    found = [each for each in case.changes() if each.saves_s >= case.least_s]
    return max(found, key=lambda each: each.saves_s).words if found else ""


class _Case:
    def __init__(
        self, sheet: Timesheet, spent: RunSpent, waits: Mapping[Wait, int], limits: Limits
    ) -> None:
        self._sheet = sheet
        self._spent = spent
        self._waits = waits
        self._limits = limits
        self._length_s = sum(step.lasted_s for step in spent.chain)
        self.least_s = max(_LEAST_S, _LEAST_SHARE * self._length_s)

    def changes(self) -> Iterator[_Change]:
        """What saves too little may be left out, where that is plain without a run on paper."""
        asked_for_s = self._on_chain("rate-limit")
        if asked_for_s:
            named = few(self._limits.words, 2) or _NO_MORE
            yield _Change(asked_for_s, f"{self._waited('rate-limit', 'rate limits')}: {named}")
        complete = all(life.attempts for life in self._sheet.lives.values())
        if complete and not self._limits.sequential and len(self._sheet.lives) <= _MOST_TASKS:
            yield from self._other_gates()
            yield from self._more_slots()

    def _other_gates(self) -> Iterator[_Change]:
        # Whatever else happens, the chain without its lag takes its time.
        if self._limits.gate == "visible" and self._on_chain("index-lag") >= self.least_s:
            lanes = self._limits.lanes
            now_s = Replay(self._sheet).lasts_s(lanes)
            then_s = Replay(self._sheet, gates_accepted(self._sheet)).lasts_s(lanes)
            words = self._told("index-lag", "index lag", "gate: accepted", now_s - then_s)
            yield _Change(now_s - then_s, f"{words}, and packages may show before what they need")

    def _more_slots(self) -> Iterator[_Change]:
        turns = self._limits.crowded or _take_turns(self._sheet)
        lanes: list[tuple[str, Wait, str, int]] = [
            ("build", "build-slot", "build-concurrency", self._limits.cpus),
            ("upload", "slot", "concurrency", 0 if turns else _MOST_SLOTS),
        ]
        for lane, wait, name, most in lanes:
            if self._spent.total.seconds.get(wait, 0.0) < self.least_s:
                continue
            slots, saves_s = self._with_more(lane, most)
            now = self._limits.lanes[lane]
            what = f"the only {lane} slot" if now == 1 else f"one of {now} {lane} slots"
            yield _Change(saves_s, self._told(wait, what, f"{name}: {slots}", saves_s))

    def _with_more(self, lane: str, most: int) -> tuple[int, float]:
        """Twice as many slots, as often as that still helps by a tenth, and what that saves."""
        now = self._limits.lanes
        slots = now[lane] or most
        most = min(most, sum(node.phase == lane for node in self._sheet.tasks))
        if slots >= most:
            return slots, 0.0
        replay = Replay(self._sheet)
        now_s = best_s = replay.lasts_s(now)
        if now_s - replay.lasts_s({**now, lane: most}) < self.least_s:
            return slots, 0.0
        while slots < most:
            more = min(2 * slots, most)
            then_s = replay.lasts_s({**now, lane: more})
            if then_s > best_s * (1 - _LEAST_SHARE):
                break
            slots, best_s = more, then_s
        return slots, now_s - best_s

    def _told(self, wait: Wait, what: str, change: str, saves_s: float) -> str:
        then = seconds(max(0.0, self._length_s - saves_s))
        return (
            f"{self._waited(wait, what)}; with `{change}` this run would have taken about {then} "
            f"instead of {seconds(self._length_s)}"
        )

    def _waited(self, wait: Wait, what: str) -> str:
        waited_s = self._spent.total.seconds.get(wait, 0.0)
        return f"Waited {seconds(waited_s)} for {what} with {packages(self._waits[wait])}"

    def _on_chain(self, wait: Wait) -> float:
        return sum(step.lasted_s for step in self._spent.chain if step.what == wait)


def _take_turns(sheet: Timesheet) -> bool:
    """Whether uploads take turns, whatever the number of slots."""

    def waits(pauses: Iterable[Piece]) -> bool:
        return any(pause.what == "slot" and pause.lasts for pause in pauses)

    return any(node.phase == "upload" and waits(found) for node, found in sheet.pauses.items())
