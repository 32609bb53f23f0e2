"""The tables that a log ends with, of a run and of an approval, and what stands below them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.model import Outcome
from releasekit.problems import Problem
from releasekit.report.remarks import hint_lines, signed_line, tagged_lines, warning_table
from releasekit.report.spent import spent_line, was_held_up
from releasekit.report.text import columns, describe_pages, end_block, few, split_staged
from releasekit.report.view import View
from releasekit.text.escape import clip, log_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from releasekit.model import Report

_FEW: Final = 3


def results_table(report: Report, *, verbose: bool = False) -> str:
    """Plain text, for a log. A thousand packages may have been there already: more than a few share
    one line.
    """
    view = View(report)
    kept = [
        result.package.id
        for result in report.results
        if result.outcome is Outcome.ALREADY_PUBLISHED and not result.hint
    ]
    counted = frozenset(kept) if len(kept) > _FEW else frozenset()
    rows = [
        (str(result.package.id), result.package.version, result.outcome.value, result.reason)
        for result in view.failures_last
        if result.package.id not in counted
    ]
    lines = columns([("package", "version", "outcome", "why"), *rows]) if rows else []
    if counted:
        lines.append(log_line(f"already published ({len(kept)}): {few([*map(str, kept)], _FEW)}"))
    return "\n".join(
        [*lines, *([""] if lines else []), *remarks(view, verbose=verbose), view.headline]
    )


def remarks(view: View, *, verbose: bool = False) -> list[str]:
    """Below the results: warnings, what a dry run would have uploaded, what to do about failures,
    what was signed, and what was tagged and announced. What builds were kept from stands there
    where one has failed, which may be why; and what the run spent, where pauses made it long.
    """
    report = view.report
    # What a blocked package needs has a line of its own.
    hints = hint_lines(
        (str(each.package.id), each.hint, each.problem)
        for each in view.failures_first
        if each.problem is not Problem.BLOCKED
    )
    a_build_failed = any(each.log and not each.outcome.done for each in report.results)
    staged, paged = split_staged(report.results)
    return [
        *warning_table((result.package, result.warnings) for result in report.results),
        *_list_uploads(report),
        *end_block(hints),
        *(["review and approve what is staged: releasekit approve", ""] if staged else []),
        *end_block([log_line(describe_pages(paged))] if paged else []),
        *(
            [log_line(f"builds: {report.builds}")]
            if report.builds and (verbose or a_build_failed)
            else []
        ),
        *signed_line(report),
        *(spent_line(report.spent, report.duration_s) if verbose or was_held_up(report) else []),
        *tagged_lines(report.results),
    ]


def _list_uploads(report: Report) -> list[str]:
    files = []
    for result in report.results if report.dry_run else ():
        for file in result.artifacts if result.outcome is Outcome.WOULD_PUBLISH else ():
            # A Go module's file is named after its version alone.
            alone = file.path.stem == result.package.version
            name = f"{result.package.id.name} {file.filename}" if alone else file.filename
            files.append((name, f"{file.size} bytes", f"sha256:{file.sha256}"))
    return ["would be uploaded:", *columns(files), ""] if files else []


def approval_table(
    rows: Sequence[tuple[str, str, str, str]], hints: Iterable[tuple[str, str, Problem | None]]
) -> str:
    """What became of a release that was decided about. `rows` are package, version, outcome and
    reason; `hints` are those of `hint_lines`.
    """
    shown = [(*row[:3], clip(row[3], 1_000)) for row in rows]
    lines = ["", *columns([("package", "version", "outcome", "why"), *shown]), ""]
    return "\n".join([*lines, *hint_lines(hints)])
