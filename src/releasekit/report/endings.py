"""What became of a release that was decided about, as a table of a terminal or a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.report.text import columns, few
from releasekit.text.escape import clip, log_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from releasekit.problems import Problem


def endings_table(
    rows: Sequence[tuple[str, str, str, str]], hints: Iterable[tuple[str, str, Problem | None]]
) -> str:
    """`rows` are package, version, outcome and reason; `hints` name,
    for each, what to do about it and the problem it has.
    """
    shown = [(*row[:3], clip(row[3], 1_000)) for row in rows]
    lines = ["", *columns([("package", "version", "outcome", "why"), *shown]), ""]
    return "\n".join([*lines, *hint_lines(hints)])


def hint_lines(hints: Iterable[tuple[str, str, Problem | None]]) -> list[str]:
    """One line for each thing to do, however many packages it is about, with the page on which it
    says more. What has neither gets none.
    """
    by_hint: dict[str, list[str]] = {}
    for name, hint, problem in hints:
        if told := " ".join(filter(None, (hint, problem and problem.url))):
            by_hint.setdefault(told, []).append(name)
    return [log_line(f"{few(names, 3)}: {told}") for told, names in by_hint.items()]
