"""What went well, which nobody has to read: folded, by ecosystem."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from releasekit.model import Outcome
from releasekit.report.links import package_url
from releasekit.report.markdown import details, package_cells, table
from releasekit.report.marks import OUTCOMES
from releasekit.report.signed import entry_link
from releasekit.report.spent_words import size
from releasekit.report.tagged import page_of, short
from releasekit.report.text import seconds
from releasekit.text.escape import clip, code, link, markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.model import Report, Result
    from releasekit.report.summary.detail import Detail

# A table of no more is shown at once.
_FEW: Final = 10
# Columns; those behind them are there where they say something.
_ALWAYS: Final = 4


def done_section(report: Report, detail: Detail) -> list[str]:
    """What a dry run would publish is among it."""
    fine = [
        result
        for result in report.results
        if not result.hint and (result.outcome.done or result.outcome is Outcome.WOULD_PUBLISH)
    ]
    few = len(fine) <= _FEW
    groups: dict[str, list[Result]] = {}
    for result in fine[: detail.rows]:
        groups.setdefault("" if few else result.package.id.ecosystem, []).append(result)
    left = len(fine) - detail.rows
    return [
        *(
            line
            for ecosystem, results in sorted(groups.items())
            for line in details(_title(ecosystem, results), _rows(results, detail), open_=few)
        ),
        *([f"… and {left} more, in the results file.", ""] if left > 0 else []),
    ]


def _title(ecosystem: str, results: Sequence[Result]) -> str:
    counts = Counter(result.outcome for result in results)
    words = [
        f"{mark.square} {counts[outcome]} {mark.word}"
        for outcome, mark in OUTCOMES.items()
        if counts[outcome]
    ]
    named = f"<b>{markdown(clip(ecosystem, 100))}</b>: " if ecosystem else ""
    return f"{named}{', '.join(words)}"


def _rows(results: Sequence[Result], detail: Detail) -> list[str]:
    """Why is told where it differs: a dry run may have built one and not the other."""
    told = len({(result.outcome, result.reason) for result in results}) > len(
        {result.outcome for result in results}
    )
    heading = ("Package", "Version", "Outcome", "Time", "Tag", "Release", "Why")
    cells = [
        (
            *package_cells(result.package, package_url(result)),
            f"{OUTCOMES[result.outcome].square} {result.outcome}{_attempts(result)}",
            seconds(result.duration_s) if result.spans or result.duration_s else "",
            link(short(result.tag), page_of(result.tag)),
            link(short(result.announcement), page_of(result.announcement)),
            markdown(clip(result.reason, detail.chars)) if told else "",
        )
        for result in results
    ]
    shown = [n for n in range(len(heading)) if n < _ALWAYS or any(row[n] for row in cells)]
    return table([heading[n] for n in shown], [[row[n] for n in shown] for row in cells])


def _attempts(result: Result) -> str:
    return f", {result.attempts} attempts" if result.attempts > 1 else ""


def files_section(report: Report, detail: Detail) -> list[str]:
    files = [
        artifact
        for result in report.results
        for artifact in result.artifacts
        if not (report.dry_run and result.outcome.done)
    ]
    if not files or not detail.files:
        return []
    signed = any(file.attestation for file in files)
    heading = ("File", "Bytes", "SHA-256", *(["Signed"] if signed else []))
    rows = [
        (
            code(clip(file.filename, 200)),
            str(file.size),
            code(file.sha256[:64]),
            *([link(*entry_link(file))] if signed else []),
        )
        for file in files[: detail.rows]
    ]
    left = len(files) - detail.rows
    more = ["", f"… and {left} more, in the results file."] if left > 0 else []
    count = "1 file" if len(files) == 1 else f"{len(files)} files"
    told = "which would be uploaded" if report.dry_run else "with digests"
    title = f"<b>{count}</b>, {size(sum(file.size for file in files))}, {told}"
    return details(title, [*table(heading, rows), *more])
