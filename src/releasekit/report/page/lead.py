"""What stands around the table: the headline, what to do first, where the time went, and at the end
where all of it is from.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from releasekit.host.forges import Pages
from releasekit.model import Outcome
from releasekit.report.marks import OUTCOMES
from releasekit.report.page.markup import (
    advice,
    definition_list,
    log,
    name,
    outcome,
    output,
    section,
)
from releasekit.report.remarks import group_warnings, signed_fact
from releasekit.report.spent import totals
from releasekit.report.text import (
    by_reason,
    commit_page,
    few,
    seconds,
    trusted_page,
    web_page,
)
from releasekit.report.view import waiting_clause
from releasekit.text.escape import clip, html, html_link, html_prose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.model import Report, Result
    from releasekit.report.remarks import Lack
    from releasekit.report.view import View

_MOST_CARDS: Final = 12
# What to do stands below them, on the first screen of a phone.
_MOST_ROWS: Final = 3
_MOST_NAMED: Final = 8
_MOST_CHARS: Final = 2_000


def head(view: View) -> str:
    """What it is, in one sentence and one bar."""
    report = view.report
    project = clip(report.project, 200)
    linked = html_link(project, trusted_page(report.repository)) if project else "Release"
    theme = '<button type="button" id="theme" hidden data-scripted>Theme: system</button>'
    return (
        f'<header class="top {view.verdict}">\n<div class="title"><p class="project">'
        f"{linked}</p>{theme}</div>\n"
        f"<h1>{html(view.registry_headline)}</h1>\n{_bar(view)}\n</header>"
    )


def about_section(view: View) -> str:
    """Where it is from: who reads the page wants to know what failed before that."""
    report = view.report
    pages = Pages(report.forge, report.repository)
    used = {result.package.id.ecosystem for result in report.results}
    registries = ", ".join(
        f"{html(clip(kind, 40))}: {html_link(clip(url, 200), web_page(url))}"
        for kind, url in sorted(report.registries.items())
        if kind in used
    )
    facts = [
        ("Result", html(view.verdict)),
        ("Commit", html_link(clip(report.commit, 80), commit_page(pages, report.commit))),
        ("Run", html_link("workflow run", trusted_page(report.run_url)) if report.run_url else ""),
        ("Began", f"<time>{html(_began(report.started_at))}</time>"),
        ("Took", seconds(report.duration_s)),
        ("Builds", html_prose(clip(report.builds, 1_000))),
        ("Provenance", signed_fact(report)),
        ("Tags and releases", html(", ".join(view.tag_words))),
        ("Registries", registries),
    ]
    return section("About this run", "about", [definition_list(facts)])


def _began(at: str) -> str:
    """To the minute, if it is a time in the form that we write."""
    try:
        moment = datetime.fromisoformat(at)
        return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if moment.tzinfo else clip(at, 40)
    except (ValueError, OverflowError):
        return clip(at, 40)


def _bar(view: View) -> str:
    """Widths are attributes, since the page allows no style but its own."""
    total, parts, legend = len(view.report.results), [], []
    for kind in OUTCOMES:
        if count := view.counts[kind]:
            width = 100 * count / total
            fill = f'<rect class="{kind}" width="100%" height="100%"/>'
            parts.append(f'<svg width="{width:.3f}%" focusable="false">{fill}</svg>')
            legend.append(f"<li>{outcome(kind)} <b>{count}</b></li>")
    if not parts:
        return ""
    return (
        f'<div class="bar" aria-hidden="true">{"".join(parts)}</div>\n'
        f'<ul class="counts">{"".join(legend)}</ul>'
    )


def to_do_section(view: View) -> str:
    """A card for each cause, the worst first; what is blocked is counted by what it waits for."""
    causes = [cause for cause in view.find_causes(staged=True) if not cause.roots]
    lacking = [lack for lack in view.lacks if lack.is_wrong]
    if not (causes or lacking):
        return ""
    cards = [_card(cause.results, view) for cause in causes[:_MOST_CARDS]]
    if len(causes) > _MOST_CARDS:
        cards.append(f"<p>{len(causes) - _MOST_CARDS} more stand in the table below.</p>")
    cards += [_lack_card(lack) for lack in lacking[:_MOST_CARDS]]
    failed = any(cause.first.outcome is Outcome.FAILED for cause in causes)
    title = "What failed, and what to do first" if failed else "What to do first"
    return section(title, "first", cards)


def _card(about: Sequence[Result], view: View) -> str:
    """Which packages, why, what to do, and what the build of the first of them said."""
    first = about[0]
    rows = []
    for result in about[:_MOST_ROWS]:
        wait = waiting_clause(view.waiting.get(result.package.id, 0))
        note = f' <span class="note">{wait}</span>' if wait else ""
        rows.append(f"<li>{outcome(result.outcome)} <b>{name(str(result.package))}</b>{note}</li>")
    more = len(about) - _MOST_ROWS
    rest = f"<li>and {more} more for the same reason</li>" if more > 0 else ""
    tail = log(first.log[-12:], f"The last lines of the log of {clip(str(first.package), 200)}")
    parts = (
        ("", html_prose(clip(first.reason, _MOST_CHARS))),
        (' class="advice"', advice(first)),
        (' class="note"', output(first, view.report)),
    )
    said = "".join(f"<p{kind}>{text}</p>" for kind, text in parts if text)
    return f'<div class="card {first.outcome}"><ul>{"".join(rows)}{rest}</ul>{said}{tail}</div>'


def _lack_card(lack: Lack) -> str:
    page = html_link(str(lack.problem), lack.problem.url) if lack.problem else ""
    said = html_prose(clip(lack.advice, _MOST_CHARS))
    parts = (
        ("", html_prose(clip(lack.note, _MOST_CHARS))),
        (' class="advice"', f'<strong class="said">{said}</strong> {page}'.strip()),
    )
    told = "".join(f"<p{kind}>{text}</p>" for kind, text in parts if text)
    names = html(clip(few(lack.names, _MOST_NAMED), _MOST_CHARS))
    return f'<div class="card unknown"><ul><li><b>{lack.words}</b>: {names}</li></ul>{told}</div>'


def spent_section(report: Report) -> str:
    lines = totals(report.spent) if report.spent else []
    return "\n".join(f"<p>{html(line)}</p>" for line in lines)


def warning_section(report: Report) -> str:
    groups = group_warnings((result.package, result.warnings) for result in report.results)
    rows = [
        f"<li><b>{html(warning.name)}</b> "
        f"{html(clip(few([str(package.id) for package in about]), 500))}: "
        f"{html_prose(clip(warning.message, _MOST_CHARS))}</li>"
        for warning, about in groups.items()
    ]
    return section("Warnings", "warnings", [f"<ul>{''.join(rows)}</ul>"]) if rows else ""


def private_section(report: Report) -> str:
    rows = [
        f"<li>{html_prose(clip(reason, 500)) or 'private'}: "
        f"{html(clip(few([str(package.id) for package in about], 50), 5_000))}</li>"
        for reason, about in by_reason(report.private).items()
    ]
    return section("Never published", "private", [f"<ul>{''.join(rows)}</ul>"]) if rows else ""
