"""The decision: from what changes ask of packages to the next version of each, without effects.

Each package starts at the level of its intents. A work list raises what has to follow: members of
groups, and dependents whose published files exclude the new version. Levels only rise, and there
are four, so it ends. What excludes a version excludes all higher ones, so the result is the least
one, in whichever order; only a hole in a range, as `!=` makes it, may add a release.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from releasekit.decided import Bump, Decision, Level, Reason, Trouble
from releasekit.graph import DependencyGraph, stuck, without_cycles
from releasekit.model import DependencyKind, PackageId
from releasekit.problems import Problem
from releasekit.text.numbering import numbering_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from releasekit.decided import Edge, Intent, Propagate, Rules, Standing, VersionGroup, Zero
    from releasekit.text.version_order import VersionKey

_AT_RUN_TIME: Final = frozenset({DependencyKind.RUNTIME, DependencyKind.INDIRECT})
# What does not order a release where it closes a cycle.
_GIVING_WAY: Final = frozenset({DependencyKind.PEER, DependencyKind.OPTIONAL})
_EDGE_ORDER: Final = attrgetter("dependent", "on", "kind", "requirement", "carry")


def decide(
    standings: Sequence[Standing], intents: Sequence[Intent], edges: Sequence[Edge], rules: Rules
) -> Decision:
    """The same for any order of its arguments. Packages without a standing are left out.

    A bump leads from the released version, or from a prerelease where nothing else is out, empty
    before a first release, to the next one, also where that is already written.
    """
    known = {each.package: each for each in sorted(standings, key=attrgetter("package"))}
    stated: dict[PackageId, list[Intent]] = {package: [] for package in known}
    for intent in sorted(intents, key=_order_intents):
        if intent.package in known:
            stated[intent.package].append(intent)
    groups = [
        replace(each, packages=tuple(sorted(known.keys() & each.packages)))
        for each in sorted(rules.groups, key=attrgetter("name", "place", "packages"))
    ]
    # The groups of each package, by their numbers, and all that share its version through them.
    sharing: dict[PackageId, list[int]] = {package: [] for package in known}
    joined = {package: {package} for package in known}
    for number, group in enumerate(groups):
        for member in group.packages:
            sharing[member].append(number)
        together = set[PackageId]().union(*(joined[member] for member in group.packages))
        joined |= dict.fromkeys(together, together)
    inside = [
        each
        for each in edges
        if each.dependent != each.on and {each.dependent, each.on} <= known.keys()
    ]
    inside.sort(key=_EDGE_ORDER)

    steps: dict[PackageId, _Steps] = {}
    for package, together in joined.items():
        if package not in steps:
            members = [known[each] for each in sorted(together)]
            steps |= _count_steps(members, stated, rules.zero)
    # Before its first release, a package has no published files that could exclude anything.
    published = [each for each in inside if known[each.dependent].last]
    levels, asked = _raise_levels(steps, published, groups, sharing, rules.propagate)
    reached = [Counter(levels.get(member) for member in group.packages) for group in groups]
    further = _find_further(steps, levels, asked, groups, sharing)
    bumps = {}
    # What all of them are going to be; those that have a tag already get no bump.
    upcoming: dict[PackageId, str] = {}
    for package in _put_in_order(known, inside):
        level, own = levels.get(package), steps[package]
        if level is None or level not in own.versions:
            continue
        there = own.there.get(level, "")
        is_further = there and package in further
        upcoming[package] = there if there and not is_further else own.versions[level]
        if there in known[package].taken and not is_further:
            continue
        edges_asking = sorted(asked[package], key=_EDGE_ORDER)
        if is_further:
            edges_asking = [each for each in edges_asking if each.on in further]
        reasons = [
            *(own.fresh if is_further else own.reasons),
            *(
                Reason(package=package, level=asked[package][edge], edge=edge)
                for edge in edges_asking
            ),
        ]
        # A group is a reason where nothing else asks for as much as another member has.
        if not any(each.level >= level or is_further for each in reasons):
            raising = [groups[number] for number in sharing[package] if reached[number][level] > 1]
            reasons += [Reason(package=package, level=level, group=group) for group in raising]
        bumps[package] = Bump(
            package=package,
            old=known[package].last,
            new=upcoming[package],
            level=level,
            reasons=tuple(reasons),
        )
    return Decision(
        bumps=tuple(bumps.values()),
        left_alone=(*_list_idle_intents(known, stated), *_list_idle_edges(published, bumps)),
        troubles=(
            *_find_troubles(known, steps, levels, bumps),
            *_find_unstable(known, bumps, upcoming, inside),
        ),
    )


def _order_intents(intent: Intent) -> tuple[int, int, str, str, str, str]:
    """The highest level first, then the oldest."""
    source = intent.source
    return -intent.level, source.time_s, source.title, source.path, source.commit, intent.exact


@dataclass(frozen=True, slots=True)
class _Steps:
    """The version of a package at each level, where that is higher than the released one; `trouble`
    says why others are missing. `reasons` are its own, whatever others ask of it: without any, it
    rests. One of level NONE releases what is written. A level leads to a prerelease that is `there`
    already, written or tagged, unless one of the `fresh` reasons or another package asks for a
    further one.
    """

    versions: Mapping[Level, str]
    reasons: Sequence[Reason]
    trouble: Trouble | None = None
    there: Mapping[Level, str] = field(default_factory=dict)
    fresh: Sequence[Reason] = ()


class _Refused(Exception):
    """Packages that share a version get none."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


