"""A shorter journal from which the next run learns the same, bytes in and bytes out.

What is left out: the trace of runs that are over, and versions of a package that were published and
followed by another. What is kept is renumbered and sealed again. An upload whose end is unknown is
never left out, nor what waits for approval, nor any record of a run that may still be writing.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from releasekit.model import Outcome
from releasekit.state.history import encode, records_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_OF_PACKAGES = frozenset({"built", "attested", "intent", "outcome"})


@dataclass(frozen=True, slots=True)
class _Record:
    """What tells whether a record is kept; empty where it says nothing of that."""

    event: str
    run: str
    package: str
    version: str
    outcome: str
    node: str
    ecosystems: tuple[str, ...]
    failed: bool


def compacted(data: bytes, *, most: int | None = None) -> bytes:
    """`data` is a whole journal that `history.fold` reads without an error; empty for one that
    would have more than `most` bytes.
    """
    kept = _kept(data)
    sequence: dict[str, int] = {}
    shorter = io.BytesIO()
    for index, whole in enumerate(records_of(data)):
        if index not in kept:
            continue
        record = {key: value for key, value in whole.items() if key != "crc"}
        record["seq"] = sequence.get(record["run"], 0)
        sequence[record["run"]] = record["seq"] + 1
        # All of it will be on the disk before it is put in place, so everything before this line
        # counts as durable.
        shorter.write(encode({**record, "durable": shorter.tell()}))
        if most is not None and shorter.tell() > most:
            return b""
    return shorter.getvalue()


def _kept(data: bytes) -> set[int]:
    """The indices of the records that stay."""
    texts: dict[str, str] = {}
    records = [_record_of(record, texts) for record in records_of(data)]
    at_work = _of_runs_at_work(records)
    kept = at_work | _of_packages(records, at_work) | _durations(records)
    return kept | _of_runs(records, kept)


def _record_of(record: Mapping[str, Any], texts: dict[str, str]) -> _Record:
    """The same text is there once, in however many of them: in `texts`."""

    def text(name: str) -> str:
        said = str(record.get(name, ""))
        return texts.setdefault(said, said)

    starts = record["event"] == "run_started"
    return _Record(
        event=text("event"),
        run=text("run"),
        package=text("package"),
        version=text("version"),
        outcome=text("outcome"),
        node=text("node"),
        ecosystems=tuple(map(str, record["ecosystems"])) if starts else (),
        failed="error" in record,
    )


def _of_packages(records: Sequence[_Record], at_work: set[int]) -> set[int]:
    """The records behind the entries: of each package's last version, of unsettled versions, and of
    those that a run at work mentions.
    """
    versions: dict[tuple[str, str], _Version] = {}
    last: dict[str, str] = {}
    current: set[tuple[str, str]] = set()
    for index, record in enumerate(records):
        if record.event in _OF_PACKAGES:
            version = record.package, record.version
            versions.setdefault(version, _Version()).add(index, record)
            last[record.package] = record.version
            if index in at_work:
                current.add(version)
    return set().union(
        *(
            facts.indices
            for (package, version), facts in versions.items()
            if version == last[package] or (package, version) in current or not facts.settled
        )
    )


@dataclass(slots=True)
class _Version:
    """The records of one version of one package that its entry is folded from."""

    built: int | None = None
    attested: int | None = None
    intent: int | None = None
    intent_run: str = ""
    settling: int | None = None
    staged: int | None = None
    outcome: int | None = None

    @property
    def indices(self) -> set[int]:
        sent = self.intent, self.settling, self.staged, self.outcome
        return {index for index in (self.built, self.attested, *sent) if index is not None}

    @property
    def settled(self) -> bool:
        """Whether nothing was ever sent, or it is known what became of it for good."""
        return self.staged is None and (self.intent is None or self.settling is not None)

    def add(self, index: int, record: _Record) -> None:
        """Forget what the record supersedes, by the rules of `history`."""
        if record.event == "built":
            self.built, self.attested, self.outcome = index, None, None
        elif record.event == "attested":
            self.attested = index
        elif record.event == "intent":
            self.intent, self.intent_run = index, record.run
            self.settling = self.staged = self.outcome = None
        else:
            self.outcome = index
            outcome = Outcome(record.outcome)
            if outcome is Outcome.STAGED:
                self.staged = index
            elif outcome.done:
                self.staged = None
            failed = outcome is Outcome.FAILED and record.run == self.intent_run
            if self.intent is not None and self.settling is None and (outcome.done or failed):
                self.settling = index


def _durations(records: Sequence[_Record]) -> set[int]:
    last = {
        record.node: index
        for index, record in enumerate(records)
        if record.event == "step_ended" and not record.failed
    }
    return set(last.values())


def _of_runs_at_work(records: Sequence[_Record]) -> set[int]:
    """All records of runs without an end, unless a later run of one of their ecosystems shows that
    they are dead.
    """
    ended = {record.run for record in records if record.event == "run_ended"}
    dead: set[str] = set()
    taken: set[str] = set()
    for record in reversed(records):
        if record.event == "run_started":
            if not taken.isdisjoint(record.ecosystems):
                dead.add(record.run)
            taken.update(record.ecosystems)
    over = ended | dead
    return {index for index, record in enumerate(records) if record.run not in over}


def _of_runs(records: Sequence[_Record], kept: set[int]) -> set[int]:
    """Start and end of each run of which anything is kept, and of each ecosystem's last run."""
    runs = {records[index].run for index in kept}
    last: dict[str, str] = {}
    for record in records:
        if record.event == "run_started":
            last |= dict.fromkeys(["", *record.ecosystems], record.run)
    runs.update(last.values())
    return {
        index
        for index, record in enumerate(records)
        if record.event in {"run_started", "run_ended"} and record.run in runs
    }
