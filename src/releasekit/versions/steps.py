"""The version that each level leads to, of a package and of those that share its version."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Self

from msgspec import Struct, field

from releasekit.decided import Level, Reason, Trouble
from releasekit.problems import Problem
from releasekit.text.numbering import numbering_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from releasekit.decided import Standing, VersionIntent, Zero
    from releasekit.model import PackageId
    from releasekit.text.version_order import VersionKey


class Step(NamedTuple):
    """Where a level leads. A prerelease of the same stable version may be `there` already, written
    or tagged, and `version` is the one after it.
    """

    version: str
    there: str = ""


class Counted(Struct, frozen=True):
    """The step of a package at each level that leads higher than what is released; `trouble` says
    why others are missing. `reasons` are its own: without any, it rests, and one of level NONE
    releases what is written. Any `fresh` one asks for more than the prerelease that is there.
    """

    steps: Mapping[Level, Step] = field(default_factory=dict)
    reasons: Sequence[Reason] = ()
    fresh: Sequence[Reason] = ()
    trouble: Trouble | None = None


def count_steps(
    members: Sequence[tuple[Standing, Iterable[VersionIntent]]], zero: Zero
) -> list[Counted]:
    """Of packages that share a version, each with what is stated for it."""
    standings = [standing for standing, _ in members]
    asking = [
        [each for each in intents if (each.level or each.exact) and not each.late]
        for _, intents in members
    ]
    try:
        base = _Base.of(standings, zero)
        exact = _choose_exact(base, [each for intents in asking for each in intents if each.exact])
    except _Refused as refused:
        return [Counted(reasons=[*_explain(each)], trouble=refused.trouble) for each in asking]
    return [
        _count_own(each, intents, base, exact)
        for each, intents in zip(standings, asking, strict=True)
    ]


def _count_own(
    standing: Standing, intents: Sequence[VersionIntent], base: _Base, exact: _Spelled | None
) -> Counted:
    """`exact` is what somebody chose for all that share the version."""
    package = standing.package
    numbering = numbering_of(package.ecosystem)
    above = numbering.order(standing.released) if standing.released else None
    reasons = [*_explain(intents, exact=base.find_level(exact.order) if exact else Level.NONE)]
    reasons += _explain_written(standing, base, above, is_asked=bool(reasons))
    own = next((each.exact for each in intents if each.exact), exact.version if exact else "")
    steps: dict[Level, Step] = {}
    trouble = None
    for level in Level:
        try:
            version = numbering.check(own) if own else base.spell_next(package, level)
            if above is not None and numbering.order(version) <= above:
                continue
            is_marked = not standing.label or numbering.read(version).is_prerelease
            steps[level] = Step(version) if is_marked else _step_before(standing, base, version)
        except ValueError as error:  # a higher level may have one
            trouble = _cannot_count(package, str(error))
    fresh = [*_explain(each for each in intents if each.fresh)]
    return Counted(steps, reasons, fresh, trouble)


def _explain_written(
    standing: Standing, base: _Base, above: VersionKey | None, *, is_asked: bool
) -> Iterator[Reason]:
    """Why what is written is released. What holds a place is only where somebody asks for more."""
    numbering = numbering_of(standing.package.ecosystem)
    written = base.stable[standing.package].order
    # What has a tag was released, whatever it is called.
    is_placeholder = numbering.read(standing.written).is_placeholder
    rests = is_placeholder and standing.written not in standing.taken and not is_asked
    if rests or (above is not None and written <= above):
        return
    rule = f"{standing.written} is already written"
    if not standing.last:
        rule = "the first release"
    elif above is None and not standing.label:
        rule = "the first stable release"
    elif above == numbering.order(standing.written) and not standing.label:
        rule = f"{standing.written} is a prerelease, and [version] gives it no label"
    yield Reason(package=standing.package, level=base.find_level(written), rule=rule)


def _step_before(standing: Standing, base: _Base, target: str) -> Step:
    """To a prerelease of a stable version. Raises ValueError for a label that its ecosystem has
    not, and for a version lower than is written.
    """
    numbering, label = numbering_of(standing.package.ecosystem), standing.label
    numbers = numbering.read(target).numbers
    last, _ = max(_find_prerelease(each, label, numbers) for each in base.members)
    own, there = _find_prerelease(standing, label, numbers)
    further = numbering.prerelease(target, label, max(last, 0) + 1)
    # What was never released, or only holds a place, may go lower.
    stays = standing.last and not numbering.read(standing.written).is_placeholder
    if stays and numbering.order(further) < numbering.order(standing.written):
        raise ValueError(f"{further} is lower than {standing.written}, which is written")
    return Step(further, there if own == last >= 0 else "")


def _find_prerelease(standing: Standing, label: str, target: Sequence[int]) -> tuple[int, str]:
    """The highest number among those of a stable version with these numbers, and which that is."""
    numbering = numbering_of(standing.package.ecosystem)
    wanted = numbering.respell(standing.written, target)
    known = (standing.written, *standing.taken)
    return max((numbering.find_number(each, label, wanted), each) for each in known)


def _explain(intents: Iterable[VersionIntent], *, exact: Level = Level.NONE) -> Iterator[Reason]:
    """`exact` is the level of those that ask for an exact version."""
    for each in intents:
        level = max(each.level, exact, Level.PATCH) if each.exact else each.level
        yield Reason(package=each.package, level=level, source=each.source)


class _Refused(Exception):
    """Packages that share a version get none."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


