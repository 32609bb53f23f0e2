"""Dependency graphs as Mermaid flowcharts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.report.layers import grouped
from releasekit.text import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from releasekit.model import PackageId
    from releasekit.report.layers import Group
    from releasekit.report.marks import Mark, Style

# Well inside Mermaid's own limits (`maxEdges` 500, `maxTextSize` 50,000), past which an error is
# shown instead of the graph: https://mermaid.js.org/config/schema-docs/config.html
MAX_EDGES: Final = 250
MAX_BYTES: Final = 40_000
# More of them are too small to read at the width of a page.
MAX_PACKAGES: Final = 60

# Closer together than by default: what is less wide is drawn larger.
_CLOSE: Final = '%%{init: {"flowchart": {"nodeSpacing": 10, "rankSpacing": 30, "padding": 6}}}%%'
_PACKAGES: Final = (_CLOSE, "flowchart LR")
_GROUPS: Final = "flowchart TB"

# Dark text on light fills reads the same in GitHub's light and dark themes.
_STYLES: Final[Mapping[Style, str]] = {
    "done": "fill:#d2f4d3,stroke:#1a7f37,color:#0b3d1a",
    "kept": "fill:#e6e9ec,stroke:#6e7781,color:#24292f",
    "failed": "fill:#ffd8d3,stroke:#cf222e,color:#5c0d12,stroke-width:3px",
    "blocked": "fill:#ffe5cc,stroke:#bc4c00,color:#5c2600",
    "doubt": "fill:#fff1c2,stroke:#9a6700,color:#4d3300",
    "staged": "fill:#ecdcff,stroke:#8250df,color:#3b1a70",
    "later": "fill:#d8ebff,stroke:#0969da,color:#0a3069",
}


def flowchart(
    labels: Mapping[PackageId, tuple[str, Style]], edges: Mapping[PackageId, frozenset[PackageId]]
) -> str:
    """`labels` maps each package to its text and its style.

    Arrows lead from a package to its dependents: in the order of publishing.
    """
    nodes = {name: f"n{index}" for index, name in enumerate(labels)}
    lines = [*_PACKAGES]
    lines += [
        f"    {nodes[name]}[{escape.mermaid(text)}]:::{style}"
        for name, (text, style) in labels.items()
    ]
    lines += [
        f"    {nodes[dependency]} --> {nodes[name]}"
        for name in nodes
        for dependency in sorted(edges.get(name, frozenset()))
        if dependency in nodes
    ]
    return "\n".join([*lines, *_classes(style for _, style in labels.values())])


def _classes(used: Iterable[Style]) -> list[str]:
    styles = set(used)
    return [f"    classDef {style} {css}" for style, css in _STYLES.items() if style in styles]


def drawable(chart: str) -> bool:
    """Whether GitHub draws it."""
    return chart.count(" --> ") <= MAX_EDGES and len(chart.encode()) <= MAX_BYTES


def is_grouped(chart: str) -> bool:
    """Whether `picture` drew groups, which takes a word of explanation."""
    return chart.startswith(_GROUPS)


def picture(
    packages: Mapping[PackageId, tuple[str, Mark]],
    edges: Mapping[PackageId, frozenset[PackageId]],
    order: Sequence[Mark],
) -> str:
    """A chart that GitHub draws, of packages with their text and mark in publish order: of each of
    them, or of groups where those are too many; empty where even groups are.
    """
    if len(packages) <= MAX_PACKAGES:
        labels = {name: (text, mark.style) for name, (text, mark) in packages.items()}
        if drawable(chart := flowchart(labels, edges)):
            return chart
    marks = {name: mark for name, (_, mark) in packages.items()}
    for rows in (6, 2):
        if drawable(chart := _of_groups(marks, edges, order, rows)):
            return chart
    return ""


def _of_groups(
    marks: Mapping[PackageId, Mark],
    edges: Mapping[PackageId, frozenset[PackageId]],
    order: Sequence[Mark],
    rows: int,
) -> str:
    """From the top down, where a row of ecosystems is as wide as a page."""
    found = grouped(marks, edges, order=order, rows=rows)
    nodes = {id(group): f"g{index}" for index, group in enumerate(found.groups)}
    lines = [_GROUPS]
    lines += [
        f"    {nodes[id(group)]}[{_label(group)}]:::{group.worst.style}" for group in found.groups
    ]
    lines += [f"    {nodes[id(on)]} --> {nodes[id(group)]}" for on, group in found.ties]
    lines += [f"    {nodes[id(on)]} ~~~ {nodes[id(group)]}" for on, group in found.below]
    return "\n".join([*lines, *_classes(group.worst.style for group in found.groups)])


def _label(group: Group) -> str:
    squares = " ".join(f"{mark.square} {count}" for mark, count in group.counts)
    named = f"{escape.mermaid_words(group.ecosystem)} · {group.layers}"
    words = [named, squares, escape.mermaid_words(group.failures)]
    return f'"{"<br/>".join(filter(None, words))}"'
