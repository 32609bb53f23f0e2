"""The decision: from what changes ask of packages to the next version of each, without effects.

One record for each package, a `_Case`, goes through all stages. What is given is gathered in it.
`versions/steps.py` counts where each level leads. A work list raises the levels from those of the
intents by what has to follow: members of groups, and dependents whose published files exclude the
new version. What has nothing new for a prerelease that is there keeps it, and all others get bumps,
in publish order. Then it is told what was left alone, and what cannot be.

Levels only rise, and there are four, so it ends. What excludes a version excludes all higher ones,
so the result is the least one, in whichever order; only a hole in a range, as `!=` makes it, may
add a release.
"""

from __future__ import annotations

from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from releasekit.decided import Bump, Decision, Level, Reason, Trouble
from releasekit.fields import replace
from releasekit.graph import DependencyGraph, stuck, without_cycles
from releasekit.model import DependencyKind
from releasekit.problems import Problem
from releasekit.text.numbering import numbering_of
from releasekit.versions.steps import Counted, Step, count_steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from releasekit.decided import Edge, Propagate, Rules, Standing, VersionGroup, VersionIntent

_AT_RUN_TIME: Final = frozenset({DependencyKind.RUNTIME, DependencyKind.INDIRECT})
# What does not order a release where it closes a cycle.
_GIVING_WAY: Final = frozenset({DependencyKind.PEER, DependencyKind.OPTIONAL})
_NOWHERE: Final = Step("")


class _Case(Struct, eq=False):
    """One package while it is decided; sorts as the package.

    `needs` are the links to what it needs, `needed_by` those that lead here, and `together` all
    that share its version through groups, with itself. It `moves` once it is asked for a release,
    at the highest `level` that is asked for. It goes `further` where that is more than a prerelease
    that is there. `new` is what it is going to be; there is no `bump` to what has a tag already.
    """

    standing: Standing
    intents: list[VersionIntent] = field(default_factory=list)
    needs: list[_Link] = field(default_factory=list)
    needed_by: list[_Link] = field(default_factory=list)
    groups: list[_Sharing] = field(default_factory=list)
    together: set[_Case] = field(default_factory=set)
    counted: Counted = field(default_factory=Counted)
    moves: bool = False
    level: Level = Level.NONE
    further: bool = False
    new: str = ""
    bump: Bump | None = None

    def __lt__(self, other: _Case) -> bool:
        return self.standing.package < other.standing.package

    @property
    def step(self) -> Step:
        """That of its level; without a version where there is none."""
        return self.counted.steps.get(self.level, _NOWHERE)


class _Link(Struct, eq=False):
    """An edge between two cases, and the level that it asks the dependent for."""

    edge: Edge
    dependent: _Case
    on: _Case
    asks: Level = Level.NONE


class _Sharing(Struct, eq=False):
    """A group: in the end, those of its members that move are at its level."""

    group: VersionGroup
    members: Sequence[_Case]
    moving: set[_Case] = field(default_factory=set)
    level: Level | None = None


def decide(
    standings: Sequence[Standing],
    intents: Sequence[VersionIntent],
    edges: Sequence[Edge],
    rules: Rules,
) -> Decision:
    """The order of the arguments does not matter. Packages without a standing are left out.

    A bump leads from the released version, or from a prerelease where nothing else is out, empty
    before a first release, to the next one, also where that is already written.
    """
    cases = _gather(standings, intents, edges, rules)
    clusters = [sorted(found) for found in {id(it.together): it.together for it in cases}.values()]
    for members in clusters:
        counted = count_steps([(it.standing, it.intents) for it in members], rules.zero)
        for case, each in zip(members, counted, strict=True):
            case.counted = each
    _raise_levels([case for members in clusters for case in members], rules.propagate)
    _mark_further(cases)
    ordered = _put_in_order(cases)
    for case in ordered:
        _make_bump(case)
    return Decision(
        bumps=tuple(case.bump for case in ordered if case.bump),
        left_alone=(*_list_idle_intents(cases), *_list_idle_links(cases)),
        troubles=(*_find_troubles(cases), *_find_unstable(cases)),
    )


