"""Dependency graphs as Mermaid flowcharts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.text import escape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.model import PackageId

# Well inside Mermaid's own limits (`maxEdges` 500, `maxTextSize` 50,000), past which an error is
# shown instead of the graph: https://mermaid.js.org/config/schema-docs/config.html
MAX_EDGES: Final = 250
MAX_BYTES: Final = 40_000

# Dark text on light fills reads the same in GitHub's light and dark themes.
_STYLES: Final = {
    "done": "fill:#d2f4d3,stroke:#1a7f37,color:#0b3d1a",
    "kept": "fill:#e6e9ec,stroke:#6e7781,color:#24292f",
    "failed": "fill:#ffd8d3,stroke:#cf222e,color:#5c0d12",
    "doubt": "fill:#fff1c2,stroke:#9a6700,color:#4d3300",
    "blocked": "fill:#ffe5cc,stroke:#bc4c00,color:#5c2600",
}


def flowchart(
    labels: Mapping[PackageId, tuple[str, str]], edges: Mapping[PackageId, frozenset[PackageId]]
) -> str:
    """`labels` maps each package to its text and its style, a key of `_STYLES`.

    Arrows lead from a package to its dependents: in the order of publishing.
    """
    nodes = {name: f"n{index}" for index, name in enumerate(labels)}
    lines = ["flowchart LR"]
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
    used = {style for _, style in labels.values()}
    lines += [f"    classDef {style} {css}" for style, css in _STYLES.items() if style in used]
    return "\n".join(lines)


def drawable(chart: str) -> bool:
    """Whether GitHub draws it."""
    return chart.count(" --> ") <= MAX_EDGES and len(chart) <= MAX_BYTES
