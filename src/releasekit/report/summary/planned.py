"""The job summary of a plan: what a run would publish."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from releasekit.host.origin import Origin
from releasekit.model import Action
from releasekit.report.links import web_page
from releasekit.report.markdown import (
    LIMIT_BYTES,
    details,
    first_fitting,
    package_cells,
    private_section,
    table,
)
from releasekit.report.marks import ACTIONS
from releasekit.report.plans import destinations, own_reasons, shared_reasons
from releasekit.report.summary.graph import graph_section
from releasekit.report.summary.heading import alert_box, counted, facts, title
from releasekit.report.summary.tagged import lack_section
from releasekit.report.tagged import headline_words, short
from releasekit.report.text import packages
from releasekit.report.warnings import warning_section
from releasekit.text.escape import clip, markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.model import Plan, PlannedPackage
    from releasekit.report.summary.heading import Alert

_ROWS: Final = (2_000, 300, 30)  # rows of tables; fewer until it fits
# What there is something to do for stands open in a table of no more rows.
_FEW: Final = 25
# Columns; those behind them are there where they say something.
_ALWAYS: Final = 3
_CHARS: Final = 300
_MOST_CHARS: Final = 2_000


def plan_summary(
    plan: Plan, origin: Origin | None = None, *, limit_bytes: int = LIMIT_BYTES
) -> str:
    """The job summary of `mode: plan`; it says less rather than exceed the limit."""
    place = origin or Origin()
    return first_fitting((_summary(plan, place, rows) for rows in _ROWS), limit_bytes)


def _summary(plan: Plan, origin: Origin, rows: int) -> str:
    sign, alert, words, sentences = _outlook(plan)
    counts = Counter(planned.action for planned in plan.packages)
    lines = [
        *title(sign, origin.project, words),
        *alert_box(alert, [*sentences, *(markdown(note) for note in plan.notes)]),
        *counted([(mark, counts[action]) for action, mark in ACTIONS.items()]),
        *facts(plan.commit, origin.repository, origin.run_url, _destination(plan)),
        *_provenance(plan),
        *_announcing(plan),
        *lack_section(plan.packages, rows=rows, chars=_CHARS),
        *warning_section(((each.package, each.warnings) for each in plan.packages), rows),
        *_common(plan),
        *_sections(plan, rows),
        *_graph(plan),
        *private_section(plan.private, rows),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _outlook(plan: Plan) -> tuple[str, Alert, str, list[str]]:
    """Sign, colour, heading, and what follows from it."""
    counts = Counter(planned.action for planned in plan.packages)
    new = counts[Action.PUBLISH] + counts[Action.UPLOAD]
    words = f"{packages(new) if new else 'No package'} to publish"
    if counts[Action.REFUSE]:
        which = f"**{packages(counts[Action.REFUSE])} cannot be published as planned.**"
        return "❌", "CAUTION", words, [which, "Fix what is refused below first."]
    if new:
        return "📋", "NOTE", words, ["This is a plan: nothing has been built or published."]
    if counts[Action.AWAIT]:
        return "⏳", "IMPORTANT", words, ["**Approve what is staged.** Nothing else is to be done."]
    done = "Everything is published already." if plan.packages else "There is nothing to do."
    return "✅", "NOTE", words, [done]


def _destination(plan: Plan) -> list[str]:
    places = destinations(plan)
    return [f"to {', '.join(map(markdown, places))}"] if places else []


def _provenance(plan: Plan) -> list[str]:
    """A row of its own: what it lacks may be much."""
    words = markdown(clip(plan.provenance, _MOST_CHARS))
    return [f"provenance: {words}", ""] if words else []


def _announcing(plan: Plan) -> list[str]:
    told = [*headline_words(plan.packages), markdown(clip(plan.announcing, _MOST_CHARS))]
    words = ". ".join(filter(None, (", ".join(told[:-1]), told[-1])))
    return [f"tags and releases: {words}", ""] if words else []


def _common(plan: Plan) -> list[str]:
    return [
        line
        for (action, reason), count in shared_reasons(plan).items()
        for line in (f"{count} {ACTIONS[action].word}: {markdown(clip(reason, _CHARS))}", "")
    ]


def _sections(plan: Plan, rows: int) -> list[str]:
    """What needs a look, then what would be published, by ecosystem, then what is there."""
    shared = shared_reasons(plan)
    own = own_reasons(plan, shared)
    left = len(own) - rows
    shown = own[:rows]
    lines: list[str] = []
    for action in (Action.REFUSE, Action.AWAIT):
        if chosen := [each for each in shown if each[0].action is action]:
            mark = ACTIONS[action]
            lines += [f"### {mark.square} {mark.word.capitalize()}", "", *_table(chosen), ""]
    new = [each for each in shown if each[0].action in {Action.PUBLISH, Action.UPLOAD}]
    if new:
        lines += ["### What would be published", "", *_by_ecosystem(new, open_=len(new) <= _FEW)]
    if kept := [each for each in shown if each[0].action is Action.KEEP]:
        mark = ACTIONS[Action.KEEP]
        lines += details(f"{mark.square} {len(kept)} {mark.word}", _table(kept))
    return [*lines, *([f"… and {left} more, in the plan file.", ""] if left > 0 else [])]


def _by_ecosystem(rows: Sequence[tuple[PlannedPackage, str]], *, open_: bool) -> list[str]:
    """In publish order."""
    groups: dict[str, list[tuple[PlannedPackage, str]]] = {}
    for each in rows:
        groups.setdefault(each[0].package.id.ecosystem, []).append(each)
    return [
        line
        for ecosystem, group in sorted(groups.items())
        for line in details(_title(ecosystem, group), _table(group), open_=open_)
    ]


def _title(ecosystem: str, rows: Sequence[tuple[PlannedPackage, str]]) -> str:
    counts = Counter(planned.action for planned, _ in rows)
    words = [
        f"{mark.square} {counts[action]} {mark.word}"
        for action, mark in ACTIONS.items()
        if counts[action]
    ]
    return f"<b>{markdown(clip(ecosystem, 100))}</b>: {', '.join(words)}"


def _table(rows: Sequence[tuple[PlannedPackage, str]]) -> list[str]:
    cells = [
        (
            *package_cells(planned.package, _page(planned)),
            f"{ACTIONS[planned.action].square} {ACTIONS[planned.action].word}",
            markdown(short(planned.tag)),
            markdown(clip(own_reason, _CHARS)),
        )
        for planned, own_reason in rows
    ]
    heading = ("Package", "Version", "Action", "Tag", "Why")
    shown = [n for n in range(len(heading)) if n < _ALWAYS or any(row[n] for row in cells)]
    return table([heading[n] for n in shown], [[row[n] for n in shown] for row in cells])


def _page(planned: PlannedPackage) -> str:
    if planned.staged is not None:
        return web_page(planned.staged.url)
    return web_page(planned.published.url) if planned.published else ""


def _graph(plan: Plan) -> list[str]:
    return graph_section(
        "Publish order",
        {
            planned.package.id: (str(planned.package), ACTIONS[planned.action])
            for planned in plan.packages
        },
        plan.edges(),
        list(ACTIONS.values()),
    )
