"""Measurements as a Markdown table and as an SVG."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c")
WIDTH, HEIGHT = 760, 300


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def charts(costs: Sequence[tuple[str, int, float]], ratios: Sequence[tuple[str, float]]) -> str:
    """Cost per package over the number of packages, and mean makespans, side by side."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        "<style>text { font: 12px sans-serif }</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *_lines(costs),
        *_bars(ratios),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _lines(costs: Sequence[tuple[str, int, float]]) -> list[str]:
    top = 10.0 * math.ceil(max(us for _, _, us in costs) / 10.0)
    parts = [_text(200, 20, "CPU time per package, microseconds")]
    for mark in range(0, int(top) + 1, 10):
        y = 250 - 210 * mark / top
        parts.append(f'<path d="M50 {y:.1f}H360" stroke="#dddddd"/>')
        parts.append(_text(42, y + 4, str(mark), "end"))
    sizes = sorted({size for _, size, _ in costs})
    across = {size: 70 + 270 * at / max(1, len(sizes) - 1) for at, size in enumerate(sizes)}
    parts += [_text(x, 268, f"{size:,}") for size, x in across.items()]
    parts.append(_text(205, 288, "packages"))
    for at, shape in enumerate(dict.fromkeys(shape for shape, _, _ in costs)):
        points = " ".join(
            f"{across[size]:.1f},{250 - 210 * us / top:.1f}" for s, size, us in costs if s == shape
        )
        colour = COLOURS[at % len(COLOURS)]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        parts.append(f'<rect x="{80 + 90 * at}" y="212" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(94 + 90 * at, 221, shape, "start"))
    return parts


def _bars(ratios: Sequence[tuple[str, float]]) -> list[str]:
    top = max(ratio for _, ratio in ratios)
    parts = [_text(580, 20, "Mean makespan over the lower bound")]
    for at, (name, ratio) in enumerate(ratios):
        x, height = 430 + 110 * at, 200 * ratio / top
        colour = COLOURS[at % len(COLOURS)]
        parts.append(f'<path d="M{x} 250v{-height:.1f}h80v{height:.1f}z" fill="{colour}"/>')
        parts.append(_text(x + 40, 244 - height, f"{ratio:.3f}"))
        parts.append(_text(x + 40, 268, name))
    return parts
