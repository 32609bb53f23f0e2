"""Which packages waited for which: one bar per package, in characters that every viewer shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.report.text import columns, seconds
from releasekit.text.escape import clip

if TYPE_CHECKING:
    from releasekit.model import Phase, Report, Result

_MARKS: Final[dict[Phase, str]] = {
    "build": "=",
    "upload": "#",
    "confirm": ".",
    "approval": "~",
    "follow-up": "-",
    "wait": ":",
}
_WIDTH: Final = 60
_ROWS: Final = 60


def timeline(report: Report) -> list[str]:
    """Lines for a code block, ordered by start; only the longest-running packages if there are too
    many.
    """
    timed = [result for result in report.results if result.spans]
    if not timed:
        return []
    end_s = max(report.duration_s, *(span.end_s for result in timed for span in result.spans))
    longest = sorted(timed, key=_busy_s, reverse=True)[:_ROWS]
    longest.sort(key=lambda result: (min(span.start_s for span in result.spans), result.package.id))
    rows = [
        (clip(str(result.package.id), 40), f"|{_bar(result, end_s)}|", seconds(_busy_s(result)))
        for result in longest
    ]
    seen = {span.phase for result in timed for span in result.spans}
    legend = [f"{mark} {phase}" for phase, mark in _MARKS.items() if phase in seen]
    return [*columns(rows), "", "   ".join([*legend, f"whole width: {seconds(end_s)}"])]


def _busy_s(result: Result) -> float:
    return sum(span.end_s - span.start_s for span in result.spans)


def _bar(result: Result, end_s: float) -> str:
    cells = [" "] * _WIDTH
    scale = _WIDTH / end_s if end_s else 0.0
    for span in result.spans:
        first = min(round(span.start_s * scale), _WIDTH - 1)
        last = max(first + 1, min(round(span.end_s * scale), _WIDTH))
        cells[first:last] = _MARKS[span.phase] * (last - first)
    return "".join(cells)
