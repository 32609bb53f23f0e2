"""Pieces of job summaries, and the sections that a run and a plan share. What is handed in as a
title, a cell or a sentence is markup already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from releasekit.report.marks import bar, legend
from releasekit.report.mermaid import draw_graph, is_grouped
from releasekit.report.remarks import group_warnings
from releasekit.report.text import by_reason, commit_page, few, packages, trusted_page
from releasekit.text.escape import clip, code, code_link, fence, link, markdown, prose

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from releasekit.host.forges import Pages
    from releasekit.model import Package, PackageId
    from releasekit.report.marks import OutcomeMark
    from releasekit.report.remarks import Lack, Warned

# https://docs.github.com/en/get-started/writing-on-github/getting-started-with-writing-and-formatting-on-github/basic-writing-and-formatting-syntax#alerts
Alert = Literal["NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"]

# A summary over 1 MiB is dropped whole, so stay below with room for what other tools add:
# https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands#step-isolation-and-limits
LIMIT_BYTES: Final = 1_000_000
_NAME: Final = 100
_SHORT: Final = 10
_FEW_NAMES: Final = 5
_GROUPED: Final = (
    "Each box has the packages of one ecosystem in some layers: what needs nothing is in layer 1. "
    "Of the arrows, those that most packages share are drawn."
)


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


def to_do_item(what: str, why: str, advice: str, *, more: str = "") -> str:
    """An item of a list: on a phone a table hides its last columns, and what to do with them."""
    told = f"**What to do**: {advice}" if advice else ""
    return f"- {'<br>'.join(filter(None, (what, why, told, more)))}"


def sparse_table(
    heading: Sequence[str], rows: Sequence[Sequence[str]], *, always: int
) -> list[str]:
    """A table without its empty columns; the first columns are `always` there."""
    shown = [n for n in range(len(heading)) if n < always or any(row[n] for row in rows)]
    return table([heading[n] for n in shown], [[row[n] for n in shown] for row in rows])


def more_lines(left: int, file: str = "results") -> list[str]:
    """Says that rows are left out, where they are."""
    return [f"… and {left} more, in the {file} file.", ""] if left > 0 else []


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


def first_fitting(candidates: Iterable[str], limit_bytes: int) -> str:
    """The first that fits, or the last one, which should therefore be small by construction."""
    text = ""
    for text in candidates:
        if len(text.encode()) <= limit_bytes:
            break
    return text


def title(sign: str, project: str, words: str) -> list[str]:
    named = f"{markdown(clip(project, _NAME))}: " if project else ""
    return [f"## {sign} {named}{words}", ""]


def alert_box(alert: Alert, sentences: Sequence[str]) -> list[str]:
    """A paragraph for each sentence."""
    first, *others = sentences
    return [f"> [!{alert}]", f"> {first}", *(f">\n> {other}" for other in others), ""]


def bar_lines(counts: Sequence[tuple[OutcomeMark, int]]) -> list[str]:
    squares = bar(counts)
    return [squares, "", legend(counts), ""] if squares else []


def facts(commit: str, pages: Pages, run: str, others: Sequence[str]) -> list[str]:
    """Run, commit and `others`, as links where there are pages."""
    parts = [link("workflow run", page)] if (page := trusted_page(run)) else []
    if commit:
        page = commit_page(pages, commit)
        shown = f"{commit[:_SHORT]}{'+dirty' if '+' in commit else ''}" if page else commit
        parts.append(f"commit {code_link(clip(shown, _NAME), page)}")
    return [" · ".join([*parts, *others]), ""] if parts or others else []


def graph_section(
    heading: str,
    packages: Mapping[PackageId, tuple[str, OutcomeMark]],
    edges: Mapping[PackageId, frozenset[PackageId]],
    order: Sequence[OutcomeMark],
) -> list[str]:
    """Unfolded, in the colours of the marks; empty where no package needs another, or where even
    boxes are too many.
    """
    chart = draw_graph(packages, edges, order) if any(edges.values()) else ""
    if not chart:
        return []
    told = [_GROUPED, ""] if is_grouped(chart) else []
    return [f"### {heading}", "", fence(chart.splitlines(), "mermaid"), "", *told]


def lack_section(lacking: Sequence[Lack], *, rows: int, chars: int) -> list[str]:
    """What is not tagged or announced, and what to do about it: one item for each cause."""
    if not lacking:
        return []
    items = []
    for lack in lacking[:rows]:
        page = f"[{lack.problem}]({lack.problem.url})" if lack.problem else ""
        tags = few([code(clip(name, _NAME)) for name in lack.names], _FEW_NAMES)
        about = few([code(clip(name, _NAME)) for name in lack.packages], _FEW_NAMES)
        what = f"{'🟥' if lack.is_wrong else '⬜'}&nbsp;**{lack.words}**: {tags} of {about}"
        advice = f"{prose(clip(lack.advice, chars))} {page}".strip()
        items.append(to_do_item(what, prose(clip(lack.note, chars)), advice))
    wrong = any(lack.is_wrong for lack in lacking)
    return [
        "### What is not tagged or announced" if wrong else "### Releases of somebody else",
        "",
        *items,
        "",
        *more_lines(len(lacking) - rows),
    ]


def warning_section(warned: Warned, rows: int) -> list[str]:
    groups = group_warnings(warned)
    if not groups or not rows:
        return []
    cells = [
        (
            f"[{code(warning.name)}]({warning.name.problem.url}) {warning.name.problem}",
            markdown(clip(few([str(package.id) for package in packages]), 500)),
            prose(clip(warning.message, 500)),
        )
        for warning, packages in list(groups.items())[:rows]
    ]
    more = [f"… and {len(groups) - rows} more, in the results.", ""] if len(groups) > rows else []
    return ["### Warnings", "", *table(("Warning", "Packages", "What it means"), cells), "", *more]


def private_section(private: Sequence[Package], rows: int) -> list[str]:
    if not private or not rows:
        return []
    cells = [
        (prose(clip(reason, 300)), names(group, rows, open_=5))
        for reason, group in by_reason(private[:rows]).items()
    ]
    lines = table(("Why", "Packages"), cells)
    if len(private) > rows:
        lines += ["", f"… and {len(private) - rows} more."]
    return details(f"{packages(len(private))} never published", lines)