def _cannot_count(package: PackageId, message: str) -> Trouble:
    return Trouble(
        package=package,
        problem=Problem.NO_NEXT_VERSION,
        message=message,
        hint=f'Choose it by hand: write `"{package}": VERSION` into a change file.',
    )


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
    try:
        line = _Line.of(members, zero)
        exact = _choose_exact(line, [each for intents in asking.values() for each in intents])
    except _Refused as refused:
        return {
            package: _Steps({}, _explain(intents), refused.trouble)
            for package, intents in asking.items()
        }
    return {
        each.package: _count_own_steps(each, line, members, asking[each.package], exact)
        for each in members
    }


def _count_own_steps(
    standing: Standing,
    line: _Line,
    members: Sequence[Standing],
    intents: Sequence[Intent],
    exact: _Spelled | None,
) -> _Steps:
    """`exact` is what somebody chose for all `members`, which share the version."""
    package = standing.package
    numbering = numbering_of(package.ecosystem)
    above = numbering.order(standing.released) if standing.released else None
    written = line.stable[package].order
    reasons = _explain(intents, exact=line.find_level(exact.order) if exact else Level.NONE)
    # What has a tag was released, whatever it is called.
    is_placeholder = numbering.read(standing.written).is_placeholder
    rests = is_placeholder and standing.written not in standing.taken and not reasons
    if (above is None or written > above) and not rests:
        rule = f"{standing.written} is already written" if standing.last else "the first release"
        if above is None and standing.last and not standing.label:
            rule = "the first stable release"
        if above == numbering.order(standing.written) and not standing.label:
            rule = f"{standing.written} is a prerelease, and [version] gives it no label"
        reasons.append(Reason(package=package, level=line.find_level(written), rule=rule))
    own = next((each.exact for each in intents if each.exact), exact.version if exact else "")
    versions: dict[Level, str] = {}
    there: dict[Level, str] = {}
    trouble = None
    for level in Level:
        try:
            version = numbering.check(own) if own else line.spell_next(package, level)
            if above is not None and numbering.order(version) <= above:
                continue
            if standing.label and not numbering.read(version).is_prerelease:
                there[level], version = _spell_prerelease(standing, members, version)
        except ValueError as error:  # a higher level may have one
            trouble = _cannot_count(package, str(error))
            continue
        versions[level] = version
    fresh = _explain(each for each in intents if each.fresh)
    return _Steps(versions, reasons, trouble, there, fresh)


def _spell_prerelease(
    standing: Standing, members: Sequence[Standing], target: str
) -> tuple[str, str]:
    """The last prerelease of a stable version, empty without one, and the next one. Raises
    ValueError for a label that its ecosystem has not, and for a version lower than is written.
    """
    numbering, label = numbering_of(standing.package.ecosystem), standing.label
    numbers = numbering.read(target).numbers
    last, _ = max(_find_prerelease(each, label, numbers) for each in members)
    own, there = _find_prerelease(standing, label, numbers)
    further = numbering.prerelease(target, label, max(last, 0) + 1)
    # What was never released, or only holds a place, may go lower.
    stays = standing.last and not numbering.read(standing.written).is_placeholder
    if stays and numbering.order(further) < numbering.order(standing.written):
        raise ValueError(f"{further} is lower than {standing.written}, which is written")
    return there if own == last >= 0 else "", further


