"""results.json: what a run leaves behind for other programs, and for `mode: report`.

docs/results.schema.json is its schema and docs/results.md its description. Anybody may have written
the file that is read: an error names the place in it.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, Self, TypeVar, cast, get_args

from releasekit.announced import Announcement, Status, Tag
from releasekit.attested import Attestation, ReleaseStatement, bundle_name
from releasekit.errors import ConfigError
from releasekit.model import (
    Artifact,
    Outcome,
    Package,
    PackageId,
    PackageWarning,
    Phase,
    Report,
    Result,
    Span,
    Staged,
    WarningName,
)
from releasekit.problems import Problem
from releasekit.report.view import verdict_of
from releasekit.spent import WAITS, WORK, RunSpent, Spent, Step
from releasekit.text.json_text import MAX_VALUES, parse_json, values_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from releasekit.spent import Wait, Work

SCHEMA: Final = 1
# Results of 10,000 packages are some 20 MB, with the last lines of each build.
MAX_BYTES: Final = 32 * 1024 * 1024
# What a report takes for each, in kilobytes at most, and for all of them together. 10,000 packages
# of two files, eight dependencies and four phases are 220,000.
_PACKAGE_KB: Final = 6
_ROW_KB: Final = {"artifacts": 2, "log": 0}
MAX_KB: Final = 240_000
MAX_PACKAGES: Final = 30_000
# The last steps of a longer chain: the report of a run shows no more either.
MOST_STEPS: Final = 1_000
_PHASES: Final[tuple[Phase, ...]] = get_args(Phase)
_Choice = TypeVar("_Choice", bound=StrEnum)
_Member = TypeVar("_Member", bound=str)


def results_json(report: Report) -> str:
    """Every package once, in publish order."""
    document = {
        "schema": SCHEMA,
        "run_id": report.run_id,
        "plan_digest": report.plan_digest,
        "commit": report.commit,
        "started_at": report.started_at,
        "duration_s": round(report.duration_s, 3),
        "dry_run": report.dry_run,
        "builds": report.builds,
        "project": report.project,
        "repository": report.repository,
        "run_url": report.run_url,
        "registries": dict(sorted(report.registries.items())),
        "result": verdict_of(report),
        "spent": _run_spent_row(report.spent),
        "provenance": report.provenance,
        "statement": _statement_row(report.statement),
        "packages": [
            _result_row(result, report.edges.get(result.package.id, frozenset()))
            for result in report.results
        ],
        "private": [
            {
                "ecosystem": package.id.ecosystem,
                "name": package.id.name,
                "version": package.version,
                "reason": package.unpublishable,
            }
            for package in report.private
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def load_results(text: str | bytes, where: str = "results.json") -> Report:
    """The report that `text` was written from; paths are lost, and an artifact's is its filename.

    Raises ConfigError naming `where` (the file) and the key.
    """
    record = Record.parse(text, where)
    if record.count("schema") != SCHEMA:
        raise ConfigError(
            f"{where}: schema {record.count('schema')} is not known here, only {SCHEMA}",
            hint="Let the report job use the version of the action the publish jobs used.",
            problem=Problem.RESULTS,
        )
    _refuse_many(record)
    edges: dict[PackageId, frozenset[PackageId]] = {}
    results: list[Result] = []
    for row in record.records("packages"):
        results.append(_result(row))
        edges[results[-1].package.id] = frozenset(map(PackageId.parse, row.texts("dependencies")))
    twice = [name for name, count in Counter(r.package.id for r in results).items() if count > 1]
    if twice:
        raise ConfigError(f"{where}: {twice[0]} is listed more than once", problem=Problem.RESULTS)
    return Report(
        run_id=record.text("run_id"),
        plan_digest=record.text("plan_digest"),
        commit=record.text("commit"),
        started_at=_moment(record, "started_at"),
        duration_s=record.seconds("duration_s"),
        dry_run=record.flag("dry_run"),
        builds=record.text_since("builds"),
        project=record.text_since("project"),
        repository=record.text_since("repository"),
        run_url=record.text_since("run_url"),
        registries=record.mapping("registries") if "registries" in record.values else {},
        results=tuple(results),
        private=tuple(_package(row, row.text("reason")) for row in record.records("private")),
        edges=edges,
        spent=_run_spent(record),
        provenance=record.text_since("provenance"),
        statement=_statement(record),
    )


def _refuse_many(record: Record) -> None:
    """Raises ConfigError for more than a report has room for."""
    found = record.values.get("packages")
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    size_kb = _PACKAGE_KB * len(rows) + sum(
        len(value) * _ROW_KB.get(key, 1)
        for row in rows
        for key, value in row.items()
        if isinstance(value, list)
    )
    if size_kb > MAX_KB or len(rows) > MAX_PACKAGES:
        raise ConfigError(
            f"{record.where}: more packages, files and dependencies than a report takes: "
            f"{MAX_PACKAGES} packages, or {MAX_KB // 2} files",
            problem=Problem.RESULTS,
        )


def load_all(texts: Iterable[tuple[str, bytes]]) -> list[Report]:
    """The reports of the jobs of a release: together they may hold as much as one alone."""
    reports: list[Report] = []
    size = values = size_kb = 0
    for where, text in texts:
        size, values = size + len(text), values + values_in(text)
        if reports and (size > MAX_BYTES or values > MAX_VALUES or size_kb > MAX_KB):
            raise ConfigError(
                f"{where}: with the results before it, more than {MAX_BYTES} bytes, {MAX_VALUES} "
                "values, or what a report takes",
                hint="Join only the results.json files of the jobs of one workflow run.",
                problem=Problem.RESULTS,
            )
        reports.append(load_results(text, where))
        size_kb += sum(
            _PACKAGE_KB + _ROW_KB["artifacts"] * len(result.artifacts) + len(result.spans)
            for result in reports[-1].results
        )
    return reports


def _moment(record: Record, key: str) -> str:
    text = record.text(key)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ConfigError(
            f"{record.where}: {key!r} must be an ISO 8601 time in UTC, not {text[:60]!r}",
            problem=Problem.RESULTS,
        )
    return text


def _result_row(result: Result, dependencies: Iterable[PackageId]) -> dict[str, object]:
    return {
        "ecosystem": result.package.id.ecosystem,
        "name": result.package.id.name,
        "version": result.package.version,
        "outcome": result.outcome,
        "reason": result.reason,
        "hint": result.hint,
        "problem": result.problem or "",
        "attempts": result.attempts,
        "duration_s": round(result.duration_s, 3),
        "url": result.url,
        "staged": asdict(result.staged) if result.staged else None,
        "dependencies": [str(package) for package in sorted(dependencies)],
        "artifacts": [
            {
                "filename": artifact.filename,
                "sha256": artifact.sha256,
                "size": artifact.size,
                "attestation": artifact.attestation and _attestation_row(artifact.attestation),
            }
            for artifact in result.artifacts
        ],
        "spans": [
            {"phase": span.phase, "start_s": round(span.start_s, 3), "end_s": round(span.end_s, 3)}
            for span in result.spans
        ],
        "spent": result.spent and _package_spent_row(result.spent),
        "tag": tag_row(result.tag),
        "announcement": announcement_row(result.announcement),
        "warnings": warning_rows(result.warnings),
        "log": list(result.log),
    }


def _result(row: Record) -> Result:
    return Result(
        package=_package(row),
        outcome=row.choice("outcome", Outcome),
        reason=row.text("reason"),
        hint=row.text("hint"),
        problem=row.problem("problem"),
        log=row.texts("log"),
        attempts=row.count("attempts"),
        duration_s=row.seconds("duration_s"),
        url=row.text("url"),
        staged=Staged(id=staged.text("id"), url=staged.text("url"), tag=staged.text("tag"))
        if (staged := row.optional("staged"))
        else None,
        artifacts=tuple(map(_artifact, row.records("artifacts"))),
        spans=tuple(
            Span(
                phase=span.member("phase", _PHASES),
                start_s=span.seconds("start_s"),
                end_s=span.seconds("end_s"),
            )
            for span in row.records("spans")
        ),
        warnings=tuple(
            PackageWarning(
                name=warning.choice("name", WarningName),
                message=warning.text("message"),
                error=warning.flag("error"),
            )
            for warning in row.records("warnings")
        ),
        spent=_package_spent(row),
        tag=_tag(row),
        announcement=_announcement(row),
    )


def _package(row: Record, unpublishable: str = "") -> Package:
    return Package(
        id=PackageId(row.text("ecosystem"), row.text("name")),
        version=row.text("version"),
        directory=Path(),
        manifest=Path(),
        unpublishable=unpublishable,
    )


def _artifact(row: Record) -> Artifact:
    path = Path(row.text("filename"))
    return Artifact(
        path=path,
        size=row.count("size"),
        digests={"sha256": row.text("sha256")},
        attestation=_attestation(signed, Path(bundle_name(path.name)))
        if (signed := row.optional("attestation"))
        else None,
    )


def warning_rows(warnings: Sequence[PackageWarning]) -> list[dict[str, object]]:
    return [
        {
            "name": warning.name,
            "problem": warning.name.problem,
            "message": warning.message,
            "error": warning.error,
        }
        for warning in warnings
    ]


def tag_row(tag: Tag | None) -> dict[str, object] | None:
    if tag is None:
        return None
    return {"name": tag.name, "commit": tag.commit, "object": tag.object, **_state(tag)}


def announcement_row(release: Announcement | None) -> dict[str, object] | None:
    return {"tag": release.tag, **_state(release)} if release else None


def _state(followed: Tag | Announcement) -> dict[str, object]:
    return {
        "status": followed.status,
        "url": followed.url,
        "note": followed.note,
        "hint": followed.hint,
        "problem": followed.problem or "",
    }


def _tag(row: Record) -> Tag | None:
    if (tag := row.optional("tag")) is None:
        return None
    return Tag(
        name=tag.text("name"),
        status=tag.choice("status", Status),
        commit=tag.text("commit"),
        object=tag.text("object"),
        url=tag.text("url"),
        note=tag.text("note"),
        hint=tag.text("hint"),
        problem=tag.problem("problem"),
    )


def _announcement(row: Record) -> Announcement | None:
    if (release := row.optional("announcement")) is None:
        return None
    return Announcement(
        tag=release.text("tag"),
        status=release.choice("status", Status),
        url=release.text("url"),
        note=release.text("note"),
        hint=release.text("hint"),
        problem=release.problem("problem"),
    )


def _attestation_row(signed: Attestation) -> dict[str, object]:
    return {
        "log_index": signed.log_index,
        "log_url": signed.log_url,
        "url": signed.link,
        "sha256": signed.sha256,
    }


def _attestation(row: Record, path: Path) -> Attestation:
    """The page of the entry follows from the log."""
    return Attestation(
        path=path,
        sha256=row.text("sha256"),
        log_index=row.count("log_index"),
        log_url=row.text("log_url"),
    )


def _statement_row(statement: ReleaseStatement | None) -> dict[str, object] | None:
    if statement is None:
        return None
    return {
        "filename": statement.path.name,
        "subjects": statement.subjects,
        "url": statement.url,
        "note": statement.note,
        "attestations": [_attestation_row(each) for each in statement.attestations],
    }


def _statement(record: Record) -> ReleaseStatement | None:
    if (row := record.optional("statement")) is None:
        return None
    path = Path(Path(row.text("filename")).name)
    return ReleaseStatement(
        path=path,
        subjects=row.count("subjects"),
        attestations=tuple(_attestation(each, path) for each in row.records("attestations")),
        url=row.text("url"),
        note=row.text("note"),
    )


def _run_spent_row(spent: RunSpent | None) -> dict[str, object] | None:
    if spent is None:
        return None
    return {
        **_spent_row(spent.total),
        "chain": [
            {"package": step.package, "what": step.what, "lasted_s": round(step.lasted_s, 3)}
            for step in spent.chain[-MOST_STEPS:]
        ],
        "advice": "",  # earlier versions ask for it
    }


def _package_spent_row(spent: Spent) -> dict[str, object]:
    longest_s = round(spent.longest_s, 3)
    return {**_spent_row(spent), "waited_for": spent.waited_for, "longest_s": longest_s}


def _spent_row(spent: Spent) -> dict[str, object]:
    return {
        "requests": spent.requests,
        "sent_bytes": spent.sent_bytes,
        "received_bytes": spent.received_bytes,
        "retries": spent.retries,
        "work_s": {what: round(spent.seconds.get(what, 0.0), 3) for what in WORK},
        "waits_s": {what: round(spent.seconds.get(what, 0.0), 3) for what in WAITS},
    }


def _run_spent(record: Record) -> RunSpent | None:
    if (row := record.optional("spent")) is None:
        return None
    return RunSpent(
        total=_spent(row),
        chain=tuple(
            Step(
                package=step.text("package"),
                what=step.member("what", (*WORK, *WAITS)),
                lasted_s=step.seconds("lasted_s"),
            )
            for step in row.records("chain")
        ),
    )


def _package_spent(record: Record) -> Spent | None:
    if (row := record.optional("spent")) is None:
        return None
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


@dataclass(frozen=True, slots=True)
class Record:
    """`where` is the file and the path to this object in it: "results.json: packages[3]"."""

    where: str
    values: Mapping[str, object]

    @classmethod
    def parse(cls, text: str | bytes, where: str) -> Self:
        if len(text) > MAX_BYTES:
            raise ConfigError(f"{where}: larger than {MAX_BYTES} bytes", problem=Problem.RESULTS)
        try:
            values: object = parse_json(text, max_bytes=None)
        except ValueError as error:
            raise ConfigError(
                f"{where}: not valid JSON: {error}", problem=Problem.RESULTS
            ) from error
        return cls._of(values, where)

    @classmethod
    def _of(cls, values: object, where: str) -> Self:
        if not isinstance(values, dict):
            raise ConfigError(
                f"{where}: must be an object, not {repr(values)[:60]}", problem=Problem.RESULTS
            )
        return cls(where, cast("dict[str, object]", values))

    def text(self, key: str) -> str:
        value = self._get(key)
        return value if isinstance(value, str) else self._wrong(key, "text")

    def flag(self, key: str) -> bool:
        value = self._get(key)
        return value if isinstance(value, bool) else self._wrong(key, "true or false")

    def count(self, key: str) -> int:
        value = self._get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63:
            return value
        return self._wrong(key, "a whole number")

    def seconds(self, key: str) -> float:
        value = self._get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = float(value) if abs(value) < 1e15 else math.inf
            if 0 <= number < math.inf:
                return number
        return self._wrong(key, "a number of seconds")

    def choice(self, key: str, kind: type[_Choice]) -> _Choice:
        value = self.text(key)
        try:
            return kind(value)
        except ValueError:
            return self._wrong(key, "one of " + ", ".join(kind))

    def problem(self, key: str) -> Problem | None:
        """Earlier versions write none, and later ones may know more."""
        known = self.text_since(key)
        return next((problem for problem in Problem if problem == known), None)

    def text_since(self, key: str) -> str:
        """Empty in results of an earlier version, which lack the key."""
        return self.text(key) if key in self.values else ""

    def member(self, key: str, allowed: tuple[_Member, ...]) -> _Member:
        value = self.text(key)
        for each in allowed:
            if each == value:
                return each
        raise ConfigError(
            f"{self.where}: {key!r} must be one of {', '.join(map(str, allowed))}",
            problem=Problem.RESULTS,
        )

    def texts(self, key: str) -> tuple[str, ...]:
        values = self._list(key)
        if not all(isinstance(value, str) for value in values):
            return self._wrong(key, "a list of texts")
        return tuple(cast("list[str]", values))

    def record(self, key: str) -> Self:
        return self._of(self._get(key), f"{self.where}: {key}")

    def optional(self, key: str) -> Self | None:
        """None in results of an earlier version, too."""
        return None if self.values.get(key) is None else self.record(key)

    def mapping(self, key: str) -> dict[str, str]:
        """Names to texts."""
        inner = self.record(key)
        return {name: inner.text(name) for name in inner.values}

    def records(self, key: str) -> Iterator[Self]:
        """Once: drops each when it has been read, so that memory holds one form of all."""
        values = self._list(key)
        for index, value in enumerate(values):
            values[index] = None
            yield self._of(value, f"{self.where}: {key}[{index}]")

    def _list(self, key: str) -> list[object]:
        value = self._get(key)
        return value if isinstance(value, list) else self._wrong(key, "a list")

    def _get(self, key: str) -> object:
        if key not in self.values:
            raise ConfigError(f"{self.where}: {key!r} is missing", problem=Problem.RESULTS)
        return self.values[key]

    def _wrong(self, key: str, expected: str) -> NoReturn:
        raise ConfigError(
            f"{self.where}: {key!r} must be {expected}, not {repr(self.values[key])[:60]}",
            problem=Problem.RESULTS,
        )
