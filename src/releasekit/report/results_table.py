"""The table that a terminal or a log ends with, and what is said below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.model import Outcome
from releasekit.report.endings import hint_lines
from releasekit.report.signed import signed_line
from releasekit.report.spent_words import spent_line
from releasekit.report.tagged import tagged_lines
from releasekit.report.text import columns, few
from releasekit.report.verdict import headline
from releasekit.report.warnings import warning_table
from releasekit.text.escape import log_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.model import Package, PackageWarning, Report, Result

_FEW: Final = 3
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
    """Plain text, for a log. Of packages that were there already there may be a thousand: more than
    a few are one line.
    """
    kept = [str(result.package.id) for result in report.results if _needs_no_row(result)]
    rows = [
        (str(result.package.id), result.package.version, result.outcome.value, result.reason)
        for result in failures_last(report)
        if len(kept) <= _FEW or not _needs_no_row(result)
    ]
    lines = columns([("package", "version", "outcome", "why"), *rows]) if rows else []
    if len(kept) > _FEW:
        lines.append(log_line(f"already published ({len(kept)}): {few(kept, _FEW)}"))
    return "\n".join([*lines, *([""] if lines else []), *remarks(report), headline(report)])


def _needs_no_row(result: Result) -> bool:
    return result.outcome is Outcome.ALREADY_PUBLISHED and not result.hint


def remarks(report: Report) -> list[str]:
    """Below the results: warnings, what a dry run would have uploaded, what to do about failures,
    what builds were kept from, what was signed, and what was tagged and announced.
    """
    files = [
        (artifact.filename, f"{artifact.size} bytes", f"sha256:{artifact.sha256}")
        for result in report.results
        for artifact in result.artifacts
        if report.dry_run and not result.outcome.done
    ]
    hints = hint_lines((str(each.package.id), each.hint, each.problem) for each in ordered(report))
    staged = any(result.outcome is Outcome.STAGED for result in report.results)
    return [
        *warning_table(warned(report)),
        *(["would be uploaded:", *columns(files), ""] if files else []),
        *([*hints, ""] if hints else []),
        *(["review and approve what is staged: releasekit approve", ""] if staged else []),
        *([log_line(f"builds: {report.builds}")] if report.builds else []),
        *signed_line(report),
        *spent_line(report.spent),
        *tagged_lines(report.results),
    ]


def warned(report: Report) -> list[tuple[Package, Sequence[PackageWarning]]]:
    return [(result.package, result.warnings) for result in report.results]
