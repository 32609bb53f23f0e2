"""A finished run as people see it: verdict and headline, what needs attention first, who is to
blame and how many packages wait for it. Terminal, log, summary, page and outputs render this view.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from msgspec import Struct

from releasekit.announced import is_made
from releasekit.graph import reachable
from releasekit.model import Outcome
from releasekit.report.marks import OUTCOMES
from releasekit.report.remarks import find_lacks, headline_words, lack_words
from releasekit.report.text import became, few, packages, without_name
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from releasekit.model import Artifact, Package, PackageId, Report, Result
    from releasekit.report.remarks import Lack

Verdict = Literal["success", "staged", "partial", "failure", "cancelled", "noop"]

_EXIT_CODES: Final[Mapping[Verdict, int]] = {
    "success": 0,
    "staged": 0,
    "noop": 0,
    "partial": 1,
    "failure": 1,
    "cancelled": 130,
}
# What needs attention most first.
SEVERITY: Final = (
    Outcome.FAILED,
    Outcome.UNKNOWN,
    Outcome.BLOCKED,
    Outcome.CANCELLED,
    Outcome.REMOVED,
    Outcome.STAGED,
    Outcome.WOULD_PUBLISH,
    Outcome.PUBLISHED,
    Outcome.ALREADY_PUBLISHED,
)
# What a headline begins with; the others follow.
_FIRST: Final = frozenset({Outcome.PUBLISHED, Outcome.WOULD_PUBLISH})
_ROOT_OUTCOMES: Final = frozenset({Outcome.FAILED, Outcome.UNKNOWN, Outcome.STAGED})
_MOST_ROOTS: Final = 5
# More packages than this with the same cause share a row, which names this many of them.
_FEW: Final = 3
_MAX_CHARS: Final = 1_000

_AGAIN: Final = "then run the same command again."
GENERAL: Final[Mapping[Outcome, str]] = {
    Outcome.FAILED: f"Fix what the reason names, {_AGAIN}",
    Outcome.UNKNOWN: "Run the same command again: it asks the registry first.",
    Outcome.BLOCKED: f"Fix what it needs, {_AGAIN}",
    Outcome.CANCELLED: "Run the same command again to finish.",
}
READ_ITS_LOG: Final = f"Fix what the end of its log says, {_AGAIN}"
OUTPUT: Final = "The whole output is in "
_LOG: Final = re.compile(r".*?\.log(?=\.?(?:\s|\Z))", re.DOTALL)
_IN_STATE: Final = re.compile(r"logs/[^/]+/[^/]+\Z")


class RootCauses(NamedTuple):
    """What a blocked package waits for in the end, however many blocked ones lie between: the
    `first` of it in publish order, with any outcome, and by name up to five that `failed`, are
    unknown or staged.
    """

    first: PackageId | None
    failed: tuple[PackageId, ...]


class Row(NamedTuple):
    """One line of a terminal's table, escaped. `package` may be a number of packages."""

    package: str
    version: str
    outcome: Outcome
    why: str


class Cause(Struct, frozen=True):
    """Packages that have one cause. `roots` are what blocks them in the end, and `behind` is how
    many packages wait for the one of them that most wait for.
    """

    results: Sequence[Result]
    roots: Sequence[PackageId]
    behind: int

    @property
    def first(self) -> Result:
        return self.results[0]