def _cannot_count(package: PackageId, message: str, hint: str = "") -> Trouble:
    by_hand = f'Choose it by hand: write `"{package}": VERSION` into a change file.'
    problem = Problem.NO_NEXT_VERSION
    return Trouble(package=package, problem=problem, message=message, hint=hint or by_hand)


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


class _Base(Struct, frozen=True):
    """What the next version of packages that share one is counted from: the highest of those
    written, and the highest released one. `stable` are all written ones, without what marks them as
    prereleases.
    """

    members: Sequence[Standing]
    stable: Mapping[PackageId, _Spelled]
    written: _Spelled
    released: _Spelled | None
    zero: Zero

    @classmethod
    def of(cls, members: Sequence[Standing], zero: Zero) -> Self:
        """Raises _Refused."""
        first = members[0]
        for each in members:
            if each.label != first.label:
                labels = f"{first.label!r} and {each.label!r}"
                message = f"{each.package} shares its version, and their labels are {labels}"
                hint = "Give both the same in `branches` and `prerelease` below [version]."
                raise _Refused(_cannot_count(first.package, message, hint))
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
        return cls(members, stable, max(stable.values()), max(released, default=None), zero)

    def spell_next(self, package: PackageId, level: Level) -> str:
        """As the ecosystem of `package` writes it. Raises ValueError where there is none."""
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
        try:
            led = {level: self.released.bump(level, self.zero).order for level in Level if level}
        except ValueError:
            return Level.NONE
        led[Level.NONE] = self.released.order
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
        raise _Refused(_cannot_count(one, message, hint))


def _choose_exact(base: _Base, chosen: Sequence[VersionIntent]) -> _Spelled | None:
    """That of all that share the version; None where nobody chose one. Raises _Refused."""
    for intent in chosen:
        if why := _find_fault(intent, chosen[0], base):
            message = f"{intent.source.path or intent.source.title}: {why}"
            problem = Problem.CHANGE_FILE if intent.source.path else Problem.NO_NEXT_VERSION
            raise _Refused(Trouble(package=intent.package, problem=problem, message=message))
    return _Spelled.of(chosen[0].package.ecosystem, chosen[0].exact) if chosen else None


def _find_fault(intent: VersionIntent, first: VersionIntent, base: _Base) -> str:
    """Why nobody may choose this version, `first` being the one that was chosen first."""
    exact, numbering = intent.exact, numbering_of(intent.package.ecosystem)
    try:
        order = numbering.order(exact)
    except ValueError as error:
        return str(error)
    if numbering.read(exact).is_placeholder:
        return f"{exact} stands for what is not released; write the version itself"
    if numbering.read(exact).is_prerelease and intent.source.path:
        stable = numbering.stable(exact)
        return f"{exact} is a prerelease, which labels in [version] make; write {stable}"
    if base.released and order <= base.released.order:
        last = base.released.version
        return f"{exact} is not higher than {last}, which is released; write a higher one"
    if order < base.written.order:
        last = base.written.version
        return f"{exact} is lower than {last}, which is written; write a higher one"
    if order != _Spelled.of(first.package.ecosystem, first.exact).order:
        elsewhere = first.source.path or first.source.title
        shared = "" if first.package == intent.package else f" for {first.package}, which shares it"
        return f"{exact} is not {first.exact}, as {elsewhere} says{shared}; keep one"
    return ""
