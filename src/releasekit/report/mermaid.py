"""Mermaid diagrams of a release: its dependency graph, in boxes where it is too large to draw, and
a Gantt chart of when what was done.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from releasekit.report.marks import NODE_STYLES
from releasekit.report.spent import LEAST_S, WORDS
from releasekit.report.text import few, seconds
from releasekit.spent import WORK
from releasekit.text import escape

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from releasekit.model import PackageId, Phase, Report
    from releasekit.report.marks import Mark, Style
    from releasekit.spent import Step

# Well inside Mermaid's own limits (`maxEdges` 500, `maxTextSize` 50,000), past which an error is
# shown instead of the graph: https://mermaid.js.org/config/schema-docs/config.html
MAX_EDGES: Final = 250
MAX_BYTES: Final = 40_000
# More packages are too small to read at the width of a page.
MAX_PACKAGES: Final = 60

# Closer together than by default: a narrower chart is drawn larger.
_CLOSE: Final = '%%{init: {"flowchart": {"nodeSpacing": 10, "rankSpacing": 30, "padding": 6}}}%%'
_PACKAGES: Final = (_CLOSE, "flowchart LR")
_GROUPS: Final = "flowchart TB"

_MOST_ROWS: Final = 6
_NAMED: Final = 2
_TIES: Final = 2
_Key = tuple[int, str]  # a row, an ecosystem

# The title of each lane, and the tag that makes grey what only waits. `crit` would be the red of a
# failure, and in Mermaid's dark theme, text beside an `active` bar is black on black.
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
# In each lane.
_BARS: Final = 8
# A smaller part of the run would look like a line.
_LEAST: Final = 0.005
_MOST_TICKS: Final = 6
_TICKS: Final = (
    *((n, f"{n}second") for n in (1, 2, 5, 10, 15, 30)),
    *((n * 60, f"{n}minute") for n in (1, 2, 5, 10, 15, 30)),
    *((n * 3_600, f"{n}hour") for n in (1, 2, 6, 12)),
)
_HOUR_S: Final = 3600.0
_SHORT_S: Final = 10.0
_DAY_S: Final = 24 * _HOUR_S


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
    return [f"    classDef {style} {css}" for style, css in NODE_STYLES.items() if style in styles]


def can_draw(chart: str) -> bool:
    """Whether GitHub draws it."""
    return chart.count(" --> ") <= MAX_EDGES and len(chart.encode()) <= MAX_BYTES


def is_grouped(chart: str) -> bool:
    """Whether `draw_graph` drew boxes, which takes a word of explanation."""
    return chart.startswith(_GROUPS)


def draw_graph(
    packages: Mapping[PackageId, tuple[str, Mark]],
    edges: Mapping[PackageId, frozenset[PackageId]],
    order: Sequence[Mark],
) -> str:
    """A chart that GitHub draws, of packages with their text and mark in publish order: of each of
    them, or of groups where those are too many; empty where even groups are.
    """
    if len(packages) <= MAX_PACKAGES:
        labels = {name: (text, mark.style) for name, (text, mark) in packages.items()}
        if can_draw(chart := flowchart(labels, edges)):
            return chart
    marks = {name: mark for name, (_, mark) in packages.items()}
    for rows in (6, 2):
        if can_draw(chart := _of_groups(marks, edges, order, rows)):
            return chart
    return ""


def _of_groups(
    marks: Mapping[PackageId, Mark],
    edges: Mapping[PackageId, frozenset[PackageId]],
    order: Sequence[Mark],
    rows: int,
) -> str:
    """Drawn from the top down, since a row of ecosystems is as wide as a page."""
    found = group_packages(marks, edges, order=order, rows=rows)
    nodes = {id(group): f"g{index}" for index, group in enumerate(found.groups)}
    lines = [_GROUPS]
    for group in found.groups:
        named = f"{escape.mermaid_words(group.ecosystem)} · {group.layers}"
        squares = " ".join(f"{mark.square} {count}" for mark, count in group.counts)
        words = filter(None, [named, squares, escape.mermaid_words(group.failures)])
        lines.append(f'    {nodes[id(group)]}["{"<br/>".join(words)}"]:::{group.worst.style}')
    lines += [f"    {nodes[id(on)]} --> {nodes[id(group)]}" for on, group in found.ties]
    lines += [f"    {nodes[id(on)]} ~~~ {nodes[id(group)]}" for on, group in found.below]
    return "\n".join([*lines, *_classes(group.worst.style for group in found.groups)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """`row` counts from 0; `first` and `last` are layers: what needs nothing is in layer 1."""

    ecosystem: str
    row: int
    first: int
    last: int
    counts: Sequence[tuple[Mark, int]]
    failed: Sequence[PackageId]

    @property
    def worst(self) -> Mark:
        """The mark of a failure if there is one; else the mark of most of its packages."""
        failed = next((mark for mark, _ in self.counts if mark.style == "failed"), None)
        return failed or max(self.counts, key=lambda each: each[1])[0]

    @property
    def layers(self) -> str:
        one = self.first == self.last
        return f"layer {self.first}" if one else f"layers {self.first} to {self.last}"

    @property
    def failures(self) -> str:
        """The names of the first that failed; empty where none did."""
        return few([package.name for package in self.failed], _NAMED) if self.failed else ""


@dataclass(frozen=True, slots=True)
class Boxes:
    """`ties` lead from a group to one that needs something of it, `below` to one that is in the
    next row and needs nothing of the row before.
    """

    groups: Sequence[Box]
    ties: Sequence[tuple[Box, Box]]
    below: Sequence[tuple[Box, Box]]


def layers(
    packages: Collection[PackageId], edges: Mapping[PackageId, Collection[PackageId]]
) -> dict[PackageId, int]:
    """The length of the longest way to what needs nothing, from 1; `packages` are in publish order.

    What they need besides, or later in that order, counts as nothing.
    """
    found: dict[PackageId, int] = {}
    for package in packages:
        found[package] = 1 + max((found.get(on, 0) for on in edges.get(package, ())), default=0)
    return found


def group_packages(
    marks: Mapping[PackageId, Mark],
    edges: Mapping[PackageId, Collection[PackageId]],
    *,
    order: Sequence[Mark],
    rows: int = _MOST_ROWS,
) -> Boxes:
    """`marks` are of all packages, in publish order; `order` is that of the marks in a group."""
    layer = layers(marks, edges)
    width = max(1, -(-max(layer.values(), default=1) // rows))
    members: dict[_Key, list[PackageId]] = {}
    for package in marks:
        members.setdefault(((layer[package] - 1) // width, package.ecosystem), []).append(package)
    groups: dict[_Key, Box] = {}
    for key, own in sorted(members.items()):
        counts = Counter(marks[package] for package in own)
        groups[key] = Box(
            ecosystem=key[1],
            row=key[0],
            first=min(layer[package] for package in own),
            last=max(layer[package] for package in own),
            counts=[(mark, counts[mark]) for mark in order if counts[mark]],
            failed=[package for package in own if marks[package].style == "failed"],
        )
    place = {package: key for key, own in members.items() for package in own}
    ties = Counter(
        (place[on], place[package])
        for package in marks
        for on in edges.get(package, ())
        if on in place and place[on][0] < place[package][0]
    )
    strongest = _strongest(ties)
    below = [
        (first, key)
        for key in groups
        if key[0] and not any(end == key for _, end in strongest)
        for first in [next(other for other in groups if other[0] == key[0] - 1)]
    ]
    return Boxes(
        list(groups.values()),
        [(groups[on], groups[key]) for on, key in strongest],
        [(groups[on], groups[key]) for on, key in below],
    )


def _strongest(ties: Mapping[tuple[_Key, _Key], int]) -> list[tuple[_Key, _Key]]:
    """Of each group those to the row before that most of its packages have; where it has none
    there, the strongest of all. A reader could follow none if all were drawn.
    """
    of: dict[_Key, list[tuple[int, _Key]]] = {}
    for (on, key), count in ties.items():
        of.setdefault(key, []).append((count, on))
    found = []
    for key, all_ in of.items():
        near = [each for each in all_ if each[1][0] == key[0] - 1]
        chosen = sorted(near or all_, key=lambda each: (-each[0], each[1]))
        found += [(on, key) for _, on in chosen[: _TIES if near else 1]]
    return sorted(found)


class _Bar(NamedTuple):
    """`text` is one that Mermaid reads."""

    start_s: float
    lasted_s: float
    text: str
    tag: str = ""


def gantt(report: Report) -> str:
    """Empty where no task took any time to speak of, and for a run of more than a month."""
    end_s = max((span.end_s for r in report.results for span in r.spans), default=0.0)
    if not LEAST_S <= end_s < 31 * _DAY_S:
        return ""
    lines = [
        "gantt",
        "    dateFormat YYYY-MM-DD HH:mm:ss.SSS",
        f"    axisFormat {_axis(end_s)}",
        f"    tickInterval {_ticks(end_s)}",
        "    todayMarker off",
    ]
    chain = report.spent.chain if report.spent else ()
    sections = {"Longest<br/>chain": _chain(chain, end_s), **_lanes(report, end_s)}
    for title, bars in sections.items():
        if bars:
            lines += [f"    section {title}", *map(_line, bars)]
    return "\n".join(lines)


def _axis(end_s: float) -> str:
    if end_s > _DAY_S:
        return "%d %H:%M"
    if end_s > _HOUR_S:
        return "%H:%M"
    return "%M:%S" if end_s > _SHORT_S else "%S.%L"


def _ticks(end_s: float) -> str:
    """So far apart that their labels fit on a phone; in a run of days, a day.

    https://mermaid.js.org/syntax/gantt.html#axis-ticks-v10-3-0
    """
    return next((name for each_s, name in _TICKS if end_s <= each_s * _MOST_TICKS), "1day")


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
    bars = map(_part, parts.values())
    return [bar for bar in bars if bar.lasted_s >= LEAST_S]


def _part(steps: Sequence[tuple[float, Step]]) -> _Bar:
    """Named after its longest step."""
    longest = max((step for _, step in steps), key=lambda step: step.lasted_s)
    start_s = steps[0][0]
    end_s = steps[-1][0] + steps[-1][1].lasted_s
    more = f" and {len(steps) - 1} more" if len(steps) > 1 else ""
    tag = "" if longest.what in WORK or more else "done"
    name = escape.gantt_words(f"{longest.package}{more}")
    return _Bar(start_s, end_s - start_s, f"{WORDS[longest.what]} · {name}", tag)


def _lanes(report: Report, end_s: float) -> dict[str, list[_Bar]]:
    """All packages of one build share a bar. The longest bars are shown, by their start."""
    found: dict[tuple[Phase, float, float], list[PackageId]] = {}
    for result in report.results:
        for span in result.spans:
            found.setdefault((span.phase, span.start_s, span.end_s), []).append(result.package.id)
    lanes: dict[str, list[_Bar]] = {}
    for (phase, start_s, ended_s), own in found.items():
        more = f" and {len(own) - 1} more" if len(own) > 1 else ""
        title, tag = _LANES[phase]
        name = escape.gantt_words(f"{own[0]}{more}")
        bar = _Bar(start_s, ended_s - start_s, f"{phase} · {name}", tag)
        if bar.lasted_s >= max(LEAST_S, end_s * _LEAST):
            lanes.setdefault(title, []).append(bar)
    return {
        title: sorted(sorted(lanes[title], key=lambda bar: (-bar.lasted_s, bar))[:_BARS])
        for title, _ in _LANES.values()
        if title in lanes
    }


def _line(bar: _Bar) -> str:
    tag = f"{bar.tag}, " if bar.tag else ""
    lasted_ms = max(1, round(bar.lasted_s * 1000))
    return f"    {bar.text} · {seconds(bar.lasted_s)} :{tag}{_moment(bar.start_s)}, {lasted_ms}ms"


def _moment(at_s: float) -> str:
    """On a day when no zone changes its clocks, so that the axis counts from 0 everywhere."""
    ms = round(at_s * 1000)
    days, ms = divmod(ms, 86_400_000)
    hours, ms = divmod(ms, 3_600_000)
    minutes, ms = divmod(ms, 60_000)
    return f"2001-01-{1 + days:02} {hours:02}:{minutes:02}:{ms // 1000:02}.{ms % 1000:03}"
