"""What became of a release that was decided about, as a table of a terminal or a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.report.text import columns, few
from releasekit.text.escape import clip, log_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def endings_table(
    rows: Sequence[tuple[str, str, str, str]], hints: Iterable[tuple[str, str]]
) -> str:
    """`rows` are package, version, outcome and reason; `hints` what to do about some of them."""
    shown = [(*row[:3], clip(row[3], 1_000)) for row in rows]
    lines = ["", *columns([("package", "version", "outcome", "why"), *shown]), ""]
    return "\n".join([*lines, *hint_lines(hints)])


def hint_lines(hints: Iterable[tuple[str, str]]) -> list[str]:
    """One line for each thing to do, however many packages it is about."""
    by_hint: dict[str, list[str]] = {}
    for name, hint in hints:
        by_hint.setdefault(hint, []).append(name)
    return [log_line(f"{few(names, 3)}: {hint}") for hint, names in by_hint.items()]
