"""What of a finished run stands beside the log: what failed, what is left to do, warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from releasekit.model import Outcome
from releasekit.problems import mark
from releasekit.report.tagged import lack_annotations, lacks
from releasekit.report.text import few, packages
from releasekit.report.warnings import warning_annotations
from releasekit.text.commands import spelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from releasekit.model import Report, Result

    Annotation = tuple[str, str]


def notices(
    report: Report,
) -> Iterator[tuple[Literal["error", "warning", "notice"], list[Annotation]]]:
    """Title and message of each, by level."""
    results = report.results
    yield "error", _each(r for r in results if r.outcome in {Outcome.FAILED, Outcome.UNKNOWN})
    lacking = lacks(results)
    if wrong := lack_annotations(lack for lack in lacking if lack.is_wrong):
        yield "error", wrong
    if foreign := lack_annotations(lack for lack in lacking if not lack.is_wrong):
        yield "notice", foreign
    # It is published, but what should have followed did not.
    yield "warning", _each(r for r in results if r.outcome.done and r.hint)
    yield "warning", warning_annotations((r.package, r.warnings) for r in results)
    staged = [str(r.package.id) for r in results if r.outcome is Outcome.STAGED]
    if staged:
        verb = "waits" if len(staged) == 1 else "wait"
        title = f"{packages(len(staged))} {verb} for approval"
        yield "notice", [(title, f"{few(staged)}: approve with {spelled('approve')}")]


def _each(results: Iterable[Result]) -> list[Annotation]:
    return [
        (f"{result.package} {result.outcome}{mark(result.problem)}", result.reason)
        for result in results
    ]