def _find_prerelease(standing: Standing, label: str, target: Sequence[int]) -> tuple[int, str]:
    """The highest number among those of a stable version with these numbers, and which that is."""
    numbering = numbering_of(standing.package.ecosystem)
    wanted = numbering.respell(standing.written, target)
    known = (standing.written, *standing.taken)
    return max((numbering.find_number(each, label, wanted), each) for each in known)


def _explain(intents: Iterable[Intent], *, exact: Level = Level.NONE) -> list[Reason]:
    """`exact` is the level of those that ask for an exact version."""
    return [
        Reason(
            package=each.package,
            level=max(each.level, exact, Level.PATCH) if each.exact else each.level,
            source=each.source,
        )
        for each in intents
    ]


class _Spelled(NamedTuple):
    """A version, and the ecosystem that writes it so. Sorts."""

    order: VersionKey
    ecosystem: str
    version: str

    @classmethod
    def of(cls, ecosystem: str, version: str) -> Self:
        """Raises ValueError for what is no version."""
        return cls(numbering_of(ecosystem).order(version), ecosystem, version)

    def bump(self, level: Level, zero: Zero) -> Self:
        """Raises ValueError for a date."""
        bumped = numbering_of(self.ecosystem).bump(self.version, level, zero)
        return self.of(self.ecosystem, bumped)


@dataclass(frozen=True, slots=True)
class _Line:
    """What the next version of packages that share one is counted from: the highest of those
    written, and the highest released one. `stable` are all written ones, without what marks them as
    prereleases.
    """

    stable: Mapping[PackageId, _Spelled]
    written: _Spelled
    released: _Spelled | None
    zero: Zero

    @classmethod
    def of(cls, members: Iterable[Standing], zero: Zero) -> Self:
        """Raises _Refused."""
        first, *others = members
        for each in others:
            if each.label != first.label:
                labels = f"{first.label!r} and {each.label!r}"
                message = f"{each.package} shares its version, and their labels are {labels}"
                hint = "Give both the same in `branches` and `prerelease` below [version]."
                problem = Problem.NO_NEXT_VERSION
                raise _Refused(
                    Trouble(package=first.package, problem=problem, message=message, hint=hint)
                )
        stable: dict[PackageId, _Spelled] = {}
        released = []
        for each in members:
            ecosystem = each.package.ecosystem
            try:
                stable[each.package] = _Spelled.of(ecosystem, each.written).bump(Level.NONE, zero)
                if each.released:
                    released.append(_Spelled.of(ecosystem, each.released))
            except ValueError as error:
                raise _Refused(_cannot_count(each.package, str(error))) from error
        _refuse_go_majors(stable)
        return cls(stable, max(stable.values()), max(released, default=None), zero)

    def spell_next(self, package: PackageId, level: Level) -> str:
        """The version at this level, as the ecosystem of `package` writes it. Raises ValueError
        where there is none.
        """
        if self.released is not None:
            found = max(self.written, self.released.bump(level, self.zero), key=attrgetter("order"))
        elif self.written.order.release:
            found = self.written
        else:
            # 0.0.0 is what stands there before anybody has thought of a version.
            found = self.written.bump(Level.MINOR, "literal")
        own = self.stable[package]
        if own.order == found.order:
            return own.version
        if own.ecosystem == found.ecosystem:
            return found.version
        numbers = numbering_of(found.ecosystem).read(found.version).numbers
        return numbering_of(own.ecosystem).respell(own.version, numbers)

    def find_level(self, reached: VersionKey) -> Level:
        """The lowest level that leads nearest to a version from the released one."""
        if self.released is None:
            return Level.NONE
        led = {Level.NONE: self.released.order}
        try:
            for level in (Level.PATCH, Level.MINOR, Level.MAJOR):
                led[level] = self.released.bump(level, self.zero).order
        except ValueError:
            return Level.NONE
        near = (level for level, order in led.items() if order <= reached)
        return max(near, key=lambda level: (led[level], -level), default=Level.NONE)


def _refuse_go_majors(stable: Mapping[PackageId, _Spelled]) -> None:
    """The path of a Go module says its major version, so that not all can share one. Raises
    _Refused. https://go.dev/ref/mod#major-version-suffixes
    """
    majors = {
        max(1, numbering_of("go").read(spelled.version).numbers[0]): package
        for package, spelled in stable.items()
        if package.ecosystem == "go"
    }
    if len(majors) > 1:
        (low, one), (high, other) = sorted(majors.items())[:2]
        message = f"by its path it is v{low}, and {other}, which shares its version, is v{high}"
        hint = "Take one of the two out of the group."
        problem = Problem.NO_NEXT_VERSION
        raise _Refused(Trouble(package=one, problem=problem, message=message, hint=hint))


