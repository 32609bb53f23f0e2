"""The packages of an ecosystem split over several jobs: of equal expected work, with few
dependencies from one to another, so that none has to wait for long.

It is list scheduling: what the longest path follows is placed first, each on the job where it would
end first, if what it needs from another job takes a while to be seen there. "HEFT", Topcuoglu et
al., https://doi.org/10.1109/71.993206. Then packages move to where most of their neighbours are.
"""

from __future__ import annotations

import heapq
from statistics import median
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.errors import ConfigError
from releasekit.fields import replace
from releasekit.graph import DependencyGraph, rings
from releasekit.host import durable
from releasekit.model import Action
from releasekit.problems import Problem
from releasekit.report.text import packages

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from releasekit.config.shards import ShardCounts
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Package, PackageId, Plan

# How long it takes until another job sees what one has published, and how unequal jobs may be.
HOP_S: Final = 5.0
SLACK: Final = 1.1
_AHEAD: Final = 1
_PASSES: Final = 8
_FILES_PER_S: Final = 20
_MAX_FILES: Final = 2_000
# Where tools put files that are not sources of a package.
_LEFT_OUT: Final = frozenset({"node_modules", "target", "dist", "build", "__pycache__"})


def with_shards(
    plan: Plan, counts: ShardCounts, targets: Mapping[str, Target], durations: Mapping[str, float]
) -> Plan:
    """`plan` with the part of each package, where `shards` asks for that; reads directories.

    Raises ConfigError for an ecosystem that cannot be split.
    """
    if not counts:
        return plan
    notes: list[str] = []
    parts: dict[PackageId, str] = {}
    for name in plan.registries:
        own = [planned for planned in plan.packages if planned.package.id.ecosystem == name]
        wanted = counts.count(name)
        if own and wanted > 1 and targets[name].single_upload:
            reason = "its registry takes all packages of a release at once"
            if name in counts.of:
                raise ConfigError(
                    f"shards: {name} cannot be split: {reason}",
                    hint=f"Leave out `{name}=`.",
                    problem=Problem.SHARDS,
                )
            notes.append(f"{name}: one job, since {reason}")
            wanted = 1
        work = [planned.package for planned in own if planned.action is not Action.KEEP]
        found = partition(work, expected(work, durations), wanted or 1)
        rest = [planned.package.id for planned in own if planned.package.id not in found]
        count = max(found.values(), default=0)
        # What is there already takes no work, and is accounted for by somebody.
        found |= {package: number % count + 1 for number, package in enumerate(rest) if count}
        parts |= {package: f"{number}/{count}" for package, number in found.items()}
        if count > 1:
            notes.append(_note(name, work, found, count))
    return replace(
        plan,
        packages=tuple(
            replace(planned, shard=parts.get(planned.package.id, "")) for planned in plan.packages
        ),
        notes=(*plan.notes, *notes),
    )


def _note(name: str, work: Sequence[Package], parts: Mapping[PackageId, int], count: int) -> str:
    sizes = [sum(parts[package.id] == number + 1 for package in work) for number in range(count)]
    inside = {package.id for package in work}
    edges = [(p.id, need.on) for p in work for need in p.dependencies if need.on in inside]
    cut = sum(parts[one] != parts[other] for one, other in edges)
    each = packages(max(sizes))
    if min(sizes) < max(sizes):
        each = f"{min(sizes)} to {each}"
    return (
        f"{name}: {count} jobs of {each}; dependencies that lead from one to another: "
        f"{cut} of {len(edges)}"
    )


def expected(packages: Sequence[Package], durations: Mapping[str, float]) -> dict[PackageId, float]:
    """Seconds of work; where no earlier run tells, in proportion to the number of files."""
    known, sizes = {}, {}
    for package in packages:
        spent = [durations.get(f"{phase} {package.id}") for phase in ("build", "upload")]
        if any(spent):
            known[package.id] = sum(filter(None, spent))
        else:
            sizes[package.id] = 1.0 + _files(package) / _FILES_PER_S
    scale = median(known.values()) / median(sizes.values()) if known and sizes else 1.0
    return known | {package: size * scale for package, size in sizes.items()}


def _files(package: Package) -> int:
    count = 0
    for _, directories, files in durable.walk(package.directory):
        directories[:] = [d for d in directories if d not in _LEFT_OUT and not d.startswith(".")]
        count += len(files)
        if count >= _MAX_FILES:
            return _MAX_FILES
    return count


def partition(
    packages: Sequence[Package], seconds: Mapping[PackageId, float], count: int
) -> dict[PackageId, int]:
    """Package to part, numbered from 1; fewer than `count` where there are not that many. The same
    for the same packages, in any order.
    """
    if not packages:
        return {}
    units = _Units.of(packages, seconds)
    placed = units.spread(min(count, len(units.weights)))
    span_s = units.span_s(placed)
    for _ in range(_PASSES):
        moved = units.gathered(placed)
        if moved == placed or units.span_s(moved) > SLACK * span_s:
            break
        placed = moved
    used = sorted(set(placed.values()))
    return {
        package: used.index(placed[unit]) + 1
        for unit, members in units.members.items()
        for package in members
    }


