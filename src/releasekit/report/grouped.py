"""The rows of a finished run that a terminal has room for: many packages with one cause are one
row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.model import Outcome
from releasekit.report.results_table import failures_last
from releasekit.report.text import became, few, packages, without_name
from releasekit.report.waiting import wait_for_it, waiting_for
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.model import PackageId, Report, Result

# More than so many with the same cause share a row, which names so many of them.
FEW: Final = 3
_MAX_CHARS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Row:
    """`package` may be a number of them; all of it is harmless on a terminal."""

    package: str
    version: str
    outcome: Outcome
    why: str


def rows_of(report: Report) -> list[Row]:
    """What is left to do, the failures last. What is done without a blemish has no row."""
    roots = _roots(report)
    waiting = waiting_for(report)
    groups: dict[tuple[Outcome, str], list[Result]] = {}
    for result in failures_last(report):
        if result.outcome is not Outcome.WOULD_PUBLISH and not _clean(result):
            why = _why(result, roots)
            groups.setdefault((result.outcome, why), []).append(result)
    rows: list[Row] = []
    for (outcome, why), results in groups.items():
        if len(results) > FEW:
            names = few([str(each.package.id) for each in results], FEW)
            count = packages(len(results))
            text = f"{why.replace('needs ', 'wait for ', 1)}: {names}"
            rows.append(_row(count, "", outcome, text))
            continue
        for each in results:
            count = wait_for_it(waiting.get(each.package.id, 0))
            text = f"{why}; {count}" if count else why
            rows.append(_row(str(each.package.id), each.package.version, outcome, text))
    return rows


def _row(package: str, version: str, outcome: Outcome, why: str) -> Row:
    return Row(visible(clip(package, 300)), visible(clip(version, 100)), outcome, visible(why))


def _clean(result: Result) -> bool:
    """A published package with a hint has left something else undone."""
    return result.outcome.done and not result.hint


def _why(result: Result, roots: Mapping[PackageId, tuple[PackageId, Outcome]]) -> str:
    """The same words for all that wait for the same package."""
    if result.outcome is Outcome.BLOCKED and result.package.id in roots:
        root, outcome = roots[result.package.id]
        return f"needs {root}, which {became(outcome)}"
    return clip(without_name(result.reason, result.package), _MAX_CHARS)


def _roots(report: Report) -> dict[PackageId, tuple[PackageId, Outcome]]:
    """What is at the bottom of each blocked package; of several, the first in publish order."""
    ended = {result.package.id: result.outcome for result in report.results}
    places = {name: place for place, name in enumerate(ended)}
    roots: dict[PackageId, tuple[PackageId, Outcome]] = {}
    for name, outcome in ended.items():
        if outcome is not Outcome.BLOCKED:
            continue
        needs = [on for on in report.edges.get(name, ()) if on in ended and not ended[on].done]
        found = [
            roots.get(on, (on, ended[on])) for on in needs if ended[on] != outcome or on in roots
        ]
        if found:
            roots[name] = min(found, key=lambda root: places[root[0]])
    return roots
