"""The graph of a run or a plan, open, in the colours of its outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.report.mermaid import is_grouped, picture
from releasekit.text.escape import fence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.model import PackageId
    from releasekit.report.marks import Mark

_GROUPED: Final = (
    "Each box has the packages of one ecosystem in some layers: what needs nothing is in layer 1. "
    "Of the arrows, those that most packages share are drawn."
)


def graph_section(
    heading: str,
    packages: Mapping[PackageId, tuple[str, Mark]],
    edges: Mapping[PackageId, frozenset[PackageId]],
    order: Sequence[Mark],
) -> list[str]:
    """Nothing where nothing needs anything, or where even groups are too many."""
    chart = picture(packages, edges, order) if any(edges.values()) else ""
    if not chart:
        return []
    told = [_GROUPED, ""] if is_grouped(chart) else []
    return [f"### {heading}", "", fence(chart.splitlines(), "mermaid"), "", *told]
