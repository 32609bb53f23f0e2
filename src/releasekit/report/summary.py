"""The job summary of a finished run, and the table a terminal or a log ends with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.model import Outcome
from releasekit.report.endings import hint_lines
from releasekit.report.links import run_url
from releasekit.report.markdown import (
    LIMIT_BYTES,
    details,
    first_fitting,
    package_cells,
    private_section,
    table,
)
from releasekit.report.mermaid import drawable, flowchart
from releasekit.report.spent_words import spent_line, spent_section
from releasekit.report.text import columns, seconds
from releasekit.report.timeline import timeline
from releasekit.report.verdict import headline, verdict_of
from releasekit.report.warnings import warning_section, warning_table
from releasekit.text.escape import clip, code, fence, link, log_line, markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.model import Package, PackageWarning, Report, Result

_ORDER: Final = (
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
_STYLES: Final = {
    Outcome.PUBLISHED: "done",
    Outcome.ALREADY_PUBLISHED: "kept",
    Outcome.STAGED: "doubt",
    Outcome.FAILED: "failed",
    Outcome.UNKNOWN: "doubt",
    Outcome.BLOCKED: "blocked",
    Outcome.REMOVED: "kept",
    Outcome.WOULD_PUBLISH: "done",
    Outcome.CANCELLED: "doubt",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Detail:
    """How much a summary says. `chars` bounds each reason and hint, `logs` the build logs."""

    rows: int
    chars: int
    logs: int
    pictures: bool


# Each step leaves out what a reader misses least. The last one stays below 300 kB even when every
# character has to be escaped.
_DETAILS: Final = (
    _Detail(rows=2_000, chars=1_000, logs=9, pictures=True),
    _Detail(rows=2_000, chars=300, logs=9, pictures=False),
    _Detail(rows=500, chars=300, logs=3, pictures=False),
    _Detail(rows=100, chars=200, logs=0, pictures=False),
    _Detail(rows=15, chars=200, logs=0, pictures=False),
)


def summary(report: Report, *, limit_bytes: int = LIMIT_BYTES) -> str:
    """Markdown; it leaves out whole sections rather than exceed the limit."""
    texts = (_summary(report, detail) for detail in _DETAILS)
    return first_fitting(texts, limit_bytes)


def _summary(report: Report, detail: _Detail) -> str:
    waiting = [result for result in report.results if result.outcome is Outcome.STAGED]
    rest = [result for result in ordered(report) if result.outcome is not Outcome.STAGED]
    # A published package with a hint has left something else undone.
    told = [result for result in rest if not result.outcome.done or result.hint]
    done = [result for result in rest if result.outcome.done and not result.hint]
    lines = [f"## {headline(report)}", "", *_how_to_finish(report)]
    lines += _waiting_section(waiting, detail, run_url(report))
    lines += _told_section(told, detail)
    lines += _logs(told, detail)
    lines += warning_section(_warned(report), detail.rows)
    lines += _done_section(done, detail)
    lines += _files(report, detail)
    if detail.pictures:
        lines += _pictures(report)
    lines += spent_section(report.spent)
    lines += private_section(report.private, detail.rows)
    lines += [_signature(report)]
    return "\n".join(lines) + "\n"


def _warned(report: Report) -> list[tuple[Package, Sequence[PackageWarning]]]:
    return [(result.package, result.warnings) for result in report.results]


def ordered(report: Report) -> list[Result]:
    """What needs attention comes first; otherwise in publish order."""
    return sorted(report.results, key=lambda result: _ORDER.index(result.outcome))


def failures_last(report: Report) -> list[Result]:
    """What needs attention comes last, because the end of a log is read first; otherwise in publish
    order.
    """
    return sorted(report.results, key=lambda result: -_ORDER.index(result.outcome))


def _how_to_finish(report: Report) -> list[str]:
    if all(result.outcome.done for result in report.results) or report.dry_run:
        return []
    verdict = verdict_of(report)
    if verdict == "staged":
        behind = any(result.outcome is Outcome.BLOCKED for result in report.results)
        then = ", then run it again: it publishes what needs that." if behind else "; that is all."
        return [f"Approve what is staged{then}", ""]
    cancelled = verdict == "cancelled"
    first = "The run was cancelled." if cancelled else "Fix what is named below first."
    then = "published packages are left alone, and only what is missing is uploaded"
    return [f"{first} Then run it again to finish: {then}.", ""]


def _waiting_section(results: Sequence[Result], detail: _Detail, run: str) -> list[str]:
    if not results:
        return []
    rows = [
        (
            *package_cells(result.package),
            code(clip(result.staged.tag, 100)) if result.staged and result.staged.tag else "",
            markdown(clip(result.reason, detail.chars)),
            link("review", result.staged.url)
            if result.staged and 0 < len(result.staged.url) <= 300
            else "",
        )
        for result in results[: detail.rows]
    ]
    heading = ("Package", "Version", "Tag", "Why", "Alone")
    return [
        "### Waiting for approval",
        "",
        "One review of all of them, as their maintainer:",
        "",
        fence([f"releasekit approve {f'--run {run}' if run else 'results.json'}"]),
        "",
        *table(heading, rows),
        "",
        *_more(results, detail),
    ]


def _told_section(results: Sequence[Result], detail: _Detail) -> list[str]:
    if not results:
        return []
    rows = [
        (
            *package_cells(result.package),
            f"**{result.outcome}**",
            markdown(clip(result.reason, detail.chars)),
            markdown(clip(result.hint, detail.chars)),
        )
        for result in results[: detail.rows]
    ]
    heading = ("Package", "Version", "Outcome", "Why", "What to do")
    return [*table(heading, rows), "", *_more(results, detail)]


def _done_section(results: Sequence[Result], detail: _Detail) -> list[str]:
    if not results:
        return []
    rows = [
        (
            *package_cells(result.package),
            link(result.outcome, result.url) if len(result.url) <= 300 else result.outcome,
            str(result.attempts),
            seconds(result.duration_s),
        )
        for result in results[: detail.rows]
    ]
    heading = ("Package", "Version", "Outcome", "Attempts", "Time")
    return [*table(heading, rows), "", *_more(results, detail)]


def _more(rows: Sequence[object], detail: _Detail) -> list[str]:
    left = len(rows) - detail.rows
    return [f"… and {left} more, in the results file.", ""] if left > 0 else []


def _logs(results: Sequence[Result], detail: _Detail) -> list[str]:
    with_log = [result for result in results if result.log][: detail.logs]
    return [
        line
        for result in with_log
        for line in details(
            f"Last lines of {package_cells(result.package)[0]}",
            [fence(clip(line, 500) for line in result.log[-40:])],
        )
    ]


def _files(report: Report, detail: _Detail) -> list[str]:
    rows = [
        (code(clip(artifact.filename, 200)), str(artifact.size), code(artifact.sha256[:64]))
        for result in report.results
        for artifact in result.artifacts
    ]
    if not rows:
        return []
    shown = table(("File", "Bytes", "SHA-256"), rows[: detail.rows])
    return details("Files", [*shown, "", *_more(rows, detail)])


def _pictures(report: Report) -> list[str]:
    lines: list[str] = []
    if any(report.edges.values()):
        lines += details("Dependency graph", _graph(report))
    bars = timeline(report)
    if bars:
        lines += details("Timeline", [fence(bars)])
    return lines


def _graph(report: Report) -> list[str]:
    labels = {
        result.package.id: (
            f"{result.package}: {result.outcome}",
            _STYLES[result.outcome],
        )
        for result in report.results
    }
    chart = flowchart(labels, report.edges)
    if drawable(chart):
        return [fence(chart.splitlines(), "mermaid")]
    rows = [
        (code(clip(str(name), 100)), ", ".join(code(clip(str(d), 100)) for d in sorted(needs)[:20]))
        for name, needs in sorted(report.edges.items())[:1_000]
        if needs
    ]
    return table(("Package", "Needs"), rows)


def _signature(report: Report) -> str:
    parts = [f"Took {seconds(report.duration_s)}", f"run {code(clip(report.run_id, 100))}"]
    if report.commit:
        parts.append(f"commit {code(clip(report.commit, 100))}")
    if report.builds:
        parts.append(f"builds: {markdown(clip(report.builds, 300))}")
    return ", ".join(parts)


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
        *warning_table(_warned(report)),
        *(["would be uploaded:", *columns(files), ""] if files else []),
        *([*hints, ""] if hints else []),
        *(["review and approve what is staged: releasekit approve", ""] if staged else []),
        *([log_line(f"builds: {report.builds}")] if report.builds else []),
        *spent_line(report.spent),
    ]
