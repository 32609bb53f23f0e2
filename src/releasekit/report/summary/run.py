"""The job summary of a finished run, of a dry run and of several jobs joined."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from releasekit.model import Outcome
from releasekit.report.gantt import gantt
from releasekit.report.markdown import LIMIT_BYTES, first_fitting, private_section
from releasekit.report.marks import OUTCOMES
from releasekit.report.results_table import warned
from releasekit.report.signed import signed_summary
from releasekit.report.spent_words import spent_section
from releasekit.report.summary.approval import approval_section
from releasekit.report.summary.detail import DETAILS
from releasekit.report.summary.done import done_section, files_section
from releasekit.report.summary.graph import graph_section
from releasekit.report.summary.heading import alert_box, counted, facts, title
from releasekit.report.summary.tagged import lack_section
from releasekit.report.summary.trouble import causes_of, trouble_section
from releasekit.report.tagged import lack_words
from releasekit.report.text import seconds
from releasekit.report.verdict import there_words, verdict_of
from releasekit.report.warnings import warning_section
from releasekit.text.escape import clip, code, fence, markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.model import Report
    from releasekit.report.summary.detail import Detail
    from releasekit.report.summary.heading import Alert
    from releasekit.report.summary.trouble import Cause


def summary(report: Report, *, limit_bytes: int = LIMIT_BYTES) -> str:
    """Markdown; it leaves out whole sections rather than exceed the limit."""
    causes, pictures = causes_of(report), _pictures(report)
    texts = (_summary(report, causes, pictures, detail) for detail in DETAILS)
    return first_fitting(texts, limit_bytes)


def _summary(
    report: Report, causes: Sequence[Cause], pictures: Sequence[str], detail: Detail
) -> str:
    sign, alert, sentences = _ending(report)
    counts = Counter(result.outcome for result in report.results)
    lines = [
        *title(sign, report.project, there_words(report)),
        *alert_box(alert, sentences),
        *counted([(mark, counts[outcome]) for outcome, mark in OUTCOMES.items()]),
        *_facts(report),
        *approval_section(report, detail),
        *trouble_section(causes, detail),
        *lack_section(report.results, rows=detail.rows, chars=detail.chars),
        *warning_section(warned(report), detail.rows),
        *(pictures if detail.pictures else []),
        *spent_section(report.spent),
        *done_section(report, detail),
        *files_section(report, detail),
        *private_section(report.private, detail.rows),
    ]
    if signed := signed_summary(report):
        lines += [*signed, ""]
    if report.builds:
        lines += [f"builds: {markdown(clip(report.builds, 300))}"]
    return "\n".join(lines).rstrip() + "\n"


def _ending(report: Report) -> tuple[str, Alert, list[str]]:
    """The sign and the colour of it, and what to do next."""
    again = "Then run it again to finish: published packages are left alone, and only what is "
    again += "missing is uploaded."
    match verdict_of(report):
        case "success" if report.dry_run:
            return (
                "✅",
                "TIP",
                ["Nothing stands in the way. This was a dry run: no upload was made."],
            )
        case "success":
            return "✅", "TIP", ["Every package is on its registry."]
        case "noop":
            return "✅", "NOTE", ["Nothing was uploaded."]
        case "staged":
            behind = any(result.outcome is Outcome.BLOCKED for result in report.results)
            then = (
                ", then run it again: it publishes what needs that." if behind else "; that is all."
            )
            return "⏳", "IMPORTANT", [f"**Approve what is staged**{then}"]
        case "cancelled":
            return "⚠️", "WARNING", ["**The run was cancelled.**", again]
        case "partial" | "failure":
            return "❌", "CAUTION", [f"**{_what_failed(report)}**", _how_to_finish(report, again)]


def _how_to_finish(report: Report, again: str) -> str:
    if report.dry_run:
        return "Fix what is named below first. This was a dry run: no upload was made."
    return f"Fix what is named below first. {again}"


def _what_failed(report: Report) -> str:
    counts = Counter(result.outcome for result in report.results)
    told = (Outcome.FAILED, Outcome.UNKNOWN, Outcome.BLOCKED, Outcome.CANCELLED, Outcome.REMOVED)
    words = [f"{counts[each]} {OUTCOMES[each].word}" for each in told if counts[each]]
    return f"{', '.join([*words, *lack_words(report.results)])}."


def _facts(report: Report) -> list[str]:
    others = [
        f"took {seconds(report.duration_s)}",
        f"run {code(clip(report.run_id, 100))}",
    ]
    return facts(report.commit, report.repository, report.run_url, others)


def _pictures(report: Report) -> list[str]:
    lines = graph_section(
        "Dependency graph",
        {
            result.package.id: (f"{result.package}: {result.outcome}", OUTCOMES[result.outcome])
            for result in report.results
        },
        report.edges,
        list(OUTCOMES.values()),
    )
    if bars := gantt(report):
        lines += ["### Timeline", "", fence(bars.splitlines(), "mermaid"), ""]
    return lines
