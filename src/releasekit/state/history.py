"""What the journal of earlier runs says: bytes in, one frozen `History` out, no effects; and a
shorter journal that says the same.

A line is one record: a JSON object whose last member is the CRC-32 of everything before it. Each
record also says up to which byte of the file its writer knew everything to be on the disk. So the
reader can tell a tail that was never promised, which is dropped and leaves an exact prefix, from
damage to something promised, which is an error: nothing is guessed.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from releasekit.attested import Attestation
from releasekit.errors import JournalError, JournalNewer
from releasekit.fields import replace
from releasekit.model import Artifact, Outcome, PackageId, Staged
from releasekit.text.commands import spell
from releasekit.text.json_text import refuse_many

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from releasekit.model import Package
    from releasekit.state.seals import Seal

# Since 2 there is `planned`, since 3 the outcome "staged", since 4 `attested`.
SCHEMA = 4
# A release of 10,000 packages writes 120,000 lines. The longest line says what each of these
# packages waits for.
MAX_RECORDS: Final = 400_000
MAX_VALUES: Final = 500_000
# What each of these takes in a history, in units of 256 bytes, and what all may take together.
# 10,000 packages of two files, in two versions, take 440,000.
_ENTRY, _FILE, _DIGEST, _NODE, _RUN = 8, 4, 1, 2, 4
MAX_KEPT: Final = 480_000
_MAX_DURATION_S: Final = 1e6
SET_ASIDE: Final = (
    f"{spell('check --fix')} sets the journal aside; what is published is then read from the "
    "registries alone."
)
# Separators elsewhere, and what no system call takes: NUL, and surrogates that stand for no byte.
# https://peps.python.org/pep-0383/
_NO_NAME: Final = re.compile(r"[\\:\x00\ud800-\udc7f\udd00-\udfff]")


class Intent(Struct, frozen=True, kw_only=True):
    """The promise, made before the first byte was sent, to upload exactly these files.

    `digests` maps filename to sha256.
    """

    run_id: str
    registry: str
    digests: Mapping[str, str]


class HistoryEntry(Struct, frozen=True, kw_only=True):
    """What is remembered of one version of one package.

    `artifacts` were built from `commit` under `fingerprint` and lie inside the state directory; the
    caller checks that they are still there, unchanged. They are mere claims unless `sealed`: then
    their recorder had our key. Those that `prebuilt` names had been built elsewhere; what was built
    `again`, in the place of such a claim, may differ from what `intent` was about. `uncertain`: an
    upload was begun, to the registry of `intent`, and it is not yet known what that has of it;
    `PlannedPackage.begun` says of the registry at hand that one was, also where its end is known.
    `staged`: as far as is known, the registry has it and waits for a person; only a new intent, or
    the sight of it on the registry, changes that. It is a mere claim unless `staged_sealed`: then,
    too, its recorder had our key.
    """

    version: str
    run_id: str = ""
    commit: str = ""
    fingerprint: str = ""
    artifacts: tuple[Artifact, ...] = ()
    prebuilt: frozenset[str] = frozenset()
    sealed: bool = False
    again: bool = False
    intent: Intent | None = None
    outcome: Outcome | None = None
    reason: str = ""
    uncertain: bool = False
    staged: Staged | None = None
    staged_sealed: bool = False


class Run(Struct, frozen=True, kw_only=True):
    """`result` is what `run_ended` said; empty when the run was cut off or is still going on."""

    id: str
    plan_digest: str
    commit: str
    tool: str
    started_at: str
    ecosystems: frozenset[str]
    result: str = ""

    @property
    def complete(self) -> bool:
        return bool(self.result)


class History(Struct, frozen=True, kw_only=True):
    """Runs are oldest first. `durations` holds seconds of the last success of every node.

    `intact` is the length in bytes of what this was folded from, `torn` of the tail dropped.
    """

    runs: tuple[Run, ...] = ()
    entries: Mapping[tuple[PackageId, str], HistoryEntry] = field(default_factory=dict)
    durations: Mapping[str, float] = field(default_factory=dict)
    intact: int = 0
    torn: int = 0

    def last_run(self, ecosystem: str) -> Run | None:
        return next((run for run in reversed(self.runs) if ecosystem in run.ecosystems), None)

    def entry(self, package: Package) -> HistoryEntry | None:
        return self.entries.get((package.id, package.version))


def encode(record: Mapping[str, object]) -> bytes:
    """One line. ASCII only, so that no text can break the line or the terminal that shows it."""
    body = json.dumps(record, separators=(",", ":")).encode("ascii")[:-1]
    return body + _seal(body) + b"\n"


def fold(
    data: bytes, *, state_directory: Path, where: str = "journal", seal: Seal | None = None
) -> History:
    """Raises JournalError for damage before the tail, and for records it cannot read."""
    if data.count(b"\n") > MAX_RECORDS:
        raise JournalError(f"{where}: has more than {MAX_RECORDS} lines", hint=SET_ASIDE)
    count = intact = 0
    for line in _lines(data):
        if not _is_sound(line):
            break
        count += 1
        intact += len(line) + 1
    rest = (line for line in islice(_lines(data), count, None) if _is_sound(line))
    promised = (record.get("durable") for record in _parse(rest, where))
    if any(isinstance(size, int) and size > intact for size in promised):
        raise JournalError(
            f"{where}: line {count + 1} is damaged, and it had been written for good",
            hint=SET_ASIDE,
        )
    folding = _Fold(state_directory, seal, where)
    try:
        for record in _parse(islice(_lines(data), count), where):
            folding.apply(record)
    except _UNREADABLE as error:
        raise JournalError(f"{where}: line {folding.line} is not a record: {error}") from error
    return folding.history(intact, len(data) - intact)


def compact(data: bytes, *, most: int | None = None) -> bytes:
    """A shorter journal from which the next run learns the same, out of a whole one that `fold`
    reads without an error; empty if it would have more than `most` bytes.

    The trace of runs that are over is left out, and versions of a package that were published and
    followed by another. The rest is renumbered and sealed again. What stays in any case: an upload
    whose end is unknown, what waits for approval, and all records of a run that may still write.
    """
    folding = _Fold(Path(), None, "journal")
    for record in records_of(data):
        folding.apply(record)
    over = folding.find_runs_over()

    # The run of each line, each id in memory once; of each package, the version that was mentioned
    # last; and the versions that runs at work mention.
    runs: list[str] = []
    ids: dict[str, str] = {}
    last: dict[str, str] = {}
    current: set[tuple[str, str]] = set()
    for record in records_of(data):
        runs.append(ids.setdefault(record["run"], record["run"]))
        if record["event"] in _OF_PACKAGES:
            package, version = record["package"], record["version"]
            last[package] = version
            if record["run"] not in over:
                current.add((package, version))
    current.update(last.items())

    kept = set(folding.duration_lines.values())
    for named, folded in folding.versions.items():
        if named in current or not folded.settled:
            kept.update(folded.lines.values())
    needed = {runs[line - 1] for line in kept} | folding.find_last_runs()

    sequence: dict[str, int] = {}
    shorter = io.BytesIO()
    for line, whole in enumerate(records_of(data), 1):
        run = whole["run"]
        frames = run in needed and whole["event"] in {"run_started", "run_ended"}
        if not frames and line not in kept and run in over:
            continue
        record = {key: value for key, value in whole.items() if key != "crc"}
        record["seq"] = sequence.get(run, 0)
        sequence[run] = record["seq"] + 1
        # All of it will be on the disk before it is put in place, so everything before this line
        # counts as durable.
        shorter.write(encode({**record, "durable": shorter.tell()}))
        if most is not None and shorter.tell() > most:
            return b""
    return shorter.getvalue()


def records_of(data: bytes) -> Iterator[Mapping[str, Any]]:
    """The records of a journal that `fold` reads without an error, the same ones that it reads."""
    return _parse(_lines(data), "journal")


_SEAL = len(b',"crc":"00000000"}')


def _seal(body: bytes) -> bytes:
    return b',"crc":"%08x"}' % zlib.crc32(body)


def _is_sound(line: bytes) -> bool:
    return line[-_SEAL:] == _seal(line[:-_SEAL])


def _lines(data: bytes) -> Iterator[bytes]:
    """The whole lines, without their ends; never all of them in memory."""
    return (line[:-1] for line in io.BytesIO(data) if line[-1:] == b"\n")


def _parse(lines: Iterator[bytes], where: str) -> Iterator[Mapping[str, Any]]:
    # Many lines in one call are parsed three times as fast as one line per call; all lines in one
    # call would all be in memory.
    while chunk := list(islice(lines, 256)):
        text = b"[" + b",".join(chunk) + b"]"
        try:
            refuse_many(text, MAX_VALUES)
            records = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise JournalError(
                f"{where}: not written by releasekit: {error}", hint=SET_ASIDE
            ) from error
        if len(records) != len(chunk) or not all(type(record) is dict for record in records):
            raise JournalError(f"{where}: not written by releasekit")
        yield from records


class _Version(Struct):
    """One version of one package: the fields of its `HistoryEntry` so far, and the lines that they
    come from, by what these say.
    """

    # Replacing frozen entries over and over would take half of the time.
    fields: dict[str, Any]
    lines: dict[str, int] = field(default_factory=dict)

    @property
    def settled(self) -> bool:
        """Whether nothing was ever sent, or its final result is known."""
        return not self.fields.get("uncertain") and self.fields.get("staged") is None


class _Fold:
    """Everything read so far; one method per event, named after it. `line` counts from 1."""

    def __init__(self, state_directory: Path, seal: Seal | None, where: str) -> None:
        self._state_directory = state_directory
        self._seal = seal
        self._where = where
        self._size = 0
        self._sequence: dict[str, int] = {}
        self._runs: dict[str, Run] = {}
        self._ended: set[str] = set()
        self._durations: dict[str, float] = {}
        self.line = 0
        self.versions: dict[tuple[str, str], _Version] = {}
        self.duration_lines: dict[str, int] = {}

    def apply(self, record: Mapping[str, Any]) -> None:
        """Raises an error of `_UNREADABLE` for anything that no record of this schema contains."""
        self.line += 1
        event, run = record["event"], record["run"]
        if record["v"] > SCHEMA:
            raise JournalNewer(
                f"a journal of schema {record['v']}; this version knows {SCHEMA} at most",
                hint="A newer releasekit wrote it: use that version or a later one.",
            )
        if event not in _EVENTS:
            raise ValueError(f"unknown event {event!r}")
        for name, kind in _EVENTS[event]:
            if type(record[name]) is not kind:
                raise TypeError(f"{name} of {event} is {record[name]!r}")
        if record["seq"] != self._sequence.get(run, 0):
            raise ValueError("a record before this one is missing, or this one is here twice")
        self._sequence[run] = record["seq"] + 1
        getattr(self, event)(record)

    def history(self, intact: int, torn: int) -> History:
        return History(
            runs=tuple(self._runs.values()),
            entries={
                (PackageId.parse(package), version): HistoryEntry(**folded.fields)
                for (package, version), folded in self.versions.items()
            },
            durations=self._durations,
            intact=intact,
            torn=torn,
        )

    def find_runs_over(self) -> set[str]:
        """The runs that write no more: those that ended, and those that a later run of one of their
        ecosystems shows to be dead.
        """
        over: set[str] = set()
        taken: set[str] = set()
        for run in reversed(self._runs.values()):
            if run.id in self._ended or not taken.isdisjoint(run.ecosystems):
                over.add(run.id)
            taken |= run.ecosystems
        return over

    def find_last_runs(self) -> set[str]:
        """The last run of all, and of each ecosystem."""
        last: dict[str, str] = {}
        for run in self._runs.values():
            last |= dict.fromkeys(["", *run.ecosystems], run.id)
        return set(last.values())

    def run_started(self, record: Mapping[str, Any]) -> None:
        self._add(_RUN)
        self._runs[record["run"]] = Run(
            id=record["run"],
            plan_digest=record["plan"],
            commit=record["commit"],
            tool=record["tool"],
            started_at=record["started_at"],
            ecosystems=frozenset(map(str, record["ecosystems"])),
        )

    def planned(self, record: Mapping[str, Any]) -> None:
        """For people who read the file."""

    def step_started(self, record: Mapping[str, Any]) -> None:
        """For people who read the file."""

    def step_ended(self, record: Mapping[str, Any]) -> None:
        # It is not sealed, and sums are made of it.
        if "error" not in record and 0 <= record["duration_s"] <= _MAX_DURATION_S:
            self._add(_NODE * (record["node"] not in self._durations))
            self._durations[record["node"]] = record["duration_s"]
            self.duration_lines[record["node"]] = self.line

    def built(self, record: Mapping[str, Any]) -> None:
        # An intent for earlier bytes stays until it is known what became of it.
        commit = self._runs[record["run"]].commit
        version, listed = self._version(record), record["artifacts"]
        self._add(_FILE * len(listed) - sum(map(_weight, version.fields.get("artifacts", ()))))
        self._supersede(version, "built", "attested", "outcome")
        version.fields.update(
            run_id=record["run"],
            commit=commit,
            fingerprint=record["fingerprint"],
            artifacts=tuple(map(self._artifact, listed)),
            prebuilt=frozenset(map(str, record.get("prebuilt", ()))),
            sealed=self._seal is not None and self._seal.fits(record, commit=commit),
            again=bool(record.get("again")),
            outcome=None,
            reason="",
        )

    def attested(self, record: Mapping[str, Any]) -> None:
        # Files that were built anew since have no attestation yet.
        version, files = self._version(record), record["files"]
        before = version.fields.get("artifacts", ())
        after = tuple(
            replace(each, attestation=self._attestation(files[each.filename]))
            if each.filename in files and files[each.filename]["sha256"] == each.sha256
            else each
            for each in before
        )
        # Anyone can make a certificate that names our job. Without a seal, files are signed anew.
        if self._seal is not None and self._seal.fits(record):
            self._add(sum(map(_weight, after)) - sum(map(_weight, before)))
            version.fields["artifacts"] = after
        self._supersede(version, "attested")

    def intent(self, record: Mapping[str, Any]) -> None:
        intent = Intent(
            run_id=record["run"], registry=record["registry"], digests=record["digests"]
        )
        version = self._version(record)
        before: Intent | None = version.fields.get("intent")
        self._add(_DIGEST * (len(intent.digests) - (len(before.digests) if before else 0)))
        self._supersede(version, "intent", "settled", "staged", "outcome")
        version.fields.update(intent=intent, outcome=None, reason="", uncertain=True, staged=None)

    def outcome(self, record: Mapping[str, Any]) -> None:
        version, outcome = self._version(record), Outcome(record["outcome"])
        fields, lines = version.fields, version.lines
        intent: Intent | None = fields.get("intent")
        fields.update(outcome=outcome, reason=record["reason"])
        self._supersede(version, "outcome")
        if outcome is Outcome.STAGED:
            sealed = (
                self._seal is not None
                and intent is not None
                and self._seal.fits(record, registry=intent.registry)
            )
            fields.update(uncertain=False, staged=_staged(record), staged_sealed=sealed)
            lines["staged"] = self.line
        elif outcome.done:
            fields["staged"] = None
            lines.pop("staged", None)
        if outcome.done or (outcome is Outcome.FAILED and _is_of(intent, record)):
            fields["uncertain"] = False
            if intent is not None:
                lines.setdefault("settled", self.line)

    def run_ended(self, record: Mapping[str, Any]) -> None:
        run = record["run"]
        self._runs[run] = replace(self._runs[run], result=record["result"])
        self._ended.add(run)

    def _version(self, record: Mapping[str, Any]) -> _Version:
        key = record["package"], record["version"]
        if key not in self.versions:
            self._add(_ENTRY)
            self.versions[key] = _Version({"version": record["version"]})
        return self.versions[key]

    def _supersede(self, version: _Version, what: str, *also: str) -> None:
        """From now on the line under way says what these lines said."""
        for name in also:
            version.lines.pop(name, None)
        version.lines[what] = self.line

    def _add(self, size: int) -> None:
        self._size += size
        if self._size > MAX_KEPT:
            raise JournalError(
                f"{self._where}: tells of more packages, files and runs than there is room for",
                hint=SET_ASIDE,
            )

    def _attestation(self, record: Mapping[str, Any]) -> Attestation:
        path, index = self._path(record["path"]), record["index"]
        if type(index) is not int or not all(type(record[key]) is str for key in ("bundle", "log")):
            raise TypeError(f"attestation of {path} is {record!r}")
        return Attestation(
            path=path, sha256=record["bundle"], log_index=index, log_url=record["log"]
        )

    def _path(self, path: str) -> Path:
        if path.startswith("/") or ".." in path.split("/") or _NO_NAME.search(path):
            raise ValueError(f"{path} is not inside the state directory")
        return Path(f"{self._state_directory}/{path}")

    def _artifact(self, record: Mapping[str, Any]) -> Artifact:
        path = self._path(record["path"])
        size, digests = record["size"], record["digests"]
        if type(size) is not int or type(digests.get("sha256")) is not str:
            raise ValueError(f"{path} has no size or no sha256")
        return Artifact(path=path, size=size, digests=digests)


def _weight(artifact: Artifact) -> int:
    return _FILE if artifact.attestation is None else 2 * _FILE


def _is_of(intent: Intent | None, record: Mapping[str, Any]) -> bool:
    """Whether an outcome may be about this intent: the "failed" of a later run may be about its
    build.
    """
    return intent is not None and intent.run_id == record["run"]


def _staged(record: Mapping[str, Any]) -> Staged:
    """Nothing but the fact where the record has no more."""
    values = {name: record.get("staged", {}).get(name, "") for name in ("id", "url", "tag")}
    if not all(type(value) is str for value in values.values()):
        raise TypeError(f"staged of outcome is {record['staged']!r}")
    return Staged(**values)


# What each event carries, besides `v run seq at durable event`. A step also has its `attempt`, if
# it is not the first, and its `error`, if there was one; `built` names the files that were
# `prebuilt`, if there are any, says whether it was done `again`, and has its `seal`, as `attested`
# has; the outcome "staged" has the `id`, `url` and `tag` of what is `staged`, and its `seal`.
_EVENTS: Mapping[str, Sequence[tuple[str, type]]] = {
    "run_started": [
        ("plan", str),
        ("commit", str),
        ("tool", str),
        ("started_at", str),
        ("ecosystems", list),
    ],
    "planned": [("needs", dict)],
    "step_started": [("node", str)],
    "step_ended": [("node", str), ("duration_s", float)],
    "built": [("package", str), ("version", str), ("fingerprint", str), ("artifacts", list)],
    "attested": [("package", str), ("version", str), ("files", dict)],
    "intent": [("package", str), ("version", str), ("registry", str), ("digests", dict)],
    "outcome": [("package", str), ("version", str), ("outcome", str), ("reason", str)],
    "run_ended": [("result", str)],
}
_OF_PACKAGES = frozenset(event for event, fields in _EVENTS.items() if ("package", str) in fields)
_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
