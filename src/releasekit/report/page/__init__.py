"""report.html: one file with all there is to know of a run, for people. It asks no network for
anything, and without scripts its headline and its table can be read all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.report.page import assets
from releasekit.report.page.data import drawing
from releasekit.report.page.lead import first_to_do, head, private, spending, warnings
from releasekit.report.page.markup import data, section
from releasekit.report.page.outline import FILTERS, GRAPH, TIMELINE
from releasekit.report.page.table import package_table
from releasekit.report.verdict import headline
from releasekit.text.escape import clip, html

if TYPE_CHECKING:
    from releasekit.model import Report

# By which a later run knows that it may replace the page.
BEGINNING: Final = '<!doctype html>\n<html lang="en" data-releasekit-report="1">\n'


_FOOT: Final = "Written by ReleaseKit. This page is one file: it loads nothing, and sends nothing."


def report_page(report: Report) -> str:
    """The whole file; it begins with BEGINNING."""
    title = html(clip(f"{headline(report)} · {report.project or 'Release'}", 300))
    body = "\n".join((*_sections(report), data(drawing(report))))
    scripts = "\n".join(f"<script>{each}</script>" for each in assets.scripts())
    return (
        f"{BEGINNING}<head>\n"
        '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{assets.policy()}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="robots" content="noindex">\n'
        f"<title>{title}</title>\n<style>{assets.style()}</style>\n</head>\n"
        f"<body>\n{body}\n{scripts}\n</body>\n</html>\n"
    )


def _sections(report: Report) -> list[str]:
    main = [first_to_do(report)]
    if report.results:
        main += [
            FILTERS,
            section("What waited for what", "graph", [GRAPH], needs_script=True),
            section("Where the time went", "time", [TIMELINE, spending(report)]),
            section("Every package", "packages", [package_table(report)]),
        ]
    main += [warnings(report), private(report)]
    shown = "\n".join(part for part in main if part)
    return [
        '<a class="skip" href="#main">Skip to the report</a>',
        head(report),
        f'<main id="main" tabindex="-1">\n{shown}\n</main>',
        f"<footer><p>{_FOOT}</p></footer>",
    ]
