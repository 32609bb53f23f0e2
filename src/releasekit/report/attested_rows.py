"""What was signed, as results.json has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from releasekit.attested import Attestation, ReleaseStatement, bundle_name

if TYPE_CHECKING:
    from releasekit.report.record import Record


def attestation_row(signed: Attestation | None) -> dict[str, object] | None:
    if signed is None:
        return None
    return {
        "log_index": signed.log_index,
        "log_url": signed.log_url,
        "url": signed.link,
        "sha256": signed.sha256,
    }


def statement_row(statement: ReleaseStatement | None) -> dict[str, object] | None:
    if statement is None:
        return None
    return {
        "filename": statement.path.name,
        "subjects": statement.subjects,
        "url": statement.url,
        "note": statement.note,
        "attestations": [attestation_row(each) for each in statement.attestations],
    }


def attestation_of(row: Record, path: Path) -> Attestation | None:
    """That of the file at `path`; None in results of an earlier version, too."""
    if row.values.get("attestation") is None:
        return None
    return _attestation(row.record("attestation"), Path(bundle_name(path.name)))


def statement_of(row: Record) -> ReleaseStatement | None:
    """None in results of an earlier version, too."""
    if row.values.get("statement") is None:
        return None
    statement = row.record("statement")
    path = Path(Path(statement.text("filename")).name)
    return ReleaseStatement(
        path=path,
        subjects=statement.count("subjects"),
        attestations=tuple(_attestation(each, path) for each in statement.records("attestations")),
        url=statement.text("url"),
        note=statement.text("note"),
    )


def _attestation(row: Record, path: Path) -> Attestation:
    """Its page follows from the log."""
    return Attestation(
        path=path,
        sha256=row.text("sha256"),
        log_index=row.count("log_index"),
        log_url=row.text("log_url"),
    )
