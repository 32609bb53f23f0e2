"""What became of a release that was decided about, as a table of a terminal or a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.report.text import columns
from releasekit.text.escape import clip, log_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def endings_table(
    rows: Sequence[tuple[str, str, str, str]], hints: Iterable[tuple[str, str]]
) -> str:
    """`rows` are package, version, outcome and reason; `hints` what to do about some of them."""
    shown = [(*row[:3], clip(row[3], 1_000)) for row in rows]
    lines = ["", *columns([("package", "version", "outcome", "why"), *shown]), ""]
    by_hint: dict[str, list[str]] = {}
    for name, hint in hints:
        by_hint.setdefault(hint, []).append(name)
    for hint, names in by_hint.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        lines.append(log_line(f"{', '.join(names[:3])}{more}: {hint}"))
    return "\n".join(lines)
