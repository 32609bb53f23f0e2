"""A graph that is too large to draw, as groups: packages of one ecosystem in the same few layers,
with their number by how they ended.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from releasekit.model import PackageId
    from releasekit.report.marks import Mark

_ROWS: Final = 6
_NAMED: Final = 2
_TIES: Final = 2
_Key = tuple[int, str]  # its row, its ecosystem


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """`row` counts from 0; `first` and `last` are layers: what needs nothing is in layer 1."""

    ecosystem: str
    row: int
    first: int
    last: int
    counts: Sequence[tuple[Mark, int]]
    failed: Sequence[PackageId]

    @property
    def worst(self) -> Mark:
        """That of a failure if there is one; else of what most of its packages have."""
        marks = [mark for mark, _ in self.counts]
        if self.failed:
            return marks[-1]
        return max(self.counts, key=lambda each: each[1])[0]

    @property
    def layers(self) -> str:
        one = self.first == self.last
        return f"layer {self.first}" if one else f"layers {self.first} to {self.last}"

    @property
    def failures(self) -> str:
        """The first that failed by name; empty where none did."""
        return few([package.name for package in self.failed], _NAMED) if self.failed else ""


@dataclass(frozen=True, slots=True)
class Grouped:
    """`ties` lead from a group to one that needs something of it, `below` to one that is in the
    next row and needs nothing of the row before.
    """

    groups: Sequence[Group]
    ties: Sequence[tuple[Group, Group]]
    below: Sequence[tuple[Group, Group]]


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


def grouped(
    marks: Mapping[PackageId, Mark],
    edges: Mapping[PackageId, Collection[PackageId]],
    *,
    order: Sequence[Mark],
    rows: int = _ROWS,
) -> Grouped:
    """`marks` are of all packages, in publish order; `order` is that of the marks in a group, with
    failures last.
    """
    layer = layers(marks, edges)
    width = max(1, -(-max(layer.values(), default=1) // rows))
    members: dict[_Key, list[PackageId]] = {}
    for package in marks:
        members.setdefault(((layer[package] - 1) // width, package.ecosystem), []).append(package)
    groups = {key: _group(key, own, marks, layer, order) for key, own in sorted(members.items())}
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
    return Grouped(
        list(groups.values()),
        [(groups[on], groups[key]) for on, key in strongest],
        [(groups[on], groups[key]) for on, key in below],
    )


def _group(
    key: _Key,
    own: Sequence[PackageId],
    marks: Mapping[PackageId, Mark],
    layer: Mapping[PackageId, int],
    order: Sequence[Mark],
) -> Group:
    counts = Counter(marks[package] for package in own)
    return Group(
        ecosystem=key[1],
        row=key[0],
        first=min(layer[package] for package in own),
        last=max(layer[package] for package in own),
        counts=[(mark, counts[mark]) for mark in order if counts[mark]],
        failed=[package for package in own if marks[package].style == "failed"],
    )


def _strongest(ties: Mapping[tuple[_Key, _Key], int]) -> list[tuple[_Key, _Key]]:
    """Of each group those to the row before that most of its packages have; where it has none
    there, the strongest of all. With every one of them nobody could follow any.
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
