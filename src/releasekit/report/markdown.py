"""Pieces of job summaries; every cell and title handed in is escaped already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.report.text import by_reason, packages
from releasekit.text.escape import clip, code_link, markdown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from releasekit.model import Package

# A summary over 1 MiB is dropped whole, so stay below with room for what other tools add:
# https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands#step-isolation-and-limits
LIMIT_BYTES: Final = 1_000_000

_NAME: Final = 100


def package_cells(package: Package, page: str = "") -> tuple[str, str]:
    """Its name and its version, as links to the `page` of it where there is one."""
    name, version = clip(str(package.id), _NAME), clip(package.version, _NAME)
    return code_link(name, page), code_link(version, page)


def names(packages: Sequence[Package], most: int, *, open_: int = 3) -> str:
    """In one cell of a table: the first of them, the others folded, of which `most` are named."""
    shown = [package_cells(package)[0] for package in packages[:most]]
    text = ", ".join(shown[:open_])
    if len(packages) <= open_:
        return text
    left = len(packages) - most
    more = f" and {left} more" if left > 0 else ""
    rest = ", ".join(shown[open_:])
    folded = f"{text}<details><summary>and {len(packages) - open_} more</summary>"
    return f"{folded}{rest}{more}</details>"


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(heading)} |",
        "|" + " --- |" * len(heading),
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def details(title: str, lines: Iterable[str], *, open_: bool = False) -> list[str]:
    """A folded section. Markdown inside needs the empty line after the tag."""
    return [
        "<details open>" if open_ else "<details>",
        f"<summary>{title}</summary>",
        "",
        *lines,
        "",
        "</details>",
        "",
    ]


def private_section(private: Sequence[Package], rows: int) -> list[str]:
    if not private or not rows:
        return []
    cells = [
        (markdown(clip(reason, 300)), names(group, rows, open_=5))
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
