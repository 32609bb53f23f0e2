"""The warnings of a plan or a run: packages with the same trouble share one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.report.markdown import table
from releasekit.report.text import few
from releasekit.text.escape import clip, code, log_line, markdown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from releasekit.model import Package, PackageWarning

    Warned = Iterable[tuple[Package, Sequence[PackageWarning]]]


def grouped(warned: Warned) -> dict[PackageWarning, list[Package]]:
    """Each warning once, with the packages that have it, sorted by name."""
    groups: dict[PackageWarning, list[Package]] = {}
    for package, warnings in warned:
        for warning in warnings:
            groups.setdefault(warning, []).append(package)
    return dict(sorted(groups.items(), key=lambda group: (group[0].name, group[0].message)))


def warning_lines(warned: Warned) -> list[str]:
    """`new-name: pypi:acme: …`, for a log."""
    return [
        log_line(f"{warning.name}: {few([str(p.id) for p in packages])}: {warning.message}")
        for warning, packages in grouped(warned).items()
    ]


def warning_table(warned: Warned) -> list[str]:
    """For a terminal or a log, with an empty line below."""
    lines = [f"warning: {line}" for line in warning_lines(_no_errors(warned))]
    return [*lines, ""] if lines else []


def warning_section(warned: Warned, rows: int) -> list[str]:
    """A part of a job summary."""
    groups = grouped(warned)
    if not groups or not rows:
        return []
    cells = [
        (
            code(warning.name),
            markdown(clip(few([str(package.id) for package in packages]), 500)),
            markdown(clip(warning.message, 500)),
        )
        for warning, packages in list(groups.items())[:rows]
    ]
    more = [f"… and {len(groups) - rows} more, in the results.", ""] if len(groups) > rows else []
    heading = ("Warning", "Packages", "What it means")
    return ["### Warnings", "", *table(heading, cells), "", *more]


def warning_annotations(warned: Warned) -> list[tuple[str, str]]:
    """Title and message of each."""
    return [
        (f"{warning.name}: {few([str(package.id) for package in packages])}", warning.message)
        for warning, packages in grouped(_no_errors(warned)).items()
    ]


def _no_errors(warned: Warned) -> Warned:
    """What ended the plan or the package is told as the reason of that."""
    for package, warnings in warned:
        yield package, [warning for warning in warnings if not warning.error]


def warning_rows(warnings: Sequence[PackageWarning]) -> list[dict[str, object]]:
    """As JSON has them."""
    return [
        {"name": warning.name, "message": warning.message, "error": warning.error}
        for warning in warnings
    ]
