"""When what was done, as a Mermaid Gantt chart: the chain of steps that made the run as long as it
was, and below it what took longest in each lane.

https://mermaid.js.org/syntax/gantt.html
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from releasekit.report.text import seconds
from releasekit.spent import WORK
from releasekit.text.escape import gantt_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.model import PackageId, Phase, Report
    from releasekit.spent import Step

# Their titles, and the colours they have beside those of the chain. In Mermaid's dark theme, what
# stands beside a bar that is `active` is black on black.
_LANES: Final[Mapping[Phase, tuple[str, str]]] = {
    "build": ("Build", ""),
    "attest": ("Attest", ""),
    "upload": ("Upload", ""),
    "confirm": ("Confirm", "done"),
    "approval": ("Approval", "done"),
    "follow-up": ("Follow-up", ""),
    "wait": ("Wait", "done"),
}
_CHAIN: Final = 12
# Of each lane.
_BARS: Final = 8
# A bar of a smaller part of the run would be a line.
_LEAST: Final = 0.005
_HOUR_S: Final = 3600.0
_SHORT_S: Final = 10.0
_DAY_S: Final = 24 * _HOUR_S


class _Bar(NamedTuple):
    start_s: float
    lasted_s: float
    text: str
    tag: str = ""


def gantt(report: Report) -> str:
    """Empty where nothing has taken any time. A run of more than a month is not drawn."""
    end_s = max((span.end_s for r in report.results for span in r.spans), default=0.0)
    if not 0 < end_s < 31 * _DAY_S:
        return ""
    lines = [
        "gantt",
        "    dateFormat YYYY-MM-DD HH:mm:ss.SSS",
        f"    axisFormat {_axis(end_s)}",
        "    todayMarker off",
    ]
    for title, bars in _sections(report, end_s).items():
        if bars:
            lines += [f"    section {title}", *map(_line, bars)]
    return "\n".join(lines)


def _axis(end_s: float) -> str:
    if end_s > _DAY_S:
        return "%d %H:%M"
    if end_s > _HOUR_S:
        return "%H:%M"
    return "%M:%S" if end_s > _SHORT_S else "%S.%L"


def _sections(report: Report, end_s: float) -> dict[str, list[_Bar]]:
    chain = report.spent.chain if report.spent else ()
    return {"Longest<br/>chain": _chain(chain, end_s), **_lanes(report, end_s)}


def _chain(chain: Sequence[Step], end_s: float) -> list[_Bar]:
    """It ends with the run; its first steps may be left out, and that of one of several jobs began
    later than the first of them.
    """
    *starts, whole_s = accumulate((step.lasted_s for step in chain), initial=0.0)
    begins_s = max(0.0, end_s - whole_s)
    parts: dict[int, list[tuple[float, Step]]] = {}
    for number, (start_s, step) in enumerate(zip(starts, chain, strict=True)):
        # A long chain is cut into parts of about the same time.
        middle = (start_s + step.lasted_s / 2) / whole_s if whole_s else 0.0
        part = number if len(chain) <= _CHAIN else int(middle * _CHAIN)
        parts.setdefault(part, []).append((begins_s + start_s, step))
    return [_part(steps) for steps in parts.values()]


def _part(steps: Sequence[tuple[float, Step]]) -> _Bar:
    """Named after its longest step."""
    longest = max((step for _, step in steps), key=lambda step: step.lasted_s)
    start_s = steps[0][0]
    end_s = steps[-1][0] + steps[-1][1].lasted_s
    more = f" and {len(steps) - 1} more" if len(steps) > 1 else ""
    tag = "crit" if longest.what in WORK or more else "crit, done"
    return _Bar(start_s, end_s - start_s, f"{longest.what} {longest.package}{more}", tag)


def _lanes(report: Report, end_s: float) -> dict[str, list[_Bar]]:
    """All packages of one build are one bar. What takes longest is shown, by its start."""
    found: dict[tuple[Phase, float, float], list[PackageId]] = {}
    for result in report.results:
        for span in result.spans:
            found.setdefault((span.phase, span.start_s, span.end_s), []).append(result.package.id)
    lanes: dict[str, list[_Bar]] = {}
    for (phase, start_s, ended_s), own in found.items():
        more = f" and {len(own) - 1} more" if len(own) > 1 else ""
        title, tag = _LANES[phase]
        bar = _Bar(start_s, ended_s - start_s, f"{phase} {own[0]}{more}", tag)
        if bar.lasted_s >= end_s * _LEAST:
            lanes.setdefault(title, []).append(bar)
    return {
        title: sorted(sorted(lanes[title], key=lambda bar: (-bar.lasted_s, bar))[:_BARS])
        for title, _ in _LANES.values()
        if title in lanes
    }


def _line(bar: _Bar) -> str:
    tag = f"{bar.tag}, " if bar.tag else ""
    lasted_ms = max(1, round(bar.lasted_s * 1000))
    text = f"{gantt_words(bar.text)} · {seconds(bar.lasted_s)}"
    return f"    {text} :{tag}{_moment(bar.start_s)}, {lasted_ms}ms"


def _moment(at_s: float) -> str:
    """On a day without a change of the clocks, so that the axis counts from 0 in every zone."""
    ms = round(at_s * 1000)
    days, ms = divmod(ms, 86_400_000)
    hours, ms = divmod(ms, 3_600_000)
    minutes, ms = divmod(ms, 60_000)
    return f"2001-01-{1 + days:02} {hours:02}:{minutes:02}:{ms // 1000:02}.{ms % 1000:03}"
