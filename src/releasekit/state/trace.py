"""What the last run was doing when it was last heard of: its part of the journal, as lines of text.

Only `doctor` needs it, so the fold that every plan waits for does not include it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from releasekit.model import Outcome
from releasekit.report.text import few, seconds
from releasekit.state.history import records_of
from releasekit.text.escape import clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from releasekit.state.history import Run

_DONE: Final = frozenset(outcome.value for outcome in Outcome if outcome.done)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt at a phase of a package. Without an end, `took_s` counts up to the last record."""

    node: str
    number: object = 1
    took_s: float = 0.0
    error: str = ""

    @property
    def package(self) -> str:
        return self.node.partition(" ")[2]

    def __str__(self) -> str:
        number = f"attempt {clip(str(self.number), 20)}, " if self.number != 1 else ""
        return f"{clip(self.node, 100)} ({number}{seconds(self.took_s)})"


@dataclass(slots=True)
class Trace:
    """`needs` are the packages the run was to publish, and which of them each one waits for."""

    lasted_s: float = 0.0
    needs: dict[str, list[str]] = field(default_factory=dict)
    at_work: list[Attempt] = field(default_factory=list)
    ended: list[Attempt] = field(default_factory=list)
    outcomes: dict[str, str] = field(default_factory=dict)

    def waiting(self) -> Iterator[str]:
        """The packages that have not ended and are not at work, and why, as far as the journal
        says.
        """
        at_work = {attempt.package for attempt in self.at_work}
        last = {attempt.package: attempt for attempt in self.ended}
        for package, needs in self.needs.items():
            if package in self.outcomes or package in at_work:
                continue
            missing = [clip(on, 100) for on in needs if self.outcomes.get(on) not in _DONE]
            if missing:
                why = f"needs {few(missing)}"
            elif package in last and last[package].error:
                why = f"for another attempt at its {last[package].node.partition(' ')[0]}"
            else:
                why = "for its turn"
            yield f"{clip(package, 100)} ({why})"


def read_trace(data: bytes, run_id: str) -> Trace:
    """The trace of one run, from a journal that `history.fold` reads without an error."""
    trace = Trace()
    began_s = 0.0
    started: dict[str, tuple[object, float]] = {}
    for record in records_of(data):
        if record["run"] != run_id:
            continue
        at_s = _number(record.get("at"))
        match record["event"]:
            case "run_started":
                began_s = at_s
            case "planned":
                trace.needs = {name: _texts(needs) for name, needs in record["needs"].items()}
            case "step_started":
                started[record["node"]] = record.get("attempt", 1), at_s
            case "step_ended":
                started.pop(record["node"], None)
                trace.ended.append(_ended(record))
            case "outcome":
                trace.outcomes[record["package"]] = record["outcome"]
            case _:
                pass
        trace.lasted_s = max(trace.lasted_s, at_s - began_s)
    trace.at_work = [
        Attempt(node=node, number=number, took_s=max(0.0, began_s + trace.lasted_s - at_s))
        for node, (number, at_s) in started.items()
    ]
    return trace


def told(run: Run, trace: Trace, *, running: bool) -> list[str]:
    """Some lines for people; one, for a run that ended in order."""
    commit = f", commit {clip(run.commit, 60)}" if run.commit else ""
    first = f"last run: started {clip(run.started_at, 40)}{commit}, "
    if run.complete:
        return [f"{first}ended after {seconds(trace.lasted_s)}: {clip(run.result, 20)}"]
    done = [attempt for attempt in reversed(trace.ended) if not attempt.error]
    failed = [
        f"{attempt}: {clip(attempt.error, 200)}"
        for attempt in reversed(trace.ended)
        if attempt.error
    ]
    found = {
        "at work": list(map(str, trace.at_work)),
        "last finished": list(map(str, done)),
        "last failed": failed,
        "waiting": list(trace.waiting()),
    }
    how = "still at work" if running else "cut off"
    return [
        f"{first}{how}, last heard of after {seconds(trace.lasted_s)}",
        *(f"  {title}: {few(items)}" for title, items in found.items() if items),
    ]


def _ended(record: Mapping[str, Any]) -> Attempt:
    return Attempt(
        node=record["node"],
        number=record.get("attempt", 1),
        took_s=_number(record["duration_s"]),
        error=str(record.get("error", "")),
    )


def _texts(value: object) -> list[str]:
    return list(map(str, value)) if isinstance(value, list) else []


def _number(value: object) -> float:
    return max(0.0, value) if isinstance(value, float) and math.isfinite(value) else 0.0
