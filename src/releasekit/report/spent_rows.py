"""What was spent, as results.json has it: the objects `spent` of a run and of its packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.errors import ConfigError
from releasekit.problems import Problem
from releasekit.spent import WAITS, WORK, RunSpent, Spent, Step

if TYPE_CHECKING:
    from releasekit.report.record import Record
    from releasekit.spent import Wait, Work

# Of a chain that is longer, the report of a run shows no more either.
MOST_STEPS: Final = 1_000


def run_row(spent: RunSpent | None) -> dict[str, object] | None:
    if spent is None:
        return None
    return {
        **_row(spent.total),
        "chain": [
            {"package": step.package, "what": step.what, "lasted_s": round(step.lasted_s, 3)}
            for step in spent.chain[-MOST_STEPS:]
        ],
        "advice": spent.advice,
    }


def package_row(spent: Spent | None) -> dict[str, object] | None:
    if spent is None:
        return None
    longest_s = round(spent.longest_s, 3)
    return {**_row(spent), "waited_for": spent.waited_for, "longest_s": longest_s}


def _row(spent: Spent) -> dict[str, object]:
    return {
        "requests": spent.requests,
        "sent_bytes": spent.sent_bytes,
        "received_bytes": spent.received_bytes,
        "retries": spent.retries,
        "work_s": {what: round(spent.seconds.get(what, 0.0), 3) for what in WORK},
        "waits_s": {what: round(spent.seconds.get(what, 0.0), 3) for what in WAITS},
    }


def run_spent(record: Record) -> RunSpent | None:
    """None in results of an earlier version, too."""
    if record.values.get("spent") is None:
        return None
    row = record.record("spent")
    return RunSpent(total=_spent(row), chain=_chain(row), advice=row.text("advice"))


def package_spent(record: Record) -> Spent | None:
    if record.values.get("spent") is None:
        return None
    row = record.record("spent")
    waited_for, longest_s = row.text("waited_for"), row.seconds("longest_s")
    return _spent(row, waited_for=waited_for, longest_s=longest_s)


def _spent(row: Record, *, waited_for: str = "", longest_s: float = 0.0) -> Spent:
    work, waits = row.record("work_s"), row.record("waits_s")
    # Earlier versions signed nothing.
    known = [what for what in WORK if what in work.values or what != "attest"]
    seconds: dict[Work | Wait, float] = {what: work.seconds(what) for what in known}
    seconds |= {what: waits.seconds(what) for what in WAITS}
    return Spent(
        requests=row.count("requests"),
        sent_bytes=row.count("sent_bytes"),
        received_bytes=row.count("received_bytes"),
        retries=row.count("retries"),
        seconds={what: lasted_s for what, lasted_s in seconds.items() if lasted_s},
        waited_for=waited_for,
        longest_s=longest_s,
    )


def _chain(row: Record) -> tuple[Step, ...]:
    return tuple(
        Step(package=step.text("package"), what=_what(step), lasted_s=step.seconds("lasted_s"))
        for step in row.records("chain")
    )


def _what(step: Record) -> Work | Wait:
    what = step.text("what")
    for known in (*WORK, *WAITS):
        if known == what:
            return known
    raise ConfigError(
        f"{step.where}: 'what' must be one of {', '.join((*WORK, *WAITS))}", problem=Problem.RESULTS
    )
