"""The table that a terminal or a log ends with, and what is said below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.model import Outcome
from releasekit.report.endings import hint_lines
from releasekit.report.spent_words import spent_line
from releasekit.report.text import columns
from releasekit.report.verdict import headline
from releasekit.report.warnings import warning_table
from releasekit.text.escape import log_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.model import Package, PackageWarning, Report, Result

ORDER: Final = (
    Outcome.FAILED,
    Outcome.UNKNOWN,
    Outcome.BLOCKED,
    Outcome.CANCELLED,
    Outcome.REMOVED,
    Outcome.STAGED,
    Outcome.WOULD_PUBLISH,
    Outcome.PUBLISHED,
    Outcome.ALREADY_PUBLISHED,
)


def ordered(report: Report) -> list[Result]:
    """What needs attention comes first; otherwise in publish order."""
    return sorted(report.results, key=lambda result: ORDER.index(result.outcome))


def failures_last(report: Report) -> list[Result]:
    """What needs attention comes last, because the end of a log is read first; otherwise in publish
    order.
    """
    return sorted(report.results, key=lambda result: -ORDER.index(result.outcome))


def results_table(report: Report) -> str:
    """Plain text, for a log."""
    rows = [
        (str(result.package.id), result.package.version, result.outcome.value, result.reason)
        for result in failures_last(report)
    ]
    lines = [*columns([("package", "version", "outcome", "why"), *rows]), ""] if rows else []
    return "\n".join([*lines, *remarks(report), headline(report)])


def remarks(report: Report) -> list[str]:
    """Below the results: warnings, what a dry run would have uploaded, what to do about failures,
    and what builds were kept from.
    """
    files = [
        (artifact.filename, f"{artifact.size} bytes", f"sha256:{artifact.sha256}")
        for result in report.results
        for artifact in result.artifacts
        if report.dry_run and not result.outcome.done
    ]
    hints = hint_lines((str(each.package.id), each.hint) for each in ordered(report) if each.hint)
    staged = any(result.outcome is Outcome.STAGED for result in report.results)
    return [
        *warning_table(warned(report)),
        *(["would be uploaded:", *columns(files), ""] if files else []),
        *([*hints, ""] if hints else []),
        *(["review and approve what is staged: releasekit approve", ""] if staged else []),
        *([log_line(f"builds: {report.builds}")] if report.builds else []),
        *spent_line(report.spent),
    ]


def warned(report: Report) -> list[tuple[Package, Sequence[PackageWarning]]]:
    return [(result.package, result.warnings) for result in report.results]
