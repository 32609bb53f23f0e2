"""The table of every package, which can be read without a script: a row, and all there is to say of
the package folded into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.announced import Tag
from releasekit.report.page.markup import advice, definition_list, log, name, outcome, output
from releasekit.report.remarks import entry_link, page_of, short_name
from releasekit.report.spent import LEAST_S, package_words
from releasekit.report.text import packages, seconds, size, web_page
from releasekit.text.escape import clip, html, html_link, html_prose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.announced import Announcement
    from releasekit.model import PackageId, Report, Result

_COLUMNS: Final = (
    ("Package", "text"),
    ("Ecosystem", "text"),
    ("Version", "text"),
    ("Outcome", "text"),
    ("Attempts", "number"),
    ("Time", "number"),
    ("What happened", "text"),
)
_MOST_CHARS: Final = 4_000
_MOST_LINKS: Final = 100
_SHORT: Final = 110


def package_table(report: Report) -> str:
    neighbours = _Neighbours(report)
    head = "".join(f'<th scope="col" data-sort="{kind}">{title}</th>' for title, kind in _COLUMNS)
    rows = "\n".join(
        _row(number, result, report, neighbours) for number, result in enumerate(report.results)
    )
    caption = f"{packages(len(report.results))}, dependencies first"
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Packages">'
        f'<table id="table"><caption>{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


class _Neighbours:
    """What a row says of other rows."""

    def __init__(self, report: Report) -> None:
        self._edges = report.edges
        self._numbers = {result.package.id: number for number, result in enumerate(report.results)}
        self._needed: dict[PackageId, list[PackageId]] = {}
        for result in report.results:
            for on in sorted(report.edges.get(result.package.id, ())):
                self._needed.setdefault(on, []).append(result.package.id)

    def needs(self, package: PackageId) -> str:
        return self._links(sorted(self._edges.get(package, ())))

    def needed_by(self, package: PackageId) -> str:
        return self._links(self._needed.get(package, ()))

    def _links(self, names: Sequence[PackageId]) -> str:
        shown = []
        for package in names[:_MOST_LINKS]:
            text, number = name(str(package)), self._numbers.get(package)
            shown.append(text if number is None else f'<a href="#p{number}">{text}</a>')
        more = f" and {len(names) - _MOST_LINKS} more" if len(names) > _MOST_LINKS else ""
        return ", ".join(shown) + more


def _row(number: int, result: Result, report: Report, neighbours: _Neighbours) -> str:
    package = result.package
    took = seconds(result.duration_s) if result.duration_s >= LEAST_S else ""
    summed_up = html_prose(clip(result.reason or str(result.outcome), _SHORT))
    details = (
        f'<details><summary>{summed_up}</summary><div class="details">'
        f"{definition_list(_facts(result, report, neighbours))}"
        f"{log(result.log, 'The last lines of its log')}"
        "</div></details>"
    )
    cells = (
        f'<th scope="row">{name(package.id.name)}</th>',
        f"<td>{html(clip(package.id.ecosystem, 40))}</td>",
        f"<td>{html_link(clip(package.version, 80), web_page(result.url))}</td>",
        f"<td>{outcome(result.outcome)}</td>",
        f"<td>{result.attempts or ''}</td>",
        f'<td data-value="{result.duration_s:.3f}">{took}</td>',
        f"<td>{details}</td>",
    )
    return f'<tr id="p{number}">{"".join(cells)}</tr>'


def _facts(result: Result, report: Report, neighbours: _Neighbours) -> list[tuple[str, str]]:
    """Terms and HTML; a term without text is left out."""
    whole = result.reason if len(result.reason) > _SHORT else ""
    said = html_prose(clip(whole, _MOST_CHARS))
    approval = ""
    if staged := result.staged:
        approval = html_link(clip(staged.url or "yes", 500), web_page(staged.url))
        approval += f" as {html(clip(staged.tag, 100))}" if staged.tag else ""
    waited = html(package_words(result.spent))
    tries = ", ".join(
        f"{span.phase} {seconds(span.end_s - span.start_s)} (from {seconds(span.start_s)})"
        for span in result.spans[:_MOST_LINKS]
    )
    return [
        (
            "Reason",
            f'<span class="said">{said}</span>' if said else "",
        ),
        ("What to do", advice(result)),
        ("Its log", output(result, report)),
        ("Where it is", html_link(clip(result.url, 500), web_page(result.url))),
        ("Waits for approval", approval),
        ("Tag", _tag_text(result.tag)),
        ("Release", _tag_text(result.announcement)),
        ("Its time", f'<span class="why">{waited}</span>' if waited else ""),
        ("Tries", html(tries)),
        ("Needs", neighbours.needs(result.package.id)),
        ("Needed by", neighbours.needed_by(result.package.id)),
        ("Warnings", _warnings(result)),
        ("Files", _files(result)),
    ]


def _tag_text(each: Tag | Announcement | None) -> str:
    """Its name and page, its status, and what keeps it there."""
    if each is None:
        return ""
    parts = [f"{html_link(short_name(each), page_of(each))}: {each.status}"]
    parts += [html_prose(clip(text, _MOST_CHARS)) for text in (each.note, each.hint) if text]
    if each.problem:
        parts.append(html_link(str(each.problem), each.problem.url))
    if isinstance(each, Tag) and each.commit:
        parts.append(f"<code>{html(clip(each.commit, 80))}</code>")
    return "<br>".join(parts)


def _warnings(result: Result) -> str:
    told = [
        f"<li>{'error' if each.error else 'warning'} {html(each.name)}: "
        f"{html_prose(clip(each.message, _MOST_CHARS))}</li>"
        for each in result.warnings
    ]
    return f"<ul>{''.join(told)}</ul>" if told else ""


def _files(result: Result) -> str:
    """With a link to the log entry that shows who signed each."""
    files = []
    for each in result.artifacts:
        words, page = entry_link(each)
        signed = f"<br>signed, {html_link(words, page)}" if words else ""
        files.append(
            f"<li>{html(clip(each.filename, 300))} ({size(each.size)})<br>"
            f"<code>sha256 {html(each.sha256[:64])}</code>{signed}</li>"
        )
    return f"<ul>{''.join(files)}</ul>" if files else ""
