"""A shorter journal from which the next run learns the same, bytes in and bytes out.

What is left out: the trace of runs that are over, and versions of a package that were published and
followed by another. What is kept is renumbered and sealed again. An upload whose end is unknown is
never left out, nor what waits for approval, nor any record of a run that may still be writing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from releasekit.model import Outcome
from releasekit.state.history import encode, records_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_OF_PACKAGES = frozenset({"built", "attested", "intent", "outcome"})


def compacted(data: bytes) -> bytes:
    """`data` is a whole journal that `history.fold` reads without an error."""
    records = list(records_of(data))
    at_work = _of_runs_at_work(records)
    kept = at_work | _of_packages(records, at_work) | _durations(records)
    kept |= _of_runs(records, kept)
    sequence: dict[str, int] = {}
    lines: list[bytes] = []
    size = 0
    for index in sorted(kept):
        record = {key: value for key, value in records[index].items() if key != "crc"}
        record["seq"] = sequence.get(record["run"], 0)
        sequence[record["run"]] = record["seq"] + 1
        # All of it will be on the disk before it is put in place, so everything before this line
        # counts as durable.
        lines.append(encode({**record, "durable": size}))
        size += len(lines[-1])
    return b"".join(lines)


def _of_packages(records: Sequence[Mapping[str, Any]], at_work: set[int]) -> set[int]:
    """The records behind the entries: of each package's last version, of unsettled versions, and of
    those that a run at work mentions.
    """
    versions: dict[tuple[str, str], _Version] = {}
    last: dict[str, str] = {}
    current: set[tuple[str, str]] = set()
    for index, record in enumerate(records):
        if record["event"] in _OF_PACKAGES:
            version = record["package"], record["version"]
            versions.setdefault(version, _Version()).add(index, record)
            last[record["package"]] = record["version"]
            if index in at_work:
                current.add(version)
    return set().union(
        *(
            facts.indices
            for (package, version), facts in versions.items()
            if version == last[package] or (package, version) in current or not facts.settled
        )
    )


class _Version:
    """The records of one version of one package that its entry is folded from."""

    def __init__(self) -> None:
        self._built: set[int] = set()
        self._attested: set[int] = set()
        self._intent: set[int] = set()
        self._intent_run = ""
        self._settling: set[int] = set()
        self._staged: set[int] = set()
        self._outcome: set[int] = set()

    @property
    def indices(self) -> set[int]:
        made = self._built | self._attested
        return made | self._intent | self._settling | self._staged | self._outcome

    @property
    def settled(self) -> bool:
        """Whether nothing was ever sent, or it is known what became of it for good."""
        return not self._staged and (not self._intent or bool(self._settling))

    def add(self, index: int, record: Mapping[str, Any]) -> None:
        """Forget what the record supersedes, by the rules of `history`."""
        if record["event"] == "built":
            self._built, self._attested, self._outcome = {index}, set(), set()
        elif record["event"] == "attested":
            self._attested = {index}
        elif record["event"] == "intent":
            self._intent, self._intent_run = {index}, record["run"]
            self._settling, self._staged, self._outcome = set(), set(), set()
        else:
            self._outcome = {index}
            outcome = Outcome(record["outcome"])
            if outcome is Outcome.STAGED:
                self._staged = {index}
            elif outcome.done:
                self._staged = set()
            failed = outcome is Outcome.FAILED and record["run"] == self._intent_run
            if self._intent and not self._settling and (outcome.done or failed):
                self._settling = {index}


def _durations(records: Sequence[Mapping[str, Any]]) -> set[int]:
    last = {
        record["node"]: index
        for index, record in enumerate(records)
        if record["event"] == "step_ended" and "error" not in record
    }
    return set(last.values())


def _of_runs_at_work(records: Sequence[Mapping[str, Any]]) -> set[int]:
    """All records of runs without an end, unless a later run of one of their ecosystems shows that
    they are dead.
    """
    ended = {record["run"] for record in records if record["event"] == "run_ended"}
    dead: set[str] = set()
    taken: set[str] = set()
    for record in reversed(records):
        if record["event"] == "run_started":
            if not taken.isdisjoint(record["ecosystems"]):
                dead.add(record["run"])
            taken.update(record["ecosystems"])
    over = ended | dead
    return {index for index, record in enumerate(records) if record["run"] not in over}


def _of_runs(records: Sequence[Mapping[str, Any]], kept: set[int]) -> set[int]:
    """Start and end of each run of which anything is kept, and of each ecosystem's last run."""
    runs = {records[index]["run"] for index in kept}
    last: dict[str, str] = {}
    for record in records:
        if record["event"] == "run_started":
            last |= dict.fromkeys(["", *record["ecosystems"]], record["run"])
    runs.update(last.values())
    return {
        index
        for index, record in enumerate(records)
        if record["event"] in {"run_started", "run_ended"} and record["run"] in runs
    }
