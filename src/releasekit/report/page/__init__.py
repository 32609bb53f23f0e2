"""report.html: one file with all there is to know of a run, for people. It asks no network for
anything, and without scripts its headline and its table can be read all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.model import PackageId
from releasekit.report.marks import OUTCOMES
from releasekit.report.mermaid import layers
from releasekit.report.page import assets
from releasekit.report.page.lead import (
    about_section,
    head,
    private_section,
    spent_section,
    to_do_section,
    warning_section,
)
from releasekit.report.page.markup import json_element, section
from releasekit.report.page.table import package_table
from releasekit.report.spent import WORDS
from releasekit.report.view import SEVERITY, View
from releasekit.text.escape import clip, html, visible

if TYPE_CHECKING:
    from releasekit.model import Report

# A later run replaces only a page that begins like this.
BEGINNING: Final = '<!doctype html>\n<html lang="en" data-releasekit-report="1">\n'
_FOOT: Final = "Written by ReleaseKit. This page is one file: it loads nothing, and sends nothing."
_MOST_CHARS: Final = 200
# The frames that the scripts fill are hidden without them.
_FILTERS: Final = """\
<div id="filters" role="search" hidden data-scripted aria-label="Filter packages">
<label>Search <input type="search" id="search" placeholder="name, version, reason"></label>
<label>Ecosystem <select id="ecosystem"><option value="">all</option></select></label>
<button type="button" id="reset">Show all</button>
<p id="shown" role="status"></p>
<fieldset id="outcomes"><legend>Outcome</legend></fieldset>
</div>"""

_GRAPH: Final = """\
<p class="note screen">Packages on the left go first. Point at one, or walk there with the arrow
keys, to see why it waited; Enter opens it. Drag to move, Ctrl and the wheel to zoom.</p>
<div class="controls">
<label>Show <select id="view"></select></label>
<button type="button" id="closer" aria-label="Zoom in">+</button>
<button type="button" id="farther" aria-label="Zoom out">&minus;</button>
<button type="button" id="fit">Fit</button>
</div>
<div id="canvas"></div>
<p id="graph-note" class="note" role="status"></p>"""

_TIMELINE: Final = """\
<div hidden data-scripted>
<p class="note">Each lane has as many rows as tasks ran in it at a time.</p>
<div id="timeline"></div>
</div>"""


def report_page(report: Report) -> str:
    """The whole file; it begins with BEGINNING."""
    view = View(report)
    main = [to_do_section(view)]
    if report.results:
        main += [
            _FILTERS,
            section("What waited for what", "graph", [_GRAPH], needs_script=True),
            section("Where the time went", "time", [_TIMELINE, spent_section(report)]),
            section("Every package", "packages", [package_table(report)]),
        ]
    main += [warning_section(report), private_section(report), about_section(view)]
    shown = "\n".join(part for part in main if part)
    body = (
        '<a class="skip" href="#main">Skip to the report</a>\n'
        f'{head(view)}\n<main id="main" tabindex="-1">\n{shown}\n</main>\n'
        f"<footer><p>{_FOOT}</p></footer>\n{json_element(_graph_data(report))}"
    )
    title = html(clip(f"{view.registry_headline} · {report.project or 'Release'}", 300))
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


def _graph_data(report: Report) -> dict[str, object]:
    """What the scripts draw: packages by their number, so that no name is ever a key. The
    words are in the table alone.
    """
    numbers = {result.package.id: number for number, result in enumerate(report.results)}
    layer = layers(numbers, report.edges)
    packages: list[dict[str, object]] = []
    for result in report.results:
        package = result.package
        waited_for = result.spent.waited_for if result.spent else ""
        needs = report.edges.get(package.id, frozenset())
        packages.append(
            {
                "name": visible(clip(package.id.name, _MOST_CHARS)),
                "ecosystem": visible(clip(package.id.ecosystem, 40)),
                "version": visible(clip(package.version, 80)),
                "outcome": result.outcome,
                "needs": sorted(numbers[on] for on in needs if on in numbers),
                "layer": layer[package.id] - 1,
                "waited": numbers.get(PackageId.parse(waited_for), -1),
                "spans": [
                    [span.phase, round(span.start_s, 3), round(span.end_s, 3)]
                    for span in result.spans
                ],
            }
        )
    return {
        "duration": round(report.duration_s, 3),
        "marks": {outcome: mark.sign for outcome, mark in OUTCOMES.items()},
        "worst": SEVERITY,
        "words": WORDS,
        "packages": packages,
    }
