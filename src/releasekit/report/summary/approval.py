"""What waits for a person, and how that person lets all of it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.model import Outcome
from releasekit.report.links import package_url, run_url
from releasekit.report.markdown import package_cells, table
from releasekit.report.marks import OUTCOMES
from releasekit.text.escape import clip, code, fence, link, markdown

if TYPE_CHECKING:
    from releasekit.model import Report, Result
    from releasekit.report.summary.detail import Detail


def approval_section(report: Report, detail: Detail) -> list[str]:
    waiting = [result for result in report.results if result.outcome is Outcome.STAGED]
    if not waiting:
        return []
    run = run_url(report)
    shared = {result.reason for result in waiting}
    width = 4 if len(shared) == 1 else 5
    heading = ("Package", "Version", "Tag", "Alone", "Why")
    rows = [_row(result, detail)[:width] for result in waiting[: detail.rows]]
    left = len(waiting) - detail.rows
    return [
        f"### {OUTCOMES[Outcome.STAGED].square} Waiting for approval",
        "",
        "One review of all of them, as their maintainer:",
        "",
        fence([f"releasekit approve {f'--run {run}' if run else 'results.json'}"]),
        "",
        *([markdown(clip(shared.pop(), detail.chars)), ""] if width == 4 else []),
        *table(heading[:width], rows),
        "",
        *([f"… and {left} more, in the results file.", ""] if left > 0 else []),
    ]


def _row(result: Result, detail: Detail) -> tuple[str, ...]:
    staged, page = result.staged, package_url(result)
    return (
        *package_cells(result.package),
        code(clip(staged.tag, 100)) if staged and staged.tag else "",
        link("review", page) if page else "",
        markdown(clip(result.reason, detail.chars)),
    )