def _choose_exact(line: _Line, intents: Iterable[Intent]) -> _Spelled | None:
    """What somebody chose for packages that share a version; None where nobody did. Raises
    _Refused.
    """
    first: Intent | None = None
    for intent in intents:
        if intent.exact:
            if why := _find_fault(intent, first, line):
                message = f"{intent.source.path or intent.source.title}: {why}"
                problem = Problem.CHANGE_FILE
                raise _Refused(Trouble(package=intent.package, problem=problem, message=message))
            first = first or intent
    return _Spelled.of(first.package.ecosystem, first.exact) if first else None


def _find_fault(intent: Intent, first: Intent | None, line: _Line) -> str:
    """Why nobody may choose this version, `first` being the one that was chosen before."""
    exact = intent.exact
    try:
        order = _Spelled.of(intent.package.ecosystem, exact).order
    except ValueError as error:
        return str(error)
    numbering = numbering_of(intent.package.ecosystem)
    if numbering.read(exact).is_placeholder:
        return f"{exact} stands for what is not released; write the version itself"
    if numbering.read(exact).is_prerelease and intent.source.path:
        stable = numbering.stable(exact)
        return f"{exact} is a prerelease, which labels in [version] make; write {stable}"
    if line.released and order <= line.released.order:
        last = line.released.version
        return f"{exact} is not higher than {last}, which is released; write a higher one"
    if order < line.written.order:
        last = line.written.version
        return f"{exact} is lower than {last}, which is written; write a higher one"
    if first and order != _Spelled.of(first.package.ecosystem, first.exact).order:
        elsewhere = first.source.path or first.source.title
        shared = "" if first.package == intent.package else f" for {first.package}, which shares it"
        return f"{exact} is not {first.exact}, as {elsewhere} says{shared}; keep one"
    return ""


def _raise_levels(
    steps: Mapping[PackageId, _Steps],
    edges: Iterable[Edge],
    groups: Sequence[VersionGroup],
    sharing: Mapping[PackageId, Sequence[int]],
    propagate: Propagate,
) -> tuple[dict[PackageId, Level], Mapping[PackageId, dict[Edge, Level]]]:
    """The least levels of the packages that are released, at which nobody asks for more; and of
    each package, the edges that ask for more than nothing, with the level of each. `sharing` are
    the numbers of its groups.
    """
    dependents: defaultdict[PackageId, list[Edge]] = defaultdict(list)
    for edge in edges:
        dependents[edge.on].append(edge)
    levels: dict[PackageId, Level] = {}
    shared: dict[int, Level] = {}
    asked: dict[PackageId, dict[Edge, Level]] = {package: {} for package in steps}
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
        for number in sharing[package]:
            if number in shared and shared[number] >= level:
                lift(package, shared[number])
                continue
            shared[number] = level
            for member in groups[number].packages:
                if groups[number].kind == "fixed" or member in levels:
                    lift(member, level)
        version = steps[package].versions.get(level, "")
        for edge in dependents[package] if version else ():
            if asks := _ask(edge, level, version, propagate):
                asked[edge.dependent][edge] = asks
                lift(edge.dependent, asks)
    return levels, asked


def _find_further(
    steps: Mapping[PackageId, _Steps],
    levels: Mapping[PackageId, Level],
    asked: Mapping[PackageId, Iterable[Edge]],
    groups: Sequence[VersionGroup],
    sharing: Mapping[PackageId, Sequence[int]],
) -> set[PackageId]:
    """The packages whose version is a new one, and not the prerelease that is there: something is
    new in them, in what they need, or in what shares their version.
    """
    dependents: defaultdict[PackageId, set[PackageId]] = defaultdict(set)
    for package, edges in asked.items():
        for edge in edges:
            dependents[edge.on].add(package)
    found: set[PackageId] = set()
    spread: set[int] = set()
    pending = [
        package
        for package, level in levels.items()
        if steps[package].fresh or not steps[package].there.get(level)
    ]
    while pending:
        package = pending.pop()
        if package not in found:
            found.add(package)
            pending += dependents[package]
            for number in {*sharing[package]} - spread:
                spread.add(number)
                pending += [each for each in groups[number].packages if each in levels]
    return found


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
    above: dict[PackageId, set[PackageId]] = {package: set() for package in known}
    for edge in edges:
        graph[edge.dependent].add(edge.on)
        above[edge.on].add(edge.dependent)
    # What is on a cycle, or between two; all of the others is left as it is.
    circling = stuck(graph) & stuck(above)
    for package in circling:
        graph[package] -= circling
    inner = [edge for edge in edges if {edge.dependent, edge.on} <= circling]
    inner.sort(key=lambda edge: edge.kind in _GIVING_WAY)
    for dependent, on in without_cycles(graph, [(edge.dependent, edge.on) for edge in inner]):
        graph[dependent].add(on)
    return DependencyGraph.from_edges(graph).order


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


