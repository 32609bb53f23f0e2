"""What is not tagged or announced, and what to do about it: one row for each cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.report.markdown import table
from releasekit.report.tagged import lacks
from releasekit.report.text import few
from releasekit.text.escape import clip, code, markdown

if TYPE_CHECKING:
    from releasekit.report.tagged import Followed, Lack

_NAMED = 5


def lack_section(followed: Followed, *, rows: int, chars: int) -> list[str]:
    lacking = lacks(followed)
    if not lacking:
        return []
    left = len(lacking) - rows
    wrong = any(lack.is_wrong for lack in lacking)
    return [
        "### What is not tagged or announced" if wrong else "### Releases of somebody else",
        "",
        *table(
            ("What", "Tag", "Package", "Why", "What to do"),
            [_row(lack, chars) for lack in lacking[:rows]],
        ),
        "",
        *([f"… and {left} more, in the results file.", ""] if left > 0 else []),
    ]


def _row(lack: Lack, chars: int) -> tuple[str, ...]:
    page = f"[{lack.problem}]({lack.problem.url})" if lack.problem else ""
    return (
        f"{'🟥' if lack.is_wrong else '⬜'}&nbsp;**{lack.words}**",
        few([code(clip(name, 100)) for name in lack.names], _NAMED),
        few([code(clip(name, 100)) for name in lack.packages], _NAMED),
        markdown(clip(lack.note, chars)),
        f"{markdown(clip(lack.advice, chars))} {page}".strip(),
    )
