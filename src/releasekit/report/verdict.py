"""What a run came to: one word for the outputs, one sentence for people, one exit code."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

from releasekit.announced import Status
from releasekit.model import Outcome
from releasekit.report.marks import OUTCOMES
from releasekit.report.tagged import headline_words, lack_words
from releasekit.report.text import packages

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from releasekit.model import PackageId, Report, Result

Verdict = Literal["success", "staged", "partial", "failure", "cancelled", "noop"]

_EXIT_CODES: Final[Mapping[Verdict, int]] = {
    "success": 0,
    "staged": 0,
    "noop": 0,
    "partial": 1,
    "failure": 1,
    "cancelled": 130,
}

# What follows the number of published packages, in this order.
_REST: Final = (
    Outcome.ALREADY_PUBLISHED,
    Outcome.STAGED,
    Outcome.FAILED,
    Outcome.UNKNOWN,
    Outcome.BLOCKED,
    Outcome.CANCELLED,
    Outcome.REMOVED,
)


def verdict_of(report: Report) -> Verdict:
    """`partial` when some of the packages are on their registry, whoever put them there.

    `staged` when all that is missing waits for a person's approval, or for what does.
    `cancelled` means that running again is enough; where a package failed, there is more to do.
    A dry run publishes nothing: what it would have uploaded counts as success. Where all of that is
    as it should be, a version that is not tagged or announced makes it `partial`, and one that is
    now makes `success` of `noop`.
    """
    verdict = _published(report)
    if verdict in {"success", "staged", "noop"} and lack_words(report.results):
        return "partial"
    made = any(Status.MADE in _statuses(result) for result in report.results)
    return "success" if verdict == "noop" and made else verdict


def _statuses(result: Result) -> set[Status]:
    return {each.status for each in (result.tag, result.announcement) if each is not None}


def _published(report: Report) -> Verdict:
    outcomes = Counter(result.outcome for result in report.results)
    if outcomes[Outcome.CANCELLED] and not outcomes[Outcome.FAILED]:
        return "cancelled"
    ready = Outcome.WOULD_PUBLISH if report.dry_run else Outcome.PUBLISHED
    present = outcomes[ready] + outcomes[Outcome.ALREADY_PUBLISHED]
    held_back = awaiting_approval(report.results, report.edges)
    if held_back and present + len(held_back) == len(report.results):
        return "staged"
    if present < len(report.results):
        return "partial" if present else "failure"
    return "success" if outcomes[ready] else "noop"


def awaiting_approval(
    results: Sequence[Result], edges: Mapping[PackageId, Collection[PackageId]]
) -> frozenset[PackageId]:
    """What is staged, and what is blocked by nothing else; dependencies come first in `results`."""
    found: set[PackageId] = set()
    absent: set[PackageId] = set()
    held = _held_back(results, edges)
    for result in results:
        package, outcome = result.package.id, result.outcome
        missing = absent.intersection(edges.get(package, ()))
        # What lacks nothing itself goes out in one upload with what does.
        blocked = outcome is Outcome.BLOCKED and (missing or package.ecosystem in held)
        if outcome is Outcome.STAGED or (blocked and missing <= found):
            found.add(package)
        if not outcome.done:
            absent.add(package)
    return frozenset(found)


def _held_back(
    results: Iterable[Result], edges: Mapping[PackageId, Collection[PackageId]]
) -> set[str]:
    """The ecosystems of packages that need what is staged in another one."""
    staged = {result.package.id for result in results if result.outcome is Outcome.STAGED}
    return {
        package.ecosystem
        for package, needs in edges.items()
        if any(on.ecosystem != package.ecosystem for on in staged.intersection(needs))
    }


def exit_code(report: Report) -> int:
    """0 only if every package of the plan is where it should be, or where a person was to decide
    about it.
    """
    return _EXIT_CODES[verdict_of(report)]


def there_words(report: Report) -> str:
    """The headline of what the registries have, whoever put it there: without what is missing
    there.
    """
    return ", ".join([_there(report), *headline_words(report.results)])


def _there(report: Report) -> str:
    outcomes = Counter(result.outcome for result in report.results)
    already, total = outcomes[Outcome.ALREADY_PUBLISHED], len(report.results)
    there = already + outcomes[Outcome.PUBLISHED]
    if report.dry_run or not already or there == total:
        return first_words(report)
    verb, where = ("is", "its registry") if there == 1 else ("are", "their registries")
    return f"{there} of {packages(total)} {verb} on {where}"


def headline(report: Report) -> str:
    """The truth of the release in one plain sentence, without a final stop."""
    outcomes = Counter(result.outcome for result in report.results)
    total, already = len(report.results), outcomes[Outcome.ALREADY_PUBLISHED]
    whole = total in {0, already} or (outcomes[Outcome.STAGED] == total and not report.dry_run)
    rest = [f"{outcomes[each]} {OUTCOMES[each].word}" for each in _REST if outcomes[each]]
    told = [] if whole else rest
    return ", ".join([first_words(report), *told, *headline_words(report.results)])


def first_words(report: Report) -> str:
    """The headline up to the packages that this run did not publish."""
    outcomes = Counter(result.outcome for result in report.results)
    total = len(report.results)
    if not total:
        return "No package to publish"
    if outcomes[Outcome.ALREADY_PUBLISHED] == total:
        done = "" if headline_words(report.results) else ", nothing to do"
        return f"{_all(total)} already published{done}"
    if report.dry_run:
        would = outcomes[Outcome.WOULD_PUBLISH]
        return f"Dry run: {would} of {packages(total)} would be published"
    if outcomes[Outcome.PUBLISHED] == total:
        return f"{_all(total)} published"
    if outcomes[Outcome.STAGED] == total:
        return f"{_all(total)} staged, for a person to approve"
    return f"{outcomes[Outcome.PUBLISHED]} of {packages(total)} published"


def _all(count: int) -> str:
    return "The package is" if count == 1 else f"All {count} packages are"
