"""What users can install now: what registries show of each package, and what of that needs one that
is missing.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from releasekit.errors import PackageError
from releasekit.model import DependencyKind
from releasekit.report.plans import place
from releasekit.report.remarks import hint_lines
from releasekit.report.text import columns, count_of, few, without_name
from releasekit.text.commands import spell
from releasekit.text.escape import clip, log_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from releasekit.model import Package, PackageId, Published

# The order of the table.
_STATES: Final = ("missing", "partly there", "unknown", "yanked", "there")
_ABSENT: Final = frozenset({"missing", "partly there"})
# What is not installed with a package.
_LEFT_OUT: Final = frozenset(
    {DependencyKind.DEV, DependencyKind.ORDER, DependencyKind.OPTIONAL, DependencyKind.EXTRA}
)
_MAX_CHARS: Final = 300


class StatusAnswers(Struct, frozen=True, kw_only=True):
    """`answers` are those of `plan.registries.ask_all`. `unreachable` are pairs of packages: users
    of the first cannot get the second, which is yanked. `unresolved` says why the client of a
    package that is there does not resolve it. `gone` are packages of an earlier run that are not
    here any more. `places` are the URLs of the registries that they go to.
    """

    packages: Sequence[Package]
    answers: Mapping[PackageId, Published | PackageError | None]
    unreachable: Collection[tuple[PackageId, PackageId]] = ()
    unresolved: Mapping[PackageId, str] = field(default_factory=dict)
    gone: Sequence[str] = ()
    places: Sequence[str] = ()
    is_smoked: bool = False

    def find_state(self, package: PackageId) -> str:
        answer = self.answers[package]
        if isinstance(answer, PackageError):
            return "unknown"
        if answer is None or not answer.complete:
            return "missing" if answer is None else "partly there"
        return "yanked" if answer.withdrawal and answer.withdrawal.is_hidden else "there"

    @property
    def is_installable(self) -> bool:
        there = all(self.find_state(each.id) == "there" for each in self.packages)
        return there and not self.unresolved

    def find_needed(self) -> dict[PackageId, PackageId]:
        """Of each package that needs others that are not there, directly or not, the nearest."""
        dependents: defaultdict[PackageId, list[PackageId]] = defaultdict(list)
        for package in self.packages:
            # An earlier run may have been about a part of the packages.
            for need in filter(self.answers.__contains__, list_needs(package)):
                if self.find_state(need) != "yanked" or (package.id, need) in self.unreachable:
                    dependents[need].append(package.id)
        absent = [each for each in self.answers if self.find_state(each) in {*_ABSENT, "yanked"}]
        nearest = {each: each for each in sorted(absent)}
        pending = deque(nearest)
        while pending:
            need = pending.popleft()
            for dependent in dependents[need]:
                if dependent not in nearest:
                    nearest[dependent] = nearest[need]
                    pending.append(dependent)
        return {each: need for each, need in nearest.items() if each != need}

    def explain(self, package: Package, needed: Package | None) -> str:
        """Why users do not get it, or not all of it; empty where they do."""
        answer = self.answers[package.id]
        if isinstance(answer, PackageError):
            return clip(without_name(str(answer), package), _MAX_CHARS)
        told = [f"needs {needed}, which is {self.find_state(needed.id)}"] if needed else []
        told += [self.unresolved.get(package.id, ""), answer.lacks if answer else ""]
        if answer and answer.withdrawal:
            told.append(f"{answer.withdrawal}: {answer.withdrawal.cure}")
        return "; ".join(clip(each, _MAX_CHARS) for each in told if each)


def list_needs(package: Package) -> list[PackageId]:
    """What is installed with it."""
    return [need.on for need in package.dependencies if need.kind not in _LEFT_OUT]


def status_table(status: StatusAnswers) -> str:
    """Plain text: a row for each package, the worst first, what to do, and what it comes to."""
    by_id = {each.id: each for each in status.packages}
    needed = {each: by_id[need] for each, need in status.find_needed().items()}
    rows = [
        (_STATES.index(state), not why, str(each.id), each.version, state, why)
        for each in status.packages
        for state in [status.find_state(each.id)]
        for why in [status.explain(each, needed.get(each.id))]
    ]
    notes = hint_lines(
        (str(id_), answer.hint, answer.problem)
        for id_, answer in status.answers.items()
        if isinstance(answer, PackageError)
    )
    if status.places:
        notes.insert(0, f"goes to: {', '.join(map(place, status.places))}")
    if status.gone:
        notes.append(f"not in this workspace any more, and not looked up: {few(status.gone)}")
    table = columns([("package", "version", "registry", "why"), *(it[2:] for it in sorted(rows))])
    needing = sum(status.find_state(each) == "there" for each in needed)
    return "\n".join([*table, "", *map(log_line, notes), *_conclude(status, needing)])


def _conclude(status: StatusAnswers, needing: int) -> Iterator[str]:
    """What a person reads who reads one line, and what to do."""
    counts = Counter(status.find_state(each.id) for each in status.packages)
    total, lacking = len(status.packages), counts["missing"] + counts["partly there"]
    told = [f"{count_of(counts[it], 'is', 'are')} {it}" for it in _STATES[:-1] if counts[it]]
    if needing:
        words = count_of(needing, "that is there needs", "that are there need")
        told.append(f"{words} {'it' if lacking + counts['yanked'] == 1 else 'them'}")
    if status.unresolved:
        told.append(f"{count_of(len(status.unresolved), 'is', 'are')} not resolved")
    if not told:
        resolved = ", and clients resolve all that is needed" if status.is_smoked else ""
        yield f"{'the package is' if total == 1 else f'all {total} packages are'} there{resolved}"
        return
    *most, last = told
    listed = f"{', '.join(most)}, and {last}" if most else last
    yield f"{counts['there']} of {total} {'is' if counts['there'] == 1 else 'are'} there; {listed}"
    if status.is_smoked and not status.unresolved:
        asked = count_of(counts["there"], "package that is", "packages that are")
        yield (
            f"clients resolve the {asked} there"
            if counts["there"]
            else "clients have nothing to resolve: no package is there"
        )
    if counts["yanked"]:
        yield "a yanked version cannot be published again: un-yank it, or publish a higher one"
    if lacking:
        yield f"{spell('publish')} on the commit of these versions publishes only what is missing"
    if counts["partly there"]:
        yield (
            "what is partly there takes files of the same build: where another tool built them, "
            "give their directory, as `--dist DIR`"
        )
