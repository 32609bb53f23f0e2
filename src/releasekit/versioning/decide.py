"""The decision: from what changes ask of packages to the next version of each, without effects.

Each package starts at the level of its intents. A work list raises what has to follow: members of
groups, and dependents whose published files exclude the new version. Levels only rise, and there
are four, so it ends. What excludes a version excludes all higher ones, so the result is the least
one, in whichever order; only a hole in a range, as `!=` makes it, may add a release.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from releasekit.decided import Bump, Decision, Level, Reason, Trouble
from releasekit.graph import DependencyGraph, reachable, stuck, without_cycles
from releasekit.model import DependencyKind
from releasekit.problems import Problem
from releasekit.versioning.numbering import numbering_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from releasekit.decided import Edge, Intent, Propagate, Rules, Standing, VersionGroup, Zero
    from releasekit.model import PackageId
    from releasekit.versioning.order import VersionKey

_AT_RUN_TIME: Final = frozenset({DependencyKind.RUNTIME, DependencyKind.INDIRECT})
# What does not order a release where it closes a cycle.
_GIVING_WAY: Final = frozenset({DependencyKind.PEER, DependencyKind.OPTIONAL})


def decide(
    standings: Sequence[Standing], intents: Sequence[Intent], edges: Sequence[Edge], rules: Rules
) -> Decision:
    """The same for any order of its arguments. Packages without a standing are left out.

    A bump leads from the released version, empty before a first release, to the next one, also
    where that is written already.
    """
    known = {each.package: each for each in sorted(standings, key=attrgetter("package"))}
    stated: dict[PackageId, list[Intent]] = {package: [] for package in known}
    for intent in sorted(intents, key=_order_intents):
        if intent.package in known:
            stated[intent.package].append(intent)
    groups = [
        _Group(each, sorted(known.keys() & each.packages))
        for each in sorted(rules.groups, key=attrgetter("name", "place", "packages"))
    ]
    sharing: dict[PackageId, list[_Group]] = {package: [] for package in known}
    for group in groups:
        for member in group.members:
            sharing[member].append(group)
    inside = [
        each
        for each in edges
        if each.dependent != each.on and {each.dependent, each.on} <= known.keys()
    ]
    inside.sort(key=_order_edges)

    steps: dict[PackageId, _Steps] = {}
    for packages in _join(known, groups):
        steps |= _count_steps([known[package] for package in packages], stated, rules.zero)
    # Before its first release, a package has no published files that could exclude anything.
    published = [each for each in inside if known[each.dependent].released]
    levels, asked = _raise_levels(steps, published, sharing, rules.propagate)
    reached = {group: Counter(levels.get(each) for each in group.members) for group in groups}
    bumps = {
        package: Bump(
            package=package,
            old=known[package].released,
            new=steps[package].versions[levels[package]],
            level=levels[package],
            reasons=_list_reasons(
                package,
                levels[package],
                steps[package],
                asked.get(package, {}),
                [each.group for each in sharing[package] if reached[each][levels[package]] > 1],
            ),
        )
        for package in _put_in_order(known, inside)
        if package in levels and levels[package] in steps[package].versions
    }
    return Decision(
        bumps=tuple(bumps.values()),
        left_alone=(*_list_idle_intents(known, stated), *_list_idle_edges(published, bumps, asked)),
        troubles=tuple(_find_troubles(known, steps, levels)),
    )


def _order_intents(intent: Intent) -> tuple[int, int, str, str, str, str]:
    """The highest level first, then the oldest."""
    source = intent.source
    return -intent.level, source.time_s, source.title, source.path, source.commit, intent.exact


def _order_edges(edge: Edge) -> tuple[PackageId, PackageId, str, str, str]:
    return edge.dependent, edge.on, edge.kind, edge.requirement, edge.carry


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """`members` are those of its packages that have a standing."""

    group: VersionGroup
    members: Sequence[PackageId]


def _join(known: Iterable[PackageId], groups: Iterable[_Group]) -> Iterator[list[PackageId]]:
    """Packages that share a version, through one group or through several; others alone."""
    beside: dict[PackageId, list[PackageId]] = defaultdict(list)
    for group in groups:
        for member in group.members[1:]:
            beside[group.members[0]].append(member)
            beside[member].append(group.members[0])
    joined: set[PackageId] = set()
    for package in known:
        if package not in joined:
            found = reachable([package], lambda each: beside.get(each, ()))
            joined |= found
            yield sorted(found)


@dataclass(frozen=True, slots=True)
class _Steps:
    """The version of a package at each level, where that is higher than the released one; `trouble`
    says why others are missing. `reasons` are its own, whatever others ask of it: without any, it
    rests. One of level NONE releases what is written.
    """

    versions: Mapping[Level, str]
    reasons: Sequence[Reason]
    trouble: Trouble | None = None


def _count_steps(
    members: Sequence[Standing], stated: Mapping[PackageId, Sequence[Intent]], zero: Zero
) -> dict[PackageId, _Steps]:
    """Of packages that share a version."""
    asking = {
        each.package: [
            intent
            for intent in stated[each.package]
            if (intent.level or intent.exact) and not intent.late
        ]
        for each in members
    }
    stable: dict[PackageId, str] = {}
    trouble = None
    for each in members:
        numbering = numbering_of(each.package.ecosystem)
        try:
            stable[each.package] = numbering.bump(each.written, Level.NONE, zero)
            if each.released:
                numbering.check(each.released)
        except ValueError as error:
            trouble = _cannot_count(each.package, str(error))
    trouble = trouble or _refuse_go_majors(stable)
    if trouble:
        return {
            package: _Steps({}, _explain(intents), trouble) for package, intents in asking.items()
        }
    line = _Line.of(members, stable, zero)
    exact = _choose_exact(line, [each for intents in asking.values() for each in intents])
    return {
        each.package: _count_own_steps(each, line, asking[each.package], exact) for each in members
    }


def _count_own_steps(
    standing: Standing, line: _Line, intents: Sequence[Intent], exact: _Spelled | Trouble | None
) -> _Steps:
    """`exact` is what somebody chose for all packages that share the version."""
    package = standing.package
    numbering = numbering_of(package.ecosystem)
    above = numbering.order(standing.released) if standing.released else None
    written = numbering.order(line.stable[package])
    reached = line.find_level(exact.order) if isinstance(exact, _Spelled) else Level.PATCH
    reasons = _explain(intents, exact=max(reached, Level.PATCH))
    rests = numbering.is_placeholder(standing.written) and not reasons
    if (above is None or written > above) and not rests:
        rule = f"{standing.written} is written already" if above else "the first release"
        reasons.append(Reason(package=package, level=line.find_level(written), rule=rule))
    if isinstance(exact, Trouble):
        return _Steps({}, reasons, exact)
    own = next((each.exact for each in intents if each.exact), "")
    versions: dict[Level, str] = {}
    for level in Level:
        try:
            if exact:
                version = numbering.check(own or exact.version)
            else:
                version = line.spell_next(package, level)
        except ValueError as error:
            return _Steps(versions, reasons, _cannot_count(package, str(error)))
        if above is None or numbering.order(version) > above:
            versions[level] = version
    return _Steps(versions, reasons)


def _explain(intents: Iterable[Intent], *, exact: Level = Level.PATCH) -> list[Reason]:
    """`exact` is the level of those that ask for an exact version."""
    return [
        Reason(
            package=each.package,
            level=max(each.level, exact) if each.exact else each.level,
            source=each.source,
        )
        for each in intents
    ]


def _cannot_count(package: PackageId, message: str) -> Trouble:
    return Trouble(
        package=package,
        problem=Problem.NO_NEXT_VERSION,
        message=message,
        hint=f'Choose it by hand: write `"{package}": VERSION` into a change file.',
    )


class _Spelled(NamedTuple):
    """A version, and the ecosystem that writes it so."""

    ecosystem: str
    version: str

    @property
    def order(self) -> VersionKey:
        return numbering_of(self.ecosystem).order(self.version)

    @property
    def numbers(self) -> tuple[int, ...]:
        return numbering_of(self.ecosystem).read(self.version).numbers

    def bump(self, level: Level, zero: Zero) -> _Spelled:
        """Raises ValueError for a date."""
        return self._replace(version=numbering_of(self.ecosystem).bump(self.version, level, zero))


@dataclass(frozen=True, slots=True)
class _Line:
    """What the next version of packages that share one is counted from: the highest of those
    written, and the highest released one. `stable` are all written ones, without what marks them as
    prereleases.
    """

    stable: Mapping[PackageId, str]
    written: _Spelled
    released: _Spelled | None
    zero: Zero

    @classmethod
    def of(cls, members: Iterable[Standing], stable: Mapping[PackageId, str], zero: Zero) -> Self:
        written = (_Spelled(package.ecosystem, version) for package, version in stable.items())
        released = (_Spelled(m.package.ecosystem, m.released) for m in members if m.released)
        order = attrgetter("order")
        return cls(stable, max(written, key=order), max(released, key=order, default=None), zero)

    def spell_next(self, package: PackageId, level: Level) -> str:
        """The version at this level, as the ecosystem of `package` writes it. Raises ValueError
        where there is none.
        """
        found, own = self._find_next(level), self.stable[package]
        numbering = numbering_of(package.ecosystem)
        if numbering.order(own) == found.order:
            return own
        if package.ecosystem == found.ecosystem:
            return found.version
        return numbering.respell(own, found.numbers)

    def _find_next(self, level: Level) -> _Spelled:
        if self.released is not None:
            bumped = self.released.bump(level, self.zero)
            return bumped if bumped.order > self.written.order else self.written
        # 0.0.0 is what stands there before anybody has thought of a version.
        is_unset = not any(self.written.numbers)
        return self.written.bump(Level.MINOR, "literal") if is_unset else self.written

    def find_level(self, reached: VersionKey) -> Level:
        """The lowest level that leads nearest to a version from the released one."""
        found = Level.NONE
        if self.released is None:
            return found
        nearest = self.released.order
        for level in (Level.PATCH, Level.MINOR, Level.MAJOR):
            try:
                order = self.released.bump(level, self.zero).order
            except ValueError:
                return found
            if nearest < order <= reached:
                found, nearest = level, order
        return found


def _refuse_go_majors(versions: Mapping[PackageId, str]) -> Trouble | None:
    """The path of a Go module says its major version, so that not all can share one.
    https://go.dev/ref/mod#major-version-suffixes
    """
    numbering = numbering_of("go")
    majors = {
        max(1, numbering.read(version).numbers[0]): package
        for package, version in versions.items()
        if package.ecosystem == "go"
    }
    if len(majors) < 2:
        return None
    (low, one), (high, other) = sorted(majors.items())[:2]
    return Trouble(
        package=one,
        problem=Problem.NO_NEXT_VERSION,
        message=f"by its path it is v{low}, and {other}, which shares its version, is v{high}",
        hint="Take one of the two out of the group.",
    )


def _choose_exact(line: _Line, intents: Iterable[Intent]) -> _Spelled | Trouble | None:
    """What somebody chose for packages that share a version; None where nobody did."""
    first: Intent | None = None
    for intent in intents:
        if intent.exact:
            if message := _refuse_exact(intent, first, line):
                return Trouble(package=intent.package, problem=Problem.CHANGE_FILE, message=message)
            first = first or intent
    return _Spelled(first.package.ecosystem, first.exact) if first else None


def _refuse_exact(intent: Intent, first: Intent | None, line: _Line) -> str:
    """Why nobody may choose this version, `first` being the one that was chosen before."""
    where = intent.source.path or intent.source.title
    numbering = numbering_of(intent.package.ecosystem)
    try:
        order = numbering.order(intent.exact)
    except ValueError as error:
        return f"{where}: {error}"
    if numbering.is_placeholder(intent.exact):
        return f"{where}: {intent.exact} stands for what is not released; write the version itself"
    if line.released is not None and order <= line.released.order:
        last = line.released.version
        return (
            f"{where}: {intent.exact} is not higher than {last}, which is released; "
            "write a higher one"
        )
    if order < line.written.order:
        last = line.written.version
        return f"{where}: {intent.exact} is lower than {last}, which is written; write a higher one"
    if first and order != numbering_of(first.package.ecosystem).order(first.exact):
        elsewhere = first.source.path or first.source.title
        shared = "" if first.package == intent.package else f" for {first.package}, which shares it"
        return (
            f"{where}: {intent.exact} is not {first.exact}, as {elsewhere} says{shared}; keep one"
        )
    return ""


def _raise_levels(
    steps: Mapping[PackageId, _Steps],
    edges: Iterable[Edge],
    sharing: Mapping[PackageId, Sequence[_Group]],
    propagate: Propagate,
) -> tuple[dict[PackageId, Level], dict[PackageId, dict[Edge, Level]]]:
    """The least levels of the packages that are released, at which nobody asks for more; and of
    each dependent, the edges that ask for more than nothing, with the level of each.
    """
    dependents: dict[PackageId, list[Edge]] = defaultdict(list)
    for edge in edges:
        dependents[edge.on].append(edge)
    levels: dict[PackageId, Level] = {}
    shared: dict[_Group, Level] = {}
    asked: dict[PackageId, dict[Edge, Level]] = defaultdict(dict)
    pending: deque[PackageId] = deque()

    def lift(package: PackageId, level: Level) -> None:
        if package not in levels or levels[package] < level:
            levels[package] = level
            pending.append(package)

    for package, own in steps.items():
        for reason in own.reasons:
            lift(package, reason.level)
    while pending:
        package = pending.popleft()
        level = levels[package]
        for group in sharing[package]:
            if group in shared and shared[group] >= level:
                lift(package, shared[group])
                continue
            shared[group] = level
            for member in group.members:
                if group.group.kind == "fixed" or member in levels:
                    lift(member, level)
        version = steps[package].versions.get(level, "")
        for edge in dependents[package] if version else ():
            if asks := _ask(edge, level, version, propagate):
                asked[edge.dependent][edge] = asks
                lift(edge.dependent, asks)
    return levels, asked


def _ask(edge: Edge, level: Level, version: str, propagate: Propagate) -> Level:
    """What a dependent is asked for by the release of what it needs, as this version."""
    if propagate == "never" or edge.carry == "none":
        return Level.NONE
    if edge.carry == "same":
        return max(level, Level.PATCH)
    follows = edge.carry == "patch" or (propagate == "always" and edge.kind in _AT_RUN_TIME)
    return Level.PATCH if follows or not edge.admits(version) else Level.NONE


def _put_in_order(known: Iterable[PackageId], edges: Sequence[Edge]) -> Sequence[PackageId]:
    """Dependencies first, ties by name. Of a cycle, optional ones and peers give way first."""
    graph: dict[PackageId, set[PackageId]] = {package: set() for package in known}
    for edge in edges:
        graph[edge.dependent].add(edge.on)
    # What is on a cycle, or between two; all of the others is left as it is.
    circling = stuck(graph)
    above: dict[PackageId, list[PackageId]] = {package: [] for package in circling}
    for package in circling:
        for on in graph[package] & circling:
            above[on].append(package)
    circling &= stuck(above)
    for package in circling:
        graph[package] -= circling
    inner = [edge for edge in edges if {edge.dependent, edge.on} <= circling]
    inner.sort(key=lambda edge: edge.kind in _GIVING_WAY)
    for dependent, on in without_cycles(graph, [(edge.dependent, edge.on) for edge in inner]):
        graph[dependent].add(on)
    return DependencyGraph.from_edges(graph).order


def _list_reasons(
    package: PackageId,
    level: Level,
    steps: _Steps,
    asked: Mapping[Edge, Level],
    groups: Iterable[VersionGroup],
) -> tuple[Reason, ...]:
    """`groups` are those with another member of this level; they are reasons of it where nothing
    else asks for as much.
    """
    reasons = [
        *steps.reasons,
        *(
            Reason(package=package, level=asked[edge], edge=edge)
            for edge in sorted(asked, key=_order_edges)
        ),
    ]
    if not any(each.level >= level for each in reasons):
        reasons += [Reason(package=package, level=level, group=group) for group in groups]
    return tuple(reasons)


def _list_idle_intents(
    known: Mapping[PackageId, Standing], stated: Mapping[PackageId, Iterable[Intent]]
) -> Iterator[Reason]:
    for package, intents in stated.items():
        for intent in intents:
            if intent.late:
                rule = f"{intent.source.title}: already in {known[package].released}"
                yield Reason(package=package, rule=rule)
            elif not intent.level and not intent.exact:
                yield Reason(package=package, source=intent.source)


def _list_idle_edges(
    edges: Iterable[Edge],
    bumps: Mapping[PackageId, Bump],
    asked: Mapping[PackageId, Mapping[Edge, Level]],
) -> Iterator[Reason]:
    """Why dependents are not released with what they need."""
    for edge in edges:
        if edge.on not in bumps or edge.dependent in bumps or edge.dependent in asked:
            continue
        new = bumps[edge.on].new
        if not edge.carry and edge.requirement and edge.admits(new):
            yield Reason(package=edge.dependent, edge=edge)
        elif not edge.carry and not edge.requirement:
            yield Reason(package=edge.dependent, rule=f"takes any version of {edge.on}")
        else:
            why = "[dependencies] says so" if edge.carry == "none" else "propagate is never"
            rule = f"does not follow {edge.on} {new}: {why}"
            yield Reason(package=edge.dependent, rule=rule)


def _find_troubles(
    known: Mapping[PackageId, Standing],
    steps: Mapping[PackageId, _Steps],
    levels: Mapping[PackageId, Level],
) -> Iterator[Trouble]:
    """Those of packages that would be released; the same one of several that share a version is
    told once.
    """
    told: set[Trouble] = set()
    for package in sorted(levels):
        own, taken = steps[package], known[package].taken
        version = own.versions.get(levels[package], "")
        if not version and own.trouble and own.trouble not in told:
            told.add(own.trouble)
            yield own.trouble
        elif version in taken:
            free = {
                spelled: level
                for level, spelled in sorted(own.versions.items(), reverse=True)
                if level and spelled not in taken
            }
            words = " and ".join(f"{spelled} ({level})" for spelled, level in free.items())
            yield Trouble(
                package=package,
                problem=Problem.TAGGED_ELSEWHERE,
                message=f"{version} is tagged already, on commit {taken[version][:9]}, which is "
                "not in the history of this one",
                hint=f"{words or 'No other level'} would be free. Or choose a version by hand: "
                f'write `"{package}": VERSION` into a change file.',
            )