class View:
    """Each property is computed once, when a renderer first asks for it."""

    def __init__(self, report: Report) -> None:
        self.report = report

    @cached_property
    def counts(self) -> Counter[Outcome]:
        return Counter(result.outcome for result in self.report.results)

    @cached_property
    def lacks(self) -> list[Lack]:
        """The tags and releases that are missing."""
        return find_lacks(self.report.results)

    @cached_property
    def tag_words(self) -> list[str]:
        """The part of a headline about tags and releases."""
        return headline_words(self.report.results)

    @cached_property
    def verdict(self) -> Verdict:
        """`partial` when some of the packages are on their registry, also from earlier runs.

        `staged` when all that is missing waits for a person's approval, or for what does.
        `cancelled` means that running again is enough; where a package failed, there is more to do.
        A dry run publishes nothing: what it would have uploaded counts as success. Where all of
        that is as it should be, a version that is not tagged or announced makes it `partial`, and
        one that is now makes `success` of `noop`.
        """
        verdict = self._verdict_of_packages()
        if verdict in {"success", "staged", "noop"} and lack_words(self.lacks):
            return "partial"
        made = any(
            followed is not None and is_made(followed)
            for result in self.report.results
            for followed in (result.tag, result.announcement)
        )
        return "success" if verdict == "noop" and made else verdict

    def _verdict_of_packages(self) -> Verdict:
        counts, results = self.counts, self.report.results
        if counts[Outcome.CANCELLED] and not counts[Outcome.FAILED]:
            return "cancelled"
        ready = Outcome.WOULD_PUBLISH if self.report.dry_run else Outcome.PUBLISHED
        present = counts[ready] + counts[Outcome.ALREADY_PUBLISHED]
        held_back = awaiting_approval(results, self.report.edges)
        if held_back and present + len(held_back) == len(results):
            return "staged"
        if present < len(results):
            return "partial" if present else "failure"
        return "success" if counts[ready] else "noop"

    @cached_property
    def headline(self) -> str:
        """The truth of the release in one plain sentence, without a final stop."""
        counts, total = self.counts, len(self.report.results)
        kept, staged = counts[Outcome.ALREADY_PUBLISHED], counts[Outcome.STAGED]
        whole = total in {0, kept} or (staged == total and not self.report.dry_run)
        rest = [
            f"{counts[each]} {mark.word}"
            for each, mark in OUTCOMES.items()
            if counts[each] and each not in _FIRST
        ]
        told = [] if whole else rest
        return ", ".join([self._first_words, *told, *self.tag_words])

    @cached_property
    def registry_headline(self) -> str:
        """What the registries have, also from earlier runs, without what is missing there."""
        counts, total = self.counts, len(self.report.results)
        kept = counts[Outcome.ALREADY_PUBLISHED]
        there = kept + counts[Outcome.PUBLISHED]
        if self.report.dry_run or not kept or there == total:
            words = self._first_words
        else:
            verb, where = ("is", "its registry") if there == 1 else ("are", "their registries")
            words = f"{there} of {packages(total)} {verb} on {where}"
        return ", ".join([words, *self.tag_words])

    @cached_property
    def _first_words(self) -> str:
        """The headline up to the packages that this run did not publish."""
        counts, total = self.counts, len(self.report.results)
        named = {1: "The package is", 2: "Both packages are"}
        everything = named.get(total, f"All {total} packages are")
        if not total:
            return "No package to publish"
        if counts[Outcome.ALREADY_PUBLISHED] == total:
            done = "" if self.tag_words else ", nothing to do"
            return f"{everything} already published{done}"
        if self.report.dry_run:
            would = counts[Outcome.WOULD_PUBLISH]
            return f"Dry run: {would} of {packages(total)} would be published"
        if counts[Outcome.PUBLISHED] == total:
            return f"{everything} published"
        if counts[Outcome.STAGED] == total:
            return f"{everything} staged, for a person to approve"
        return f"{counts[Outcome.PUBLISHED]} of {packages(total)} published"

    @cached_property
    def failures_first(self) -> list[Result]:
        """What needs attention comes first; otherwise in publish order."""
        return sorted(self.report.results, key=lambda result: SEVERITY.index(result.outcome))

    @cached_property
    def failures_last(self) -> list[Result]:
        """Likewise last, because the end of a log is read first."""
        return sorted(self.report.results, key=lambda result: -SEVERITY.index(result.outcome))

    @cached_property
    def waiting(self) -> Mapping[PackageId, int]:
        """For each package that blocks others, how many it blocks, directly or through others that
        are blocked. A package that is blocked by two counts for both.
        """
        results = self.report.results
        done = {result.package.id for result in results if result.outcome.done}
        blocked = {r.package.id for r in results if r.outcome is Outcome.BLOCKED}
        dependents: dict[PackageId, list[PackageId]] = {}
        for package in blocked:
            for on in self.report.edges.get(package, ()):
                dependents.setdefault(on, []).append(package)
        blockers = dependents.keys() - blocked - done
        return {
            result.package.id: len(
                reachable([result.package.id], lambda on: dependents.get(on, ()))
            )
            - 1
            for result in results
            if result.package.id in blockers
        }

    @cached_property
    def roots(self) -> Mapping[PackageId, RootCauses]:
        """Who is to blame for each blocked package."""
        ended = {result.package.id: result.outcome for result in self.report.results}
        places = {name: place for place, name in enumerate(ended)}
        found: dict[PackageId, RootCauses] = {}
        for name, outcome in ended.items():
            if outcome is not Outcome.BLOCKED:
                continue
            first: set[PackageId] = set()
            failed: set[PackageId] = set()
            for on in self.report.edges.get(name, ()):
                if on in found:
                    root = found[on].first
                    first |= {root} if root else set()
                    failed.update(found[on].failed)
                elif on in ended and not ended[on].done and ended[on] is not Outcome.BLOCKED:
                    first.add(on)
                    failed |= {on} if ended[on] in _ROOT_OUTCOMES else set()
            found[name] = RootCauses(
                min(first, key=lambda root: places[root], default=None),
                tuple(sorted(failed)[:_MOST_ROOTS]),
            )
        return found

    @cached_property
    def rows(self) -> list[Row]:
        """What is left to do, the failures last, as a terminal has room for it: many packages with
        one cause are one row. A package that is done without a hint has none.
        """
        ended = {result.package.id: result.outcome for result in self.report.results}
        groups: dict[tuple[Outcome, str], list[Result]] = {}
        for result in self.failures_last:
            package, outcome = result.package, result.outcome
            if outcome is Outcome.WOULD_PUBLISH or (outcome.done and not result.hint):
                continue
            roots = self.roots.get(package.id)
            if roots and roots.first:
                why = f"needs {roots.first}, which {became(ended[roots.first])}"
            else:
                why = clip(without_name(result.reason, package), _MAX_CHARS)
            groups.setdefault((outcome, why), []).append(result)
        rows: list[Row] = []
        for (outcome, why), results in groups.items():
            if len(results) > _FEW:
                names = few([str(each.package.id) for each in results], _FEW)
                text = f"{why.replace('needs ', 'wait for ', 1)}: {names}"
                rows.append(Row(packages(len(results)), "", outcome, visible(text)))
                continue
            for each in results:
                count = waiting_clause(self.waiting.get(each.package.id, 0))
                name, version = clip(str(each.package.id), 300), clip(each.package.version, 100)
                text = f"{why}; {count}" if count else why
                rows.append(Row(visible(name), visible(version), outcome, visible(text)))
        return rows

    def find_causes(self, *, staged: bool = False) -> list[Cause]:
        """Why packages are not on their registry, or have something left to do: the worst outcome
        first; of the same outcome, the cause that most packages wait for, then the most frequent.
        A package that a dry run would publish has none, nor, unless `staged`, has one that only
        waits for approval.
        """
        fine = {Outcome.WOULD_PUBLISH} if staged else {Outcome.WOULD_PUBLISH, Outcome.STAGED}
        groups: dict[tuple[object, ...], list[Result]] = {}
        for result in self.report.results:
            if result.outcome in fine or (result.outcome.done and not result.hint):
                continue
            roots = self.roots.get(result.package.id)
            why = (roots and roots.failed) or _without_names(result.reason, result.package)
            hint = _without_names(result.hint, result.package)
            groups.setdefault((result.outcome, why, hint), []).append(result)
        causes = []
        for group in groups.values():
            roots = self.roots.get(group[0].package.id)
            behind = max(self.waiting.get(result.package.id, 0) for result in group)
            causes.append(Cause(group, roots.failed if roots else (), behind))
        return sorted(
            causes,
            key=lambda cause: (
                SEVERITY.index(cause.first.outcome),
                -cause.behind,
                -len(cause.results),
            ),
        )


