"""What users can install now: what registries show of each package, and what of that needs one that
is missing.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from releasekit.errors import PackageError
from releasekit.model import DependencyKind
from releasekit.report.remarks import hint_lines
from releasekit.report.text import columns, count_of, few, packages, without_name
from releasekit.text.commands import spell
from releasekit.text.escape import clip, log_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from releasekit.model import Package, PackageId, Published

    Answer = Published | PackageError | None

# The order of the table.
_STATES: Final = ("missing", "partly there", "unknown", "there")
# What installing a package does not install with it.
_LEFT_OUT: Final = frozenset(
    {DependencyKind.DEV, DependencyKind.ORDER, DependencyKind.OPTIONAL, DependencyKind.EXTRA}
)
_MAX_CHARS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """`packages` are those that were looked up, with what they need, and `answers` what was shown.
    `unresolved` says why the client of a package that is there does not find it or what it needs,
    and `untried` of an ecosystem why its client was not asked. `gone` are packages of an earlier
    run that are not here any more. They are `of_tree` where they have the versions of the tree.
    """

    packages: Sequence[Package]
    answers: Mapping[PackageId, Answer]
    unresolved: Mapping[PackageId, str] = field(default_factory=dict)
    untried: Mapping[str, str] = field(default_factory=dict)
    gone: Sequence[Package] = ()
    is_smoked: bool = False
    of_tree: bool = True

    def state(self, package: PackageId) -> str:
        answer = self.answers[package]
        if answer is None:
            return "missing"
        if isinstance(answer, PackageError):
            return "unknown"
        return "there" if answer.complete else "partly there"

    @property
    def is_installable(self) -> bool:
        """Whether everything is, as far as that was asked."""
        there = all(self.state(each.id) == "there" for each in self.packages)
        return there and not self.unresolved and not self.untried

    def find_needed(self) -> dict[PackageId, PackageId]:
        """Of each package that needs others that are not there, directly or not, the nearest."""
        dependents: defaultdict[PackageId, list[PackageId]] = defaultdict(list)
        for package in self.packages:
            for need in list_needs(package):
                dependents[need].append(package.id)
        known = [each.id for each in self.packages]
        absent = [each for each in known if self.state(each) in {"missing", "partly there"}]
        nearest = {each: each for each in absent}
        pending = deque(sorted(absent))
        while pending:
            need = pending.popleft()
            for dependent in dependents[need]:
                if dependent not in nearest:
                    nearest[dependent] = nearest[need]
                    pending.append(dependent)
        return {each: need for each, need in nearest.items() if each != need}


def list_needs(package: Package) -> list[PackageId]:
    """What is installed with it."""
    return [need.on for need in package.dependencies if need.kind not in _LEFT_OUT]


def status_table(status: Status) -> str:
    """Plain text: a row for each package, the worst first, what to do, and what it comes to."""
    needed, by_id = status.find_needed(), {each.id: each for each in status.packages}

    def why(package: Package) -> str:
        answer = status.answers[package.id]
        if isinstance(answer, PackageError):
            return clip(without_name(str(answer), package), _MAX_CHARS)
        told = []
        if package.id in needed:
            need = by_id[needed[package.id]]
            told.append(f"needs {need}, which is {status.state(need.id)}")
        told += [status.unresolved.get(package.id, ""), answer.lacks if answer else ""]
        return "; ".join(filter(None, told))

    def rank(package: Package) -> tuple[int, bool, PackageId]:
        return _STATES.index(status.state(package.id)), not why(package), package.id

    rows = [
        (str(each.id), each.version, status.state(each.id), why(each))
        for each in sorted(status.packages, key=rank)
    ]
    hints = (
        (str(id_), answer.hint, answer.problem)
        for id_, answer in status.answers.items()
        if isinstance(answer, PackageError)
    )
    gone = [str(each) for each in status.gone]
    notes = [
        *hint_lines(hints),
        *(f"{name}: not resolved: {reason}" for name, reason in sorted(status.untried.items())),
        *([f"not in this workspace any more, and not looked up: {few(gone)}"] if gone else []),
    ]
    lines = columns([("package", "version", "registry", "why"), *rows]) if rows else []
    return "\n".join([*lines, "", *map(log_line, notes), *_conclude(status, needed)])


def _conclude(status: Status, needed: Collection[PackageId]) -> Iterator[str]:
    """What a person reads who reads one line, and what to do."""
    counts = Counter(status.state(each.id) for each in status.packages)
    total, there = len(status.packages), counts["there"]
    lacking = counts["missing"] + counts["partly there"]
    needing = sum(status.state(each) == "there" for each in needed)
    told = [f"{count_of(counts[it], 'is', 'are')} {it}" for it in _STATES[:-1] if counts[it]]
    if needing:
        words = count_of(needing, "that is there needs", "that are there need")
        told.append(f"{words} {'it' if lacking == 1 else 'them'}")
    if status.unresolved:
        told.append(f"{len(status.unresolved)} cannot be resolved")
    if not told:
        resolved = ", and their clients resolve them" if status.is_smoked else ""
        yield f"all of {packages(total)} {'is' if total == 1 else 'are'} there{resolved}"
        return
    yield f"{there} of {total} {'is' if there == 1 else 'are'} there; {_join(told)}"
    if lacking:
        where = "" if status.of_tree else ", on the commit of these versions,"
        yield f"{spell('publish')}{where} publishes what is missing, and nothing twice"


def _join(parts: Iterable[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)}, and {last}" if most else last