def _list_idle_edges(edges: Iterable[Edge], bumps: Mapping[PackageId, Bump]) -> Iterator[Reason]:
    """Why dependents are not released with what they need."""
    for edge in edges:
        if edge.on not in bumps or edge.dependent in bumps:
            continue
        new = bumps[edge.on].new
        if not edge.carry and edge.requirement and edge.admits(new):
            yield Reason(package=edge.dependent, edge=edge)
        elif edge.only_orders:
            why = 'no manifest says that it contains this; write bump = "patch" if it does'
            rule = f"does not follow {edge.on} {new}: {why}"
            yield Reason(package=edge.dependent, rule=rule)
        elif not edge.carry and not edge.requirement:
            yield Reason(package=edge.dependent, rule=f"takes any version of {edge.on}")
        else:
            why = "[dependencies] says so" if edge.carry == "none" else "propagate is never"
            rule = f"does not follow {edge.on} {new}: {why}"
            yield Reason(package=edge.dependent, rule=rule)


def _find_unstable(
    known: Mapping[PackageId, Standing],
    bumps: Mapping[PackageId, Bump],
    upcoming: Mapping[PackageId, str],
    edges: Iterable[Edge],
) -> Iterator[Trouble]:
    """Those of stable packages that would have to require a prerelease."""

    def is_prerelease(package: PackageId, version: str) -> bool:
        return numbering_of(package.ecosystem).read(version).is_prerelease

    for edge in edges:
        on, bump, new = known[edge.on], bumps.get(edge.dependent), upcoming.get(edge.on)
        is_declared = edge.kind is DependencyKind.EXTRA
        if is_declared or not bump or not new or not is_prerelease(edge.on, new):
            continue
        has_stable = on.released and edge.admits(on.released) and edge.admits(new)
        if has_stable or is_prerelease(edge.dependent, bump.new):
            continue
        yield Trouble(
            package=edge.dependent,
            problem=Problem.STABLE_NEEDS_PRERELEASE,
            message=f"it is stable, and would have to require {edge.on} {new}",
            hint=f'Make it a prerelease as well: prerelease = {{ "{edge.dependent.name}" = '
            f'"{on.label or "rc"}" }} in [version]. Or release a stable {edge.on}.',
        )


def _find_troubles(
    known: Mapping[PackageId, Standing],
    steps: Mapping[PackageId, _Steps],
    levels: Mapping[PackageId, Level],
    bumps: Mapping[PackageId, Bump],
) -> Iterator[Trouble]:
    """Those of packages that would be released; the same one of several that share a version is
    told once.
    """
    told: set[Trouble] = set()
    for package in sorted(levels):
        own, standing = steps[package], known[package]
        version = own.versions.get(levels[package], "")
        if not version and own.trouble and own.trouble not in told:
            told.add(own.trouble)
            yield own.trouble
        elif package in bumps and (taken := _find_taken(standing, version)):
            free = {
                spelled: level
                for level, spelled in sorted(own.versions.items(), reverse=True)
                if level and not _find_taken(standing, spelled)
            }
            words = " and ".join(f"{spelled} ({level})" for spelled, level in free.items())
            yield Trouble(
                package=package,
                problem=Problem.TAGGED_ELSEWHERE,
                message=f"{taken} is tagged already, on commit {standing.taken[taken][:9]}, which "
                "is not in the history of this one",
                hint=f"{words or 'No other level'} would be free. Or choose a version by hand: "
                f'write `"{package}": VERSION` into a change file.',
            )


def _find_taken(standing: Standing, version: str) -> str:
    """The version, or the stable one that it is a prerelease of, if that has a tag; else empty."""
    stable = numbering_of(standing.package.ecosystem).stable(version)
    return next((each for each in (version, stable) if each in standing.taken), "")
