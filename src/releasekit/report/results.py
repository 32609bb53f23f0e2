"""results.json: what a run leaves behind for other programs, and for `mode: report`.

docs/results.schema.json is its schema and docs/results.md its description. Anybody may have written
the file that is read: an error names the place in it.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from releasekit.attested import Attestation, ReleaseStatement, bundle_name
from releasekit.errors import ConfigError
from releasekit.model import Artifact, Package, PackageId, PackageWarning, Report, Result
from releasekit.problems import Problem
from releasekit.report.view import verdict_of
from releasekit.spent import WAITS, WORK, Spent
from releasekit.text.codec import Record, row_of
from releasekit.text.json_text import MAX_VALUES, count_values, format_json

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA: Final = 1
# Results of 10,000 packages are some 20 MB, with the last lines of each build.
MAX_BYTES: Final = 32 * 1024 * 1024
# What a report takes for each, in kilobytes at most, and for all of them together. 10,000 packages
# of two files, eight dependencies and four phases are 220,000.
_PACKAGE_KB: Final = 6
_ROW_KB: Final = {"artifacts": 2, "log": 0}
MAX_KB: Final = 240_000
MAX_PACKAGES: Final = 30_000


def results_json(report: Report) -> str:
    """Every package once, in publish order."""
    registries = dict(sorted(report.registries.items()))
    private = [{**_package_row(each), "reason": each.unpublishable} for each in report.private]
    packages = []
    for result in report.results:
        needs = sorted(report.edges.get(result.package.id, ()))
        staged = {"staged": result.staged, "dependencies": [*map(str, needs)]}
        packages.append(row_of(result, package=_package_row(result.package), staged=staged))
    document = row_of(
        report,
        run_id={"schema": SCHEMA, "run_id": report.run_id},
        registries={"registries": registries, "result": verdict_of(report)},
        results={"packages": packages},
        private={"private": private},
        spent={"spent": report.spent and _total_row(report.spent)},
        edges={},
    )
    return format_json(document, to_row) + "\n"


def _package_row(package: Package) -> dict[str, object]:
    return {**row_of(package.id), "version": package.version}


def to_row(value: Any) -> dict[str, object]:
    """What is written for a value: its fields, and what follows from them."""
    match value:
        case Artifact():
            names = {"filename": value.filename, "sha256": value.sha256}
            return row_of(value, path=names, digests={})
        case Attestation():
            return row_of(value, log_url={"log_url": value.log_url, "url": value.link}, path={})
        case ReleaseStatement():
            return row_of(value, path={"filename": value.path.name}, kept={})
        case PackageWarning():
            return row_of(value, name={"name": value.name, "problem": value.name.problem})
        case Spent():
            return _spent_row(value)
        case _:
            return row_of(value)


def _total_row(total: Spent) -> dict[str, object]:
    row = _spent_row(total, waited_for={}, longest_s={})
    return {**row, "chain": [], "advice": ""}  # which earlier versions ask for


def _spent_row(spent: Spent, **instead: dict[str, object]) -> dict[str, object]:
    seconds = {
        key: {what: round(spent.seconds.get(what, 0.0), 3) for what in kinds}
        for key, kinds in (("work_s", WORK), ("waits_s", WAITS))
    }
    return row_of(spent, seconds=seconds, **instead)


def load_results(text: str | bytes, where: str = "results.json") -> Report:
    """The report that `text` was written from; paths are lost, and an artifact's is its filename.

    Raises ConfigError naming `where` (the file) and the key.
    """
    if len(text) > MAX_BYTES:
        raise ConfigError(f"{where}: larger than {MAX_BYTES} bytes", problem=Problem.RESULTS)
    try:
        return _read_report(Record.parse(text, where))
    except ValueError as error:
        raise ConfigError(str(error), problem=Problem.RESULTS) from error


def _read_report(record: Record) -> Report:
    if (schema := record.scalar("schema", int)) != SCHEMA:
        raise ConfigError(
            f"{record.where}: schema {schema} is not known here, only {SCHEMA}",
            hint="Let the report job use the version of the action the publish jobs used.",
            problem=Problem.RESULTS,
        )
    _refuse_many(record)
    edges: dict[PackageId, frozenset[PackageId]] = {}
    results: list[Result] = []
    for row in record.records("packages"):
        of_package = row.optional("spent")
        result = row.read(
            Result,
            package=_read_package(row),
            artifacts=tuple(map(_read_artifact, row.records("artifacts"))),
            spent=of_package and _read_spent(of_package),
        )
        results.append(result)
        edges[result.package.id] = frozenset(map(PackageId.parse, row.texts("dependencies")))
    twice = [name for name, count in Counter(r.package.id for r in results).items() if count > 1]
    if twice:
        raise ValueError(f"{record.where}: {twice[0]} is listed more than once")
    spent = record.optional("spent")
    return record.read(
        Report,
        started_at=_read_moment(record, "started_at"),
        spent=spent and _read_spent(spent, waited_for="", longest_s=0.0),
        statement=_read_statement(record),
        results=tuple(results),
        private=tuple(
            _read_package(row, unpublishable=row.scalar("reason", str))
            for row in record.records("private")
        ),
        edges=edges,
    )


def _refuse_many(record: Record) -> None:
    """Raises ValueError for more than a report has room for."""
    found = record.values.get("packages")
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    size_kb = _PACKAGE_KB * len(rows) + sum(
        len(value) * _ROW_KB.get(key, 1)
        for row in rows
        for key, value in row.items()
        if isinstance(value, list)
    )
    if size_kb > MAX_KB or len(rows) > MAX_PACKAGES:
        raise ValueError(
            f"{record.where}: more packages, files and dependencies than a report takes: "
            f"{MAX_PACKAGES} packages, or {MAX_KB // 2} files"
        )


def load_all(texts: Iterable[tuple[str, bytes]]) -> list[Report]:
    """The reports of the jobs of a release: together they may hold as much as one alone."""
    reports: list[Report] = []
    size = values = size_kb = 0
    for where, text in texts:
        size, values = size + len(text), values + count_values(text)
        if reports and (size > MAX_BYTES or values > MAX_VALUES or size_kb > MAX_KB):
            raise ConfigError(
                f"{where}: with the results before it, more than {MAX_BYTES} bytes, {MAX_VALUES} "
                "values, or what a report takes",
                hint="Join only the results.json files of the jobs of one run.",
                problem=Problem.RESULTS,
            )
        reports.append(load_results(text, where))
        size_kb += sum(
            _PACKAGE_KB + _ROW_KB["artifacts"] * len(result.artifacts) + len(result.spans)
            for result in reports[-1].results
        )
    return reports


def _read_moment(record: Record, key: str) -> str:
    text = record.scalar(key, str)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError(
            f"{record.where}: {key!r} must be an ISO 8601 time in UTC, not {text[:60]!r}"
        )
    return text


def _read_package(row: Record, *, unpublishable: str = "") -> Package:
    return Package(
        id=row.read(PackageId),
        version=row.scalar("version", str),
        directory=Path(),
        manifest=Path(),
        unpublishable=unpublishable,
    )


def _read_artifact(row: Record) -> Artifact:
    path = Path(row.scalar("filename", str))
    signed = row.optional("attestation")
    return row.read(
        Artifact,
        path=path,
        digests={"sha256": row.scalar("sha256", str)},
        attestation=signed and signed.read(Attestation, path=Path(bundle_name(path.name))),
    )


def _read_statement(record: Record) -> ReleaseStatement | None:
    if (row := record.optional("statement")) is None:
        return None
    path = Path(Path(row.scalar("filename", str)).name)
    attestations = tuple(each.read(Attestation, path=path) for each in row.records("attestations"))
    return row.read(ReleaseStatement, path=path, attestations=attestations, kept=False)


def _read_spent(row: Record, **given: object) -> Spent:
    work, waits = row.record("work_s"), row.record("waits_s")
    # Earlier versions signed nothing.
    known = [what for what in WORK if what in work.values or what != "attest"]
    at_work = {what: work.scalar(what, float) for what in known}
    waiting = {what: waits.scalar(what, float) for what in WAITS}
    seconds = {what: lasted_s for what, lasted_s in (at_work | waiting).items() if lasted_s}
    return row.read(Spent, seconds=seconds, **given)