def _gather(
    standings: Iterable[Standing],
    intents: Iterable[VersionIntent],
    edges: Iterable[Edge],
    rules: Rules,
) -> Sequence[_Case]:
    """Sorted, with all that they hold."""
    cases = {each.package: _Case(each) for each in sorted(standings, key=attrgetter("package"))}
    for intent in sorted(intents, key=_order_intents):
        if intent.package in cases:
            cases[intent.package].intents.append(intent)
    for edge in sorted(edges, key=attrgetter("asked")):
        dependent, on = cases.get(edge.dependent), cases.get(edge.on)
        if dependent and on and dependent is not on:
            link = _Link(edge, dependent, on)
            dependent.needs.append(link)
            on.needed_by.append(link)
    for case in cases.values():
        case.together.add(case)
    for group in sorted(rules.groups, key=attrgetter("name", "place", "packages")):
        packages = tuple(sorted(cases.keys() & group.packages))
        sharing = _Sharing(replace(group, packages=packages), [cases[each] for each in packages])
        together = set[_Case]().union(*(member.together for member in sharing.members))
        for case in together:
            case.together = together
        for member in sharing.members:
            member.groups.append(sharing)
    return [*cases.values()]


def _order_intents(intent: VersionIntent) -> tuple[int, int, str, str, str, str]:
    """The highest level first, then the oldest."""
    source = intent.source
    return -intent.level, source.time_s, source.title, source.path, source.commit, intent.exact


def _raise_levels(cases: Iterable[_Case], propagate: Propagate) -> None:
    """To the least levels at which nobody asks for more."""
    pending: deque[_Case] = deque()

    def lift(case: _Case, level: Level) -> None:
        if not case.moves or case.level < level:
            case.moves, case.level = True, level
            pending.append(case)

    for case in cases:
        for reason in case.counted.reasons:
            lift(case, reason.level)
    while pending:
        case = pending.popleft()
        level, version = case.level, case.step.version
        for sharing in case.groups:
            sharing.moving.add(case)
            if sharing.level is None or sharing.level < level:
                sharing.level = level
                for member in sharing.members:
                    if sharing.group.kind == "fixed" or member.moves:
                        lift(member, level)
            lift(case, sharing.level)
        for link in case.needed_by if version else ():
            if asks := _ask(link, level, version, propagate):
                link.asks = asks
                lift(link.dependent, asks)


def _ask(link: _Link, level: Level, version: str, propagate: Propagate) -> Level:
    """What a dependent is asked for by the release of what it needs, as this version."""
    edge = link.edge
    # Before its first release, a package has no published files that could exclude anything.
    if propagate == "never" or edge.carry == "none" or not link.dependent.standing.last:
        return Level.NONE
    if edge.carry == "same":
        return max(level, Level.PATCH)
    follows = edge.carry == "patch" or (propagate == "always" and edge.kind in _AT_RUN_TIME)
    return Level.PATCH if follows or not edge.admits(version) else Level.NONE


def _mark_further(cases: Iterable[_Case]) -> None:
    """Where something is new in a package, in what it needs, or in what shares its version."""
    spread: set[_Sharing] = set()
    pending = [it for it in cases if it.moves and (it.counted.fresh or not it.step.there)]
    while pending:
        case = pending.pop()
        if not case.further:
            case.further = True
            pending += [link.dependent for link in case.needed_by if link.asks]
            for sharing in {*case.groups} - spread:
                spread.add(sharing)
                pending += sharing.moving


def _put_in_order(cases: Iterable[_Case]) -> Sequence[_Case]:
    """Dependencies first, ties by name. Of a cycle, optional ones and peers give way first."""
    graph = {case: {link.on for link in case.needs} for case in cases}
    above = {case: {link.dependent for link in case.needed_by} for case in cases}
    # What is on a cycle, or between two; all of the others is left as it is.
    circling = stuck(graph) & stuck(above)
    for case in circling:
        graph[case] -= circling
    inner = [link for case in cases for link in case.needs if {case, link.on} <= circling]
    inner.sort(key=lambda link: link.edge.kind in _GIVING_WAY)
    for dependent, on in without_cycles(graph, [(link.dependent, link.on) for link in inner]):
        graph[dependent].add(on)
    return DependencyGraph.from_edges(graph).order


def _make_bump(case: _Case) -> None:
    """None to what is there already and has a tag."""
    if not case.moves or not case.step.version:
        return
    case.new = case.step.version if case.further else case.step.there
    if case.further or case.new not in case.standing.taken:
        case.bump = Bump(
            package=case.standing.package,
            old=case.standing.last,
            new=case.new,
            level=case.level,
            reasons=tuple(_list_reasons(case)),
        )