def _without_names(text: str, package: Package) -> str:
    """The text that packages with the same trouble share."""
    name = package.id.name
    if not name or name not in text:
        return text
    text = text.replace(str(package), "\0").replace(str(package.id), "\0")
    return re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", "\0", text)


def verdict_of(report: Report) -> Verdict:
    """What a run came to, in one word; `View.verdict` says what each means."""
    return View(report).verdict


def headline(report: Report) -> str:
    """What a run came to, in one sentence."""
    return View(report).headline


def exit_code(report: Report) -> int:
    """0 only if every package of the plan is where it should be, or staged for approval."""
    return _EXIT_CODES[verdict_of(report)]


def awaiting_approval(
    results: Sequence[Result], edges: Mapping[PackageId, Collection[PackageId]]
) -> frozenset[PackageId]:
    """What is staged, and what is blocked by nothing else; dependencies come first in `results`."""
    found: set[PackageId] = set()
    absent: set[PackageId] = set()
    # The ecosystems of packages that need what is staged in another one.
    staged = {result.package.id for result in results if result.outcome is Outcome.STAGED}
    held = {
        package.ecosystem
        for package, needs in edges.items()
        if any(on.ecosystem != package.ecosystem for on in staged.intersection(needs))
    }
    for result in results:
        package, outcome = result.package.id, result.outcome
        missing = absent.intersection(edges.get(package, ()))
        # A package that lacks nothing shares an upload with one that does.
        blocked = outcome is Outcome.BLOCKED and (missing or package.ecosystem in held)
        if outcome is Outcome.STAGED or (blocked and missing <= found):
            found.add(package)
        if not outcome.done:
            absent.add(package)
    return frozenset(found)


