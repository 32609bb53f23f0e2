"""Mermaid diagrams of a release: its dependency graph, in boxes where it is too large to draw."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.report.marks import NODE_STYLES
from releasekit.report.text import few
from releasekit.text import escape

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from releasekit.model import PackageId
    from releasekit.report.marks import OutcomeMark, Style

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
    packages: Mapping[PackageId, tuple[str, OutcomeMark]],
    edges: Mapping[PackageId, frozenset[PackageId]],
    order: Sequence[OutcomeMark],
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
    marks: Mapping[PackageId, OutcomeMark],
    edges: Mapping[PackageId, frozenset[PackageId]],
    order: Sequence[OutcomeMark],
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


class Box(Struct, frozen=True, kw_only=True):
    """`row` counts from 0; `first` and `last` are layers: what needs nothing is in layer 1."""

    ecosystem: str
    row: int
    first: int
    last: int
    counts: Sequence[tuple[OutcomeMark, int]]
    failed: Sequence[PackageId]

    @property
    def worst(self) -> OutcomeMark:
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


class Boxes(Struct, frozen=True):
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
    marks: Mapping[PackageId, OutcomeMark],
    edges: Mapping[PackageId, Collection[PackageId]],
    *,
    order: Sequence[OutcomeMark],
    rows: int = _MOST_ROWS,
) -> Boxes:
    """`marks` are of all packages, in publish order; `order` is that of the marks in a group."""
    layer = layers(marks, edges)
    width = max(1, -(-max(layer.values(), default=1) // rows))
    members: dict[_Key, list[PackageId]] = {}
    for package in marks:
        members.setdefault(((layer[package] - 1) // width, package.ecosystem), []).append(package)
    groups = {
        key: _make_box(key, {package: marks[package] for package in own}, layer, order)
        for key, own in sorted(members.items())
    }
    place = {package: key for key, own in members.items() for package in own}
    ties = Counter(
        (place[on], place[package])
        for package in marks
        for on in edges.get(package, ())
        if on in place and place[on][0] < place[package][0]
    )
    strongest = _strongest(ties)
    below = [
        (next(other for other in groups if other[0] == key[0] - 1), key)
        for key in groups
        if key[0] and not any(end == key for _, end in strongest)
    ]
    return Boxes(
        list(groups.values()),
        [(groups[on], groups[key]) for on, key in strongest],
        [(groups[on], groups[key]) for on, key in below],
    )


def _make_box(
    key: _Key,
    own: Mapping[PackageId, OutcomeMark],
    layer: Mapping[PackageId, int],
    order: Sequence[OutcomeMark],
) -> Box:
    counts, own_layers = Counter(own.values()), [layer[package] for package in own]
    return Box(
        ecosystem=key[1],
        row=key[0],
        first=min(own_layers),
        last=max(own_layers),
        counts=[(mark, counts[mark]) for mark in order if counts[mark]],
        failed=[package for package, mark in own.items() if mark.style == "failed"],
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