class _Units(Struct, frozen=True):
    """What is placed as one: mostly a package, or all packages of a cycle. In `order`, what is
    needed comes first.
    """

    members: Mapping[str, Collection[PackageId]]
    weights: Mapping[str, float]
    needs: Mapping[str, frozenset[str]]
    dependents: Mapping[str, Sequence[str]]
    order: Sequence[str]

    @classmethod
    def of(cls, packages: Iterable[Package], seconds: Mapping[PackageId, float]) -> _Units:
        by_id = {package.id: package for package in packages}
        edges = {
            id_: {need.on for need in package.needs if need.on in by_id}
            for id_, package in by_id.items()
        }
        unit_of = {id_: str(id_) for id_ in by_id}
        for ring in rings(edges):
            unit_of |= dict.fromkeys(ring, str(min(ring)))
        members: dict[str, list[PackageId]] = {}
        needs: dict[str, set[str]] = {}
        for id_ in sorted(by_id):
            unit = unit_of[id_]
            members.setdefault(unit, []).append(id_)
            needs.setdefault(unit, set()).update({unit_of[on] for on in edges[id_]} - {unit})
        graph = DependencyGraph.from_edges(needs)
        dependents: dict[str, list[str]] = {unit: [] for unit in needs}
        for unit in graph.order:
            for on in graph.edges[unit]:
                dependents[on].append(unit)
        weights = {unit: sum(seconds[each] for each in own) for unit, own in members.items()}
        return cls(members, weights, graph.edges, dependents, graph.order)

    def spread(self, count: int) -> dict[str, int]:
        """Each where it would end first, while that part is not full."""
        total = sum(self.weights.values())
        _, most = self._bounds(count)
        near_s = HOP_S + _AHEAD * total / len(self.weights)
        ready_s, load_s = [0.0] * count, [0.0] * count
        placed: dict[str, int] = {}
        ended_s: dict[str, float] = {}
        for unit in self._urgent_first():
            weight = self.weights[unit]
            room = [part for part in range(count) if load_s[part] + weight <= most]
            if not room:
                room = [min(range(count), key=load_s.__getitem__)]
            ends = {part: self._end_s(unit, part, placed, ended_s, ready_s[part]) for part in room}
            near = {part: sum(placed[on] == part for on in self.needs[unit]) for part in room}
            # Builds run ahead of uploads: a little later costs less than another job to wait for.
            soon_s = min(ends.values()) + near_s
            soon = [part for part in room if ends[part] <= soon_s]
            part = min(soon, key=lambda each: (-near[each], ends[each], load_s[each], each))
            placed[unit], ended_s[unit] = part, ends[part]
            ready_s[part] = ends[part]
            load_s[part] += weight
        return placed

    def _bounds(self, count: int) -> tuple[float, float]:
        """The least and the most work of one of `count` parts, rounded to whole packages."""
        mean = sum(self.weights.values()) / count
        uneven = median(self.weights.values()) * (1 - 1 / (2 * count))
        return min(mean / SLACK, mean - uneven), max(mean * SLACK, mean + uneven)

    def _end_s(
        self,
        unit: str,
        part: int,
        placed: Mapping[str, int],
        ended_s: Mapping[str, float],
        ready_s: float,
    ) -> float:
        seen_s = [ended_s[on] + HOP_S * (placed[on] != part) for on in self.needs[unit]]
        return max(ready_s, *seen_s, 0.0) + self.weights[unit]

    def _urgent_first(self) -> list[str]:
        """What has the longest path behind it first, and nothing before what it needs."""
        behind: dict[str, float] = {}
        for unit in reversed(self.order):
            after = max((behind[each] for each in self.dependents[unit]), default=0.0)
            behind[unit] = self.weights[unit] + after
        unmet = {unit: len(needs) for unit, needs in self.needs.items()}
        ready = [(-behind[unit], unit) for unit, open_ in unmet.items() if not open_]
        heapq.heapify(ready)
        found = []
        while ready:
            _, unit = heapq.heappop(ready)
            found.append(unit)
            for each in self.dependents[unit]:
                unmet[each] -= 1
                if not unmet[each]:
                    heapq.heappush(ready, (-behind[each], each))
        return found

    def gathered(self, placed: Mapping[str, int]) -> dict[str, int]:
        """Each where most of its neighbours are, as long as no part gets too much or too little."""
        moved = dict(placed)
        load_s = [0.0] * (max(placed.values()) + 1)
        for unit, part in placed.items():
            load_s[part] += self.weights[unit]
        least, most = self._bounds(len(load_s))
        for unit in self.order:
            part, weight = moved[unit], self.weights[unit]
            near = [0] * len(load_s)
            for other in (*self.needs[unit], *self.dependents[unit]):
                near[moved[other]] += 1
            best = max(range(len(near)), key=lambda each: (near[each], -load_s[each], -each))
            fits = load_s[best] + weight <= most and load_s[part] - weight >= least
            if near[best] > near[part] and fits:
                moved[unit] = best
                load_s[part] -= weight
                load_s[best] += weight
        return moved

    def span_s(self, placed: Mapping[str, int]) -> float:
        """How long it takes if every part does one thing after the other."""
        ready_s = [0.0] * (max(placed.values()) + 1)
        ended_s: dict[str, float] = {}
        for unit in self._urgent_first():
            part = placed[unit]
            ended_s[unit] = self._end_s(unit, part, placed, ended_s, ready_s[part])
            ready_s[part] = ended_s[unit]
        return max(ready_s)
