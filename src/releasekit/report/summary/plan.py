"""The job summary of a plan: what a run would publish."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from releasekit.host.ci import Origin
from releasekit.model import SENT, Action
from releasekit.report.marks import ACTIONS, count_words
from releasekit.report.plans import destinations, own_reasons, shared_reasons
from releasekit.report.remarks import find_lacks, headline_words, short_name
from releasekit.report.summary.markdown import (
    LIMIT_BYTES,
    alert_box,
    bar_lines,
    details,
    facts,
    first_fitting,
    graph_section,
    lack_section,
    more_lines,
    package_cells,
    private_section,
    sparse_table,
    title,
    warning_section,
)
from releasekit.report.text import packages, web_page
from releasekit.text.escape import clip, markdown, prose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.model import Plan, PlannedPackage
    from releasekit.report.summary.markdown import Alert

_ROWS: Final = (2_000, 300, 30)  # rows of tables; fewer until it fits
# A table of at most so many packages to publish stands open.
_FEW: Final = 25
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
    places = [f"to {', '.join(map(markdown, places))}"] if (places := destinations(plan)) else []
    provenance = prose(clip(plan.provenance, _MOST_CHARS))
    tagging = ", ".join(headline_words(plan.packages))
    announcing = prose(clip(plan.announcing, _MOST_CHARS))
    following = ". ".join(filter(None, (tagging, announcing)))
    shared = shared_reasons(plan)
    lines = [
        *title(sign, origin.project, words),
        *alert_box(alert, [*sentences, *(prose(note) for note in plan.notes)]),
        *bar_lines([(mark, counts[action]) for action, mark in ACTIONS.items()]),
        *facts(plan.commit, origin.pages, origin.run_url, places),
        *([f"provenance: {provenance}", ""] if provenance else []),
        *([f"tags and releases: {following}", ""] if following else []),
        *lack_section(find_lacks(plan.packages), rows=rows, chars=_CHARS),
        *warning_section(((each.package, each.warnings) for each in plan.packages), rows),
        *(
            line
            for (action, reason), count in shared.items()
            for line in (f"{count} {ACTIONS[action].word}: {prose(clip(reason, _CHARS))}", "")
        ),
        *_sections(own_reasons(plan, shared), rows),
        *graph_section(
            "Publish order",
            {
                planned.package.id: (str(planned.package), ACTIONS[planned.action])
                for planned in plan.packages
            },
            plan.edges(),
            list(ACTIONS.values()),
        ),
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


def _sections(own: Sequence[tuple[PlannedPackage, str]], rows: int) -> list[str]:
    """Packages that need a look, then those that would be published, then those that are there."""
    shown = own[:rows]
    lines: list[str] = []
    for action in (Action.REFUSE, Action.AWAIT):
        if chosen := [each for each in shown if each[0].action is action]:
            mark = ACTIONS[action]
            lines += [f"### {mark.square} {mark.word.capitalize()}", "", *_table(chosen), ""]
    new = [each for each in shown if each[0].action in SENT]
    groups: dict[str, list[tuple[PlannedPackage, str]]] = {}
    for each in new:
        groups.setdefault(each[0].package.id.ecosystem, []).append(each)
    if new:
        lines += ["### What would be published", ""]
    for ecosystem, group in sorted(groups.items()):
        counts = Counter(planned.action for planned, _ in group)
        words = count_words([(mark, counts[action]) for action, mark in ACTIONS.items()])
        named = f"<b>{markdown(clip(ecosystem, 100))}</b>: {words}"
        lines += details(named, _table(group), open_=len(new) <= _FEW)
    if kept := [each for each in shown if each[0].action is Action.KEEP]:
        mark = ACTIONS[Action.KEEP]
        lines += details(f"{mark.square} {len(kept)} {mark.word}", _table(kept))
    return [*lines, *more_lines(len(own) - rows, "plan")]


def _table(rows: Sequence[tuple[PlannedPackage, str]]) -> list[str]:
    cells = []
    for planned, own_reason in rows:
        place, mark = planned.staged or planned.published, ACTIONS[planned.action]
        cells.append(
            (
                *package_cells(planned.package, web_page(place.url) if place else ""),
                f"{mark.square} {mark.word}",
                markdown(short_name(planned.tag)),
                prose(clip(own_reason, _CHARS)),
            )
        )
    return sparse_table(("Package", "Version", "Action", "Tag", "Why"), cells, always=3)
