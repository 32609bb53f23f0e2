"""The table of every package, which can be read without a script: a row, and all there is to say of
the package folded into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.announced import Tag
from releasekit.report.links import web_page
from releasekit.report.page.markup import advice, listed, log, name, outcome, output
from releasekit.report.signed import entry_link
from releasekit.report.spent_words import package_words, size
from releasekit.report.tagged import page_of, short
from releasekit.report.text import packages, seconds
from releasekit.text.escape import clip, html, html_link

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.announced import Announcement
    from releasekit.model import Artifact, PackageId, Report, Result

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
    numbers = {result.package.id: number for number, result in enumerate(report.results)}
    needed = _needed_by(report)
    head = "".join(f'<th scope="col" data-sort="{kind}">{title}</th>' for title, kind in _COLUMNS)
    rows = "\n".join(
        _row(number, result, _Around(report, numbers, needed))
        for number, result in enumerate(report.results)
    )
    caption = f"{packages(len(report.results))}, dependencies first"
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Packages">'
        f'<table id="table"><caption>{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


class _Around:
    """What a row says of other rows."""

    def __init__(
        self,
        report: Report,
        numbers: Mapping[PackageId, int],
        needed: Mapping[PackageId, Sequence[PackageId]],
    ) -> None:
        self._report, self._numbers, self._needed = report, numbers, needed

    def needs(self, result: Result) -> str:
        return self._links(sorted(self._report.edges.get(result.package.id, ())))

    def needed_by(self, result: Result) -> str:
        return self._links(self._needed.get(result.package.id, ()))

    def _links(self, names: Sequence[PackageId]) -> str:
        shown = [self._link(each) for each in names[:_MOST_LINKS]]
        more = f" and {len(names) - _MOST_LINKS} more" if len(names) > _MOST_LINKS else ""
        return ", ".join(shown) + more

    def _link(self, package: PackageId) -> str:
        text = name(str(package))
        number = self._numbers.get(package)
        return text if number is None else f'<a href="#p{number}">{text}</a>'


def _needed_by(report: Report) -> dict[PackageId, list[PackageId]]:
    found: dict[PackageId, list[PackageId]] = {}
    for result in report.results:
        for on in sorted(report.edges.get(result.package.id, ())):
            found.setdefault(on, []).append(result.package.id)
    return found


def _row(number: int, result: Result, around: _Around) -> str:
    package = result.package
    cells = (
        f'<th scope="row">{name(package.id.name)}</th>',
        f"<td>{html(clip(package.id.ecosystem, 40))}</td>",
        f"<td>{html_link(clip(package.version, 80), web_page(result.url))}</td>",
        f"<td>{outcome(result.outcome)}</td>",
        f"<td>{result.attempts}</td>",
        f'<td data-value="{result.duration_s:.3f}">{seconds(result.duration_s)}</td>',
        f"<td>{_details(result, around)}</td>",
    )
    return f'<tr id="p{number}">{"".join(cells)}</tr>'


def _details(result: Result, around: _Around) -> str:
    short = html(clip(result.reason or str(result.outcome), _SHORT))
    return (
        f'<details><summary>{short}</summary><div class="details">'
        f"{listed(_facts(result, around))}{log(result.log, 'The last lines of its log')}"
        "</div></details>"
    )


def _facts(result: Result, around: _Around) -> list[tuple[str, str]]:
    """Terms and HTML; a term without text is left out."""
    whole = result.reason if len(result.reason) > _SHORT else ""
    waited = html(package_words(result.spent))
    return [
        ("Reason", f'<span class="said">{html(clip(whole, _MOST_CHARS))}</span>' if whole else ""),
        ("What to do", advice(result)),
        ("Its log", output(result)),
        ("Where it is", html_link(clip(result.url, 500), web_page(result.url))),
        ("Waits for approval", _staged(result)),
        ("Tag", _followed(result.tag)),
        ("Release", _followed(result.announcement)),
        ("Its time", f'<span class="why">{waited}</span>' if waited else ""),
        ("Tries", html(_tries(result))),
        ("Needs", around.needs(result)),
        ("Needed by", around.needed_by(result)),
        ("Warnings", _warnings(result)),
        ("Files", _files(result)),
    ]


def _followed(each: Tag | Announcement | None) -> str:
    """Its name and page, how far it is, and why no farther."""
    if each is None:
        return ""
    parts = [f"{html_link(short(each), page_of(each))}: {each.status}"]
    parts += [html(clip(text, _MOST_CHARS)) for text in (each.note, each.hint) if text]
    if each.problem:
        parts.append(html_link(str(each.problem), each.problem.url))
    if isinstance(each, Tag) and each.commit:
        parts.append(f"<code>{html(clip(each.commit, 80))}</code>")
    return "<br>".join(parts)


def _staged(result: Result) -> str:
    if result.staged is None:
        return ""
    tag = f" as {html(clip(result.staged.tag, 100))}" if result.staged.tag else ""
    return html_link(clip(result.staged.url or "yes", 500), web_page(result.staged.url)) + tag


def _tries(result: Result) -> str:
    spans = [
        f"{span.phase} {seconds(span.end_s - span.start_s)} (from {seconds(span.start_s)})"
        for span in result.spans[:_MOST_LINKS]
    ]
    return ", ".join(spans)


def _warnings(result: Result) -> str:
    told = [
        f"<li>{'error' if each.error else 'warning'} {html(each.name)}: "
        f"{html(clip(each.message, _MOST_CHARS))}</li>"
        for each in result.warnings
    ]
    return f"<ul>{''.join(told)}</ul>" if told else ""


def _files(result: Result) -> str:
    files = [
        f"<li>{html(clip(each.filename, 300))} ({size(each.size)})<br>"
        f"<code>sha256 {html(each.sha256[:64])}</code>{_entry(each)}</li>"
        for each in result.artifacts
    ]
    return f"<ul>{''.join(files)}</ul>" if files else ""


def _entry(artifact: Artifact) -> str:
    """Where the log shows who has signed it."""
    words, page = entry_link(artifact)
    return f"<br>signed, {html_link(words, page)}" if words else ""
