"""Pieces of job summaries; every cell and title handed in is escaped already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.report.text import by_reason, packages
from releasekit.text.escape import clip, code, markdown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from releasekit.model import Package, Result

# A summary over 1 MiB is dropped whole, so stay below with room for what other tools add:
# https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands#step-isolation-and-limits
LIMIT_BYTES: Final = 1_000_000

_NAME: Final = 100


def package_cells(package: Package) -> tuple[str, str]:
    return code(clip(str(package.id), _NAME)), code(clip(package.version, _NAME))


def what_to_do(result: Result, chars: int) -> str:
    """Its hint, and the page on which it says more."""
    hint = markdown(clip(result.hint, chars))
    page = f"[{result.problem}]({result.problem.url})" if result.problem else ""
    return f"{hint} {page}".strip()


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(heading)} |",
        "|" + " --- |" * len(heading),
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def details(title: str, lines: Iterable[str]) -> list[str]:
    """A folded section. Markdown inside needs the empty line after the tag."""
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>", ""]


def private_section(private: Sequence[Package], rows: int) -> list[str]:
    if not private or not rows:
        return []
    cells = [
        (markdown(clip(reason, 300)), ", ".join(package_cells(package)[0] for package in group))
        for reason, group in by_reason(private[:rows]).items()
    ]
    lines = table(("Why", "Packages"), cells)
    if len(private) > rows:
        lines += ["", f"… and {len(private) - rows} more."]
    return details(f"{packages(len(private))} never published", lines)


def first_fitting(candidates: Iterable[str], limit_bytes: int) -> str:
    """The first that fits, or the last one, which should therefore be small by construction."""
    text = ""
    for text in candidates:
        if len(text.encode()) <= limit_bytes:
            break
    return text
