"""results.json: what a run leaves behind for other programs, and for `mode: report`.

docs/results.schema.json is its schema and docs/results.md its description.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast, get_args

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
from releasekit.report.attested_rows import (
    attestation_of,
    attestation_row,
    statement_of,
    statement_row,
)
from releasekit.report.record import MAX_BYTES, Record
from releasekit.report.spent_rows import package_row, package_spent, run_row, run_spent
from releasekit.report.tagged_rows import announcement_of, announcement_row, tag_of, tag_row
from releasekit.report.verdict import verdict_of
from releasekit.report.warnings import warning_rows
from releasekit.text.json_text import MAX_VALUES, values_in

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA: Final = 1
# What a report takes for each, in kilobytes at most, and for all of them together. 10,000 packages
# of two files, eight dependencies and four phases are 220,000.
_PACKAGE_KB: Final = 6
_ROW_KB: Final = {"artifacts": 2, "log": 0}
MAX_KB: Final = 240_000
MAX_PACKAGES: Final = 30_000


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
        "spent": run_row(report.spent),
        "provenance": report.provenance,
        "statement": statement_row(report.statement),
        "packages": [
            _row(result, report.edges.get(result.package.id, frozenset()))
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


def _row(result: Result, dependencies: Iterable[PackageId]) -> dict[str, object]:
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
                "attestation": attestation_row(artifact.attestation),
            }
            for artifact in result.artifacts
        ],
        "spans": [
            {"phase": span.phase, "start_s": round(span.start_s, 3), "end_s": round(span.end_s, 3)}
            for span in result.spans
        ],
        "spent": package_row(result.spent),
        "tag": tag_row(result.tag),
        "announcement": announcement_row(result.announcement),
        "warnings": warning_rows(result.warnings),
        "log": list(result.log),
    }


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
        builds=_since(record, "builds"),
        project=_since(record, "project"),
        repository=_since(record, "repository"),
        run_url=_since(record, "run_url"),
        registries=record.mapping("registries") if "registries" in record.values else {},
        results=tuple(results),
        private=tuple(_package(row, row.text("reason")) for row in record.records("private")),
        edges=edges,
        spent=run_spent(record),
        provenance=_since(record, "provenance"),
        statement=statement_of(record),
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
    """Of the jobs of a release, by file: all together hold no more than one alone may."""
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
        size_kb += sum(map(_size_kb, reports[-1].results))
    return reports


def _size_kb(result: Result) -> int:
    return _PACKAGE_KB + _ROW_KB["artifacts"] * len(result.artifacts) + len(result.spans)


def _since(record: Record, key: str) -> str:
    """What results of an earlier version do not say."""
    return record.text(key) if key in record.values else ""


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


def _package(row: Record, unpublishable: str = "") -> Package:
    return Package(
        id=PackageId(row.text("ecosystem"), row.text("name")),
        version=row.text("version"),
        directory=Path(),
        manifest=Path(),
        unpublishable=unpublishable,
    )


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
        staged=_staged(row),
        artifacts=tuple(map(_artifact, row.records("artifacts"))),
        spans=tuple(
            Span(phase=_phase(span), start_s=span.seconds("start_s"), end_s=span.seconds("end_s"))
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
        spent=package_spent(row),
        tag=tag_of(row),
        announcement=announcement_of(row),
    )


def _artifact(row: Record) -> Artifact:
    path = Path(row.text("filename"))
    return Artifact(
        path=path,
        size=row.count("size"),
        digests={"sha256": row.text("sha256")},
        attestation=attestation_of(row, path),
    )


def _staged(row: Record) -> Staged | None:
    """None in results of an earlier version, too."""
    if row.values.get("staged") is None:
        return None
    staged = row.record("staged")
    return Staged(id=staged.text("id"), url=staged.text("url"), tag=staged.text("tag"))


def _phase(span: Record) -> Phase:
    phase = span.text("phase")
    if phase not in get_args(Phase):
        raise ConfigError(
            f"{span.where}: 'phase' must be one of {', '.join(get_args(Phase))}",
            problem=Problem.RESULTS,
        )
    return cast("Phase", phase)
