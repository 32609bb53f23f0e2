"""What was measured as an SVG: for each ecosystem, how long every way takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

from bench.release.tables import TITLES
from bench.release.ways import LIMIT, OURS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.release.rounds import Row

_WIDTH: Final = 760
_LEFT: Final = 290
_BAR: Final = 18
_COLOURS: Final = {OURS: "#1f77b4", LIMIT: "#2ca02c"}
_OTHERS: Final = "#ff7f0e"


def bars(rows: Sequence[Row]) -> str:
    """One panel an ecosystem, each with a scale of its own."""
    parts: list[str] = []
    y = 10
    for ecosystem in dict.fromkeys(row.scenario.ecosystem for row in rows):
        own = [row for row in rows if row.scenario.ecosystem == ecosystem]
        scenario = own[0].scenario
        words = f"{scenario.packages} packages, {scenario.latency_s * 1000:.0f} ms a request"
        lag = f", index {scenario.lag_s:.0f} s late" if scenario.lag_s else ""
        y += 18
        parts.append(_text(10, y, f"{TITLES[ecosystem]}: {words}{lag}; seconds", "start"))
        longest = max(row.cost.wall_s for row in own)
        for row in own:
            y += _BAR + 2
            width = (_WIDTH - _LEFT - 60) * row.cost.wall_s / longest
            colour = next(
                (it for name, it in _COLOURS.items() if row.way.startswith(name)), _OTHERS
            )
            shape = f'x="{_LEFT}" y="{y - 13}" width="{width:.1f}" height="{_BAR - 2}"'
            parts.append(_text(_LEFT - 8, y, row.way.replace("`", ""), "end"))
            parts.append(f'<rect {shape} fill="{colour}"/>')
            parts.append(_text(_LEFT + width + 6, y, f"{row.cost.wall_s:.1f}", "start"))
        y += 16
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}">',
        "<style>text { font: 12px sans-serif }</style>",
        f'<rect width="{_WIDTH}" height="{y}" fill="#ffffff"/>',
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