def _list_reasons(case: _Case) -> Sequence[Reason]:
    """Of one that goes further than what is there, only what is new is one."""
    package, counted = case.standing.package, case.counted
    is_next = bool(case.step.there) and case.further
    # The same may be asked twice, as under an alias.
    asks = {it.edge: it.asks for it in case.needs if it.asks and (it.on.further or not is_next)}
    reasons = [
        *(counted.fresh if is_next else counted.reasons),
        *(Reason(package=package, level=level, edge=edge) for edge, level in asks.items()),
    ]
    # A group is a reason where nothing else asks for as much as another member has.
    if not any(is_next or each.level >= case.level for each in reasons):
        raising = [each.group for each in case.groups if len(each.moving) > 1]
        reasons += [Reason(package=package, level=case.level, group=group) for group in raising]
    return reasons


def _list_idle_intents(cases: Iterable[_Case]) -> Iterator[Reason]:
    for case in cases:
        for intent in case.intents:
            if intent.late:
                rule = f"{intent.source.title}: already in {case.standing.released}"
                yield Reason(package=intent.package, rule=rule)
            elif not intent.level and not intent.exact:
                yield Reason(package=intent.package, source=intent.source)


def _list_idle_links(cases: Iterable[_Case]) -> Iterator[Reason]:
    """Why dependents are not released with what they need."""
    resting = (case for case in cases if case.standing.last and not case.bump)
    for link in (link for case in resting for link in case.needs if link.on.bump):
        edge, new = link.edge, link.on.new
        if not edge.carry and edge.requirement and edge.admits(new):
            yield Reason(package=edge.dependent, edge=edge)
            continue
        why = "[dependencies] says so" if edge.carry == "none" else "propagate is never"
        if edge.only_orders:
            why = 'no manifest says that it contains this; write bump = "patch" if it does'
        rule = f"does not follow {edge.on} {new}: {why}"
        if not edge.carry and not edge.requirement and not edge.only_orders:
            rule = f"takes any version of {edge.on}"
        yield Reason(package=edge.dependent, rule=rule)


def _find_unstable(cases: Iterable[_Case]) -> Iterator[Trouble]:
    """Those of stable packages that would have to require a prerelease."""
    for link in (link for case in cases if case.bump for link in case.needs if link.on.new):
        edge, on, new = link.edge, link.on.standing, link.on.new
        is_unstable = _is_prerelease(link.on) and not _is_prerelease(link.dependent)
        if edge.kind is DependencyKind.EXTRA or not is_unstable:
            continue
        if not (on.released and edge.admits(on.released) and edge.admits(new)):
            yield Trouble(
                package=edge.dependent,
                problem=Problem.STABLE_NEEDS_PRERELEASE,
                message=f"it is stable, and would have to require {edge.on} {new}",
                hint=f'Make it a prerelease as well: prerelease = {{ "{edge.dependent.name}" = '
                f'"{on.label or "rc"}" }} in [version]. Or release a stable {edge.on}.',
            )


def _is_prerelease(case: _Case) -> bool:
    return numbering_of(case.standing.package.ecosystem).read(case.new).is_prerelease


def _find_troubles(cases: Iterable[_Case]) -> Iterator[Trouble]:
    """Those of packages that would be released; what several have by a shared version, once."""
    told: set[Trouble] = set()
    for case in cases:
        standing, version, trouble = case.standing, case.step.version, case.counted.trouble
        if case.moves and not version and trouble and trouble not in told:
            told.add(trouble)
            yield trouble
        elif case.bump and (taken := _find_taken(standing, version)):
            free = {
                step.version: level
                for level, step in sorted(case.counted.steps.items(), reverse=True)
                if level and not _find_taken(standing, step.version)
            }
            words = " and ".join(f"{spelled} ({level})" for spelled, level in free.items())
            yield Trouble(
                package=standing.package,
                problem=Problem.TAGGED_ELSEWHERE,
                message=f"{taken} is tagged already, on commit {standing.taken[taken][:9]}, which "
                "is not in the history of this one",
                hint=f"{words or 'No other level'} would be free. Or choose a version by hand: "
                f'write `"{standing.package}": VERSION` into a change file.',
            )


def _find_taken(standing: Standing, version: str) -> str:
    """The version, or the stable one that it is a prerelease of, if that has a tag; else empty."""
    stable = numbering_of(standing.package.ecosystem).stable(version)
    return next((each for each in (version, stable) if each in standing.taken), "")
