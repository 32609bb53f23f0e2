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
from releasekit.report.results_table import ORDER
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
class Cause:
    """Packages that have one cause; `roots` are what they are blocked by in the end, and `behind`
    is how many packages wait for the one of them that most wait for.
    """

    results: Sequence[Result]
    roots: Sequence[PackageId]
    behind: int

    @property
    def first(self) -> Result:
        return self.results[0]


def causes_of(report: Report, *, staged: bool = False) -> list[Cause]:
    """Of what is not on its registry, and of what has left something else undone: the worst outcome
    first; of the same, what most packages wait for, and what most have. What a dry run would
    publish is told elsewhere, and so is what only waits for approval, unless `staged`.
    """
    fine = {Outcome.WOULD_PUBLISH} if staged else {Outcome.WOULD_PUBLISH, Outcome.STAGED}
    troubled = [
        result
        for result in report.results
        if result.outcome not in fine and (not result.outcome.done or result.hint)
    ]
    waiting = waiting_for(report) if troubled else {}
    roots = _roots(report)
    causes = [
        Cause(
            group,
            roots.get(group[0].package.id, ()),
            max(waiting.get(result.package.id, 0) for result in group),
        )
        for group in _grouped(troubled, roots)
    ]
    return sorted(
        causes,
        key=lambda cause: (ORDER.index(cause.first.outcome), -cause.behind, -len(cause.results)),
    )


def trouble_section(causes: Sequence[Cause], detail: Detail) -> list[str]:
    if not causes:
        return []
    left = len(causes) - detail.rows
    return [
        "### What went wrong, and what to do" if _failed(causes) else "### What is left to do",
        "",
        *table(
            ("Outcome", "Package", "Why", "What to do"),
            [_row(cause, detail) for cause in causes[: detail.rows]],
        ),
        "",
        *([f"… and {left} more, in the results file.", ""] if left > 0 else []),
        *_logs(causes, detail),
    ]


def _failed(causes: Sequence[Cause]) -> bool:
    return any(cause.first.outcome in {Outcome.FAILED, Outcome.UNKNOWN} for cause in causes)


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


def _grouped(
    results: Sequence[Result], roots: Mapping[PackageId, tuple[PackageId, ...]]
) -> list[list[Result]]:
    groups: dict[tuple[object, ...], list[Result]] = {}
    for result in results:
        blocked_by = roots.get(result.package.id, ())
        why = blocked_by or _without_names(result.reason, result.package)
        hint = _without_names(result.hint, result.package)
        groups.setdefault((result.outcome, why, hint), []).append(result)
    return list(groups.values())


def _without_names(text: str, package: Package) -> str:
    """What packages with the same trouble have in common."""
    name = package.id.name
    if not name or name not in text:
        return text
    text = text.replace(str(package), "\0").replace(str(package.id), "\0")
    return re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", "\0", text)


def _row(cause: Cause, detail: Detail) -> tuple[str, ...]:
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
        _why(cause, detail),
        _what_to_do(first, detail),
    )


def _what_to_do(result: Result, detail: Detail) -> str:
    """With the page on which it says more."""
    page = f"[{result.problem}]({result.problem.url})" if result.problem else ""
    return f"{markdown(clip(remedy(result), detail.chars))} {page}".strip()


def _why(cause: Cause, detail: Detail) -> str:
    if cause.roots:
        return f"waits for {few([code(clip(str(root), 100)) for root in cause.roots], 3)}"
    why = markdown(clip(cause.first.reason, detail.chars))
    told = cause.behind and len(cause.results) == 1
    return f"{why}<br>**{wait_for_it(cause.behind)}**" if told else why


def _logs(causes: Sequence[Cause], detail: Detail) -> list[str]:
    """The first is what somebody came to see."""
    every = [result for cause in causes for result in cause.results]
    with_log = [result for result in every if result.log][: detail.logs]
    return [
        line
        for number, result in enumerate(with_log)
        for line in details(
            f"Last lines of the build of {package_cells(result.package)[0]}",
            [fence(clip(line, 500) for line in result.log[-_LINES:])],
            open_=not number,
        )
    ]
