"""What did not go as it should, and what to do about it: one row for each cause, however many
packages it is about.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.model import Outcome
from releasekit.report.links import package_url
from releasekit.report.markdown import details, names, package_cells, table
from releasekit.report.marks import OUTCOMES
from releasekit.report.remedy import remedy
from releasekit.report.results_table import ORDER, ordered
from releasekit.report.text import few, packages
from releasekit.report.waiting import wait_for_it, waiting_for
from releasekit.text.escape import clip, code, fence, markdown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.model import Package, PackageId, Report, Result
    from releasekit.report.summary.detail import Detail

_ROOTS: Final = 5
_LINES: Final = 40
_LEFT_BEHIND: Final = frozenset({Outcome.FAILED, Outcome.UNKNOWN, Outcome.STAGED})


@dataclass(frozen=True, slots=True)
class _Cause:
    """Packages that have one cause; `roots` are what they are blocked by in the end."""

    results: Sequence[Result]
    roots: Sequence[PackageId]

    @property
    def first(self) -> Result:
        return self.results[0]


def troubled(report: Report) -> list[Result]:
    """What is not on its registry, and what has left something else undone; worst first. What only
    waits for approval, and what a dry run would publish, is told elsewhere.
    """
    fine = (Outcome.STAGED, Outcome.WOULD_PUBLISH)
    return [
        result
        for result in ordered(report)
        if result.outcome not in fine and (not result.outcome.done or result.hint)
    ]


def trouble_section(report: Report, detail: Detail) -> list[str]:
    results = troubled(report)
    if not results:
        return []
    waiting = waiting_for(report)
    causes = sorted(_causes(results, _roots(report)), key=lambda cause: _urgency(cause, waiting))
    rows = [_row(cause, waiting, detail) for cause in causes[: detail.rows]]
    left = len(causes) - detail.rows
    return [
        "### What went wrong, and what to do" if _failed(results) else "### What is left to do",
        "",
        *table(("Outcome", "Package", "Why", "What to do"), rows),
        "",
        *([f"… and {left} more, in the results file.", ""] if left > 0 else []),
        *_logs(results, detail),
    ]


def _urgency(cause: _Cause, waiting: Mapping[PackageId, int]) -> tuple[int, int, int]:
    """The worst outcome first; of the same, what most wait for, and what most are in."""
    behind = max(waiting.get(result.package.id, 0) for result in cause.results)
    return ORDER.index(cause.first.outcome), -behind, -len(cause.results)


def _failed(results: Sequence[Result]) -> bool:
    return any(result.outcome in {Outcome.FAILED, Outcome.UNKNOWN} for result in results)


def _roots(report: Report) -> Mapping[PackageId, tuple[PackageId, ...]]:
    """For each package that is blocked what it is that failed, however many lie in between."""
    outcomes = {result.package.id: result.outcome for result in report.results}
    found: dict[PackageId, tuple[PackageId, ...]] = {}
    for result in report.results:
        if result.outcome is Outcome.BLOCKED:
            needs = report.edges.get(result.package.id, ())
            causes = {on for on in needs if outcomes.get(on) in _LEFT_BEHIND}
            causes.update(root for on in needs for root in found.get(on, ()))
            found[result.package.id] = tuple(sorted(causes)[:_ROOTS])
    return found


def _causes(
    results: Sequence[Result], roots: Mapping[PackageId, tuple[PackageId, ...]]
) -> list[_Cause]:
    groups: dict[tuple[object, ...], list[Result]] = {}
    for result in results:
        blocked_by = roots.get(result.package.id, ())
        why = blocked_by or _without_names(result.reason, result.package)
        hint = _without_names(result.hint, result.package)
        groups.setdefault((result.outcome, why, hint), []).append(result)
    return [_Cause(group, roots.get(group[0].package.id, ())) for group in groups.values()]


def _without_names(text: str, package: Package) -> str:
    """What packages with the same trouble have in common."""
    name = package.id.name
    if not name or name not in text:
        return text
    text = text.replace(str(package), "\0").replace(str(package.id), "\0")
    return re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", "\0", text)


def _row(cause: _Cause, waiting: Mapping[PackageId, int], detail: Detail) -> tuple[str, ...]:
    first, count = cause.first, len(cause.results)
    mark = OUTCOMES[first.outcome]
    told = [each.package for each in cause.results]
    if count == 1:
        which = "<br>".join(filter(None, package_cells(first.package, package_url(first))))
    else:
        which = f"**{packages(count)}**: {names(told, detail.rows)}"
    return (
        f"{mark.square}&nbsp;**{first.outcome}**",
        which,
        _why(cause, waiting, detail),
        markdown(clip(remedy(first), detail.chars)),
    )


def _why(cause: _Cause, waiting: Mapping[PackageId, int], detail: Detail) -> str:
    if cause.roots:
        return f"waits for {few([code(clip(str(root), 100)) for root in cause.roots], 3)}"
    why = markdown(clip(cause.first.reason, detail.chars))
    behind = waiting.get(cause.first.package.id, 0) if len(cause.results) == 1 else 0
    return f"{why}<br>**{wait_for_it(behind)}**" if behind else why


def _logs(results: Sequence[Result], detail: Detail) -> list[str]:
    """The first is what somebody came to see."""
    with_log = [result for result in results if result.log][: detail.logs]
    return [
        line
        for number, result in enumerate(with_log)
        for line in details(
            f"Last lines of the build of {package_cells(result.package)[0]}",
            [fence(clip(line, 500) for line in result.log[-_LINES:])],
            open_=not number,
        )
    ]