def waiting_clause(count: int) -> str:
    """`3 packages wait for it`; empty for none."""
    return f"{packages(count)} {'waits' if count == 1 else 'wait'} for it" if count else ""


def what_to_do(result: Result) -> str:
    """Its hint, or what helps in general; where the output of its build is stands elsewhere."""
    hint, _ = _split(result.hint)
    if hint or not result.log or result.outcome is not Outcome.FAILED:
        return hint or GENERAL.get(result.outcome, "")
    return READ_ITS_LOG


def whole_output(result: Result, report: Report) -> str:
    """Where the output of its build is, as a sentence. The disk of a runner is gone by the time
    somebody reads of it: left is what the workflow has kept.
    """
    _, path = _split(result.hint)
    kept = _IN_STATE.search(path)
    if report.run_url and kept:
        return f"{OUTPUT}{kept[0]} of the state directory, if the workflow keeps it as an artifact."
    return f"{OUTPUT}{path}." if path else ""


def _split(hint: str) -> tuple[str, str]:
    """What to do, and the path of the log that the hint names."""
    before, _, after = hint.partition(OUTPUT)
    end = log.end() if (log := _LOG.match(after)) else len(after)
    return f"{before.strip()} {after[end:].removeprefix('.').strip()}".strip(), after[:end]


def name_files(results: Sequence[Result]) -> list[tuple[str, Artifact]]:
    """Their artifacts with names of their own: the path below the state directory's `dist` where
    several have one name, as those of Go modules have, and of npm packages in different scopes.
    """
    files = [(result.package, each) for result in results for each in result.artifacts]
    counts = Counter(file.filename for _, file in files)
    return [
        (
            file.filename if counts[file.filename] == 1 else str(package.place / file.filename),
            file,
        )
        for package, file in files
    ]
