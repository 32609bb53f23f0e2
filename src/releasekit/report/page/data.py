"""What the scripts of the page draw: packages by their number, so that no name is ever a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.model import PackageId
from releasekit.report.layers import layers
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.model import Report, Result

_MOST_CHARS = 200


def drawing(report: Report) -> dict[str, object]:
    """Words that are in the table as well are only there."""
    numbers = {result.package.id: number for number, result in enumerate(report.results)}
    needs = [_needs(report, result, numbers) for result in report.results]
    layer = layers(numbers, report.edges)
    return {
        "duration": round(report.duration_s, 3),
        "packages": [
            {
                "name": visible(clip(result.package.id.name, _MOST_CHARS)),
                "ecosystem": visible(clip(result.package.id.ecosystem, 40)),
                "version": visible(clip(result.package.version, 80)),
                "outcome": result.outcome,
                "needs": needs[number],
                "layer": layer[result.package.id] - 1,
                "waited": _waited(result, numbers),
                "spans": [
                    [span.phase, round(span.start_s, 3), round(span.end_s, 3)]
                    for span in result.spans
                ],
            }
            for number, result in enumerate(report.results)
        ],
        "chain": [
            [numbers.get(PackageId.parse(step.package), -1), step.what, round(step.lasted_s, 3)]
            for step in (report.spent.chain if report.spent else ())
        ],
    }


def _needs(report: Report, result: Result, numbers: Mapping[PackageId, int]) -> list[int]:
    edges = report.edges.get(result.package.id, frozenset())
    return sorted(numbers[name] for name in edges if name in numbers)


def _waited(result: Result, numbers: Mapping[PackageId, int]) -> int:
    """What it waited for longest; -1 is nothing."""
    name = result.spent.waited_for if result.spent else ""
    return numbers.get(PackageId.parse(name), -1)
