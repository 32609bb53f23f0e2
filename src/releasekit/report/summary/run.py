"""The job summary of a finished run, of a dry run, of several jobs joined, and of a run that an
error ended early. What is to be done comes first; what went well comes last, folded.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.host.forges import Pages
from releasekit.model import Outcome
from releasekit.report.marks import OUTCOMES, count_words
from releasekit.report.remarks import entry_link, lack_words, page_of, short_name, signed_summary
from releasekit.report.spent import spent_section
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
    names,
    package_cells,
    private_section,
    sparse_table,
    table,
    title,
    to_do_item,
    warning_section,
)
from releasekit.report.text import (
    count_of,
    describe_pages,
    few,
    package_url,
    packages,
    seconds,
    size,
    split_staged,
    trusted_page,
)
from releasekit.report.view import (
    View,
    name_files,
    waiting_clause,
    what_to_do,
    whole_output,
)
from releasekit.text.escape import clip, code, fence, link, markdown, prose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.host.ci import Origin
    from releasekit.model import Report, Result
    from releasekit.problems import Problem
    from releasekit.report.summary.markdown import Alert
    from releasekit.report.view import Cause


class Detail(Struct, frozen=True, kw_only=True):
    """How much a summary says: `rows` bounds each table and each list of names, `chars` each reason
    and hint, `logs` the number of build logs.
    """

    rows: int
    chars: int
    logs: int
    files: bool
    pictures: bool


# Each step leaves out what a reader misses least. The last one stays below 300 kB even when every
# character has to be escaped.
_DETAILS: Final = (
    Detail(rows=2_000, chars=1_000, logs=9, files=True, pictures=True),
    Detail(rows=2_000, chars=300, logs=9, files=False, pictures=True),
    Detail(rows=500, chars=300, logs=3, files=False, pictures=True),
    Detail(rows=100, chars=200, logs=0, files=False, pictures=False),
    Detail(rows=15, chars=200, logs=0, files=False, pictures=False),
)
_FAILURES: Final = (
    Outcome.FAILED,
    Outcome.UNKNOWN,
    Outcome.BLOCKED,
    Outcome.CANCELLED,
    Outcome.REMOVED,
)
_LOG_LINES: Final = 40
# A table of at most so many rows stands open.
_FEW: Final = 10
# Nothing of these was sent.
_NOT_TRIED: Final = frozenset({Outcome.BLOCKED, Outcome.CANCELLED})
_MAX_EARLY: Final = 2_000


def summary(report: Report, *, limit_bytes: int = LIMIT_BYTES) -> str:
    """Markdown; it leaves out whole sections rather than exceed the limit."""
    view = View(report)
    causes, pictures = view.find_causes(), _pictures(report)
    texts = (_summary(view, causes, pictures, detail) for detail in _DETAILS)
    return first_fitting(texts, limit_bytes)


def _summary(view: View, causes: Sequence[Cause], pictures: Sequence[str], detail: Detail) -> str:
    report = view.report
    sign, alert, sentences = _alert(view)
    took = [f"took {seconds(report.duration_s)}", f"run {code(clip(report.run_id, 100))}"]
    warned = ((result.package, result.warnings) for result in report.results)
    lines = [
        *title(sign, report.project, view.registry_headline),
        *alert_box(alert, sentences),
        *_approval_section(report, detail),
        *_trouble_section(report, causes, detail),
        *lack_section(view.lacks, rows=detail.rows, chars=detail.chars),
        *bar_lines([(mark, view.counts[outcome]) for outcome, mark in OUTCOMES.items()]),
        *facts(report.commit, Pages(report.forge, report.repository), report.run_url, took),
        *warning_section(warned, detail.rows),
        *(pictures if detail.pictures else []),
        *spent_section(report.spent),
        *_done_section(report, detail),
        *_files_section(report, detail),
        *private_section(report.private, detail.rows),
    ]
    if signed := signed_summary(report):
        lines += [*signed, ""]
    if report.builds:
        lines += [f"builds: {prose(clip(report.builds, 1_000))}"]
    return "\n".join(lines).rstrip() + "\n"


def _alert(view: View) -> tuple[str, Alert, list[str]]:
    """The sign and the colour of it, and what to do next."""
    dry_run = view.report.dry_run
    page, rest = trusted_page(view.report.run_url), "to finish: that uploads only what is missing."
    match view.verdict:
        case "success" if dry_run:
            fine = "Everything was built. This was a dry run: no upload was made."
            return "✅", "TIP", [fine]
        case "success":
            return "✅", "TIP", ["Every package is on its registry."]
        case "noop":
            return "✅", "NOTE", ["Nothing was uploaded."]
        case "staged":
            behind = view.counts[Outcome.BLOCKED]
            then = ", then run it again: it publishes what needs that." if behind else None
            return "⏳", "IMPORTANT", [f"**Approve what is staged**{then or '; that is all.'}"]
        case "cancelled":
            told = f"**The run was cancelled.** {link('Run it again', page)} {rest}"
            return "⚠️", "WARNING", [told]
        case "partial" | "failure":
            counts = [(view.counts[each], OUTCOMES[each].word) for each in _FAILURES]
            failed = [f"{count} {word}" for count, word in counts if count]
            failed += lack_words(view.lacks)
            again = f"Then {link('run it again', page)} {rest}"
            then = "This was a dry run: no upload was made." if dry_run else again
            told = f"**{', '.join(failed)}.** Fix what is named below. {then}"
            return "❌", "CAUTION", [told]


def _pictures(report: Report) -> list[str]:
    return graph_section(
        "Dependency graph",
        {
            result.package.id: (f"{result.package}: {result.outcome}", OUTCOMES[result.outcome])
            for result in report.results
        },
        report.edges,
        list(OUTCOMES.values()),
    )


def _approval_section(report: Report, detail: Detail) -> list[str]:
    """What waits for a person, and how that person approves all of it."""
    commanded, paged = split_staged(report.results)
    waiting = [*commanded, *paged]
    if not waiting:
        return []
    run, alone = trusted_page(report.run_url), "Alone" if commanded else "Page"
    shared = {result.reason for result in waiting}
    width = 4 if len(shared) == 1 else 5
    rows = []
    for result in waiting[: detail.rows]:
        staged, page = result.staged, package_url(result)
        row = (
            *package_cells(result.package),
            code(clip(staged.tag, 100)) if staged and staged.tag else "",
            link("review", page) if page else "",
            prose(clip(result.reason, detail.chars)),
        )
        rows.append(row[:width])
    review = [
        f"One review of all {'others' if paged else 'of them'}, as their maintainer:",
        "",
        fence([f"releasekit approve {f'--run {run}' if run else 'results.json'}"]),
        "",
    ]
    return [
        f"### {OUTCOMES[Outcome.STAGED].square} Waiting for approval",
        "",
        *([prose(clip(describe_pages(paged), detail.chars)), ""] if paged else []),
        *(review if commanded else []),
        *([prose(clip(shared.pop(), detail.chars)), ""] if width == 4 else []),
        *table(("Package", "Version", "Tag", alone, "Why")[:width], rows),
        "",
        *more_lines(len(waiting) - detail.rows),
    ]


def _trouble_section(report: Report, causes: Sequence[Cause], detail: Detail) -> list[str]:
    """What did not go as it should, and what to do about it: one item for each cause, however many
    packages it is about.
    """
    if not causes:
        return []
    failed = any(cause.first.outcome in {Outcome.FAILED, Outcome.UNKNOWN} for cause in causes)
    every = [result for cause in causes for result in cause.results]
    return [
        "### What went wrong, and what to do" if failed else "### What is left to do",
        "",
        *(_cause_item(cause, detail) for cause in causes[: detail.rows]),
        "",
        *more_lines(len(causes) - detail.rows),
        *(
            line
            for number, result in enumerate(
                [result for result in every if result.log][: detail.logs]
            )
            for line in details(
                f"Last lines of the build of {package_cells(result.package)[0]}",
                [
                    fence(clip(line, 500) for line in result.log[-_LOG_LINES:]),
                    *filter(None, [markdown(clip(whole_output(result, report), detail.chars))]),
                ],
                open_=number == 0,  # the reader came to see this one
            )
        ),
    ]


def _cause_item(cause: Cause, detail: Detail) -> str:
    first, count = cause.first, len(cause.results)
    more = names([result.package for result in cause.results], detail.rows) if count > 1 else ""
    one = " ".join(package_cells(first.package, package_url(first)))
    which = f"**{packages(count)}**" if more else one
    what = f"{OUTCOMES[first.outcome].square}&nbsp;**{first.outcome}**: {which}"
    page = f"[{first.problem}]({first.problem.url})" if first.problem else ""
    if cause.roots:
        # What to do about it is to be done about these.
        roots = few([code(clip(str(root), 100)) for root in cause.roots], 3)
        verb = "wait" if more else "waits"
        return to_do_item(f"{what} {verb} for {roots} {page}".strip(), "", "", more=more)
    if cause.behind and not more:
        what += f", **{waiting_clause(cause.behind)}**"
    advice = f"{prose(clip(what_to_do(first), detail.chars))} {page}".strip()
    return to_do_item(what, prose(clip(first.reason, detail.chars)), advice, more=more)


def _done_section(report: Report, detail: Detail) -> list[str]:
    """What went well, by ecosystem; what a dry run would publish is among it."""
    fine = [
        result
        for result in report.results
        if not result.hint and (result.outcome.done or result.outcome is Outcome.WOULD_PUBLISH)
    ]
    is_short = len(fine) <= _FEW
    groups: dict[str, list[Result]] = {}
    for result in fine[: detail.rows]:
        groups.setdefault("" if is_short else result.package.id.ecosystem, []).append(result)
    lines: list[str] = []
    for ecosystem, results in sorted(groups.items()):
        counts = Counter(result.outcome for result in results)
        words = count_words([(mark, counts[outcome]) for outcome, mark in OUTCOMES.items()])
        named = f"<b>{markdown(clip(ecosystem, 100))}</b>: " if ecosystem else ""
        lines += details(f"{named}{words}", _done_table(results, detail), open_=is_short)
    return [*lines, *more_lines(len(fine) - detail.rows)]


def _done_table(results: Sequence[Result], detail: Detail) -> list[str]:
    """With reasons where they differ: a dry run may have built one package and not another."""
    reasons = {(result.outcome, result.reason) for result in results}
    with_reason = len(reasons) > len({result.outcome for result in results})
    rows = []
    for result in results:
        attempts = f", {result.attempts} attempts" if result.attempts > 1 else ""
        rows.append(
            (
                *package_cells(result.package, package_url(result)),
                f"{OUTCOMES[result.outcome].square} {result.outcome}{attempts}",
                seconds(result.duration_s) if result.spans or result.duration_s else "",
                link(short_name(result.tag), page_of(result.tag)),
                link(short_name(result.announcement), page_of(result.announcement)),
                prose(clip(result.reason, detail.chars)) if with_reason else "",
            )
        )
    heading = ("Package", "Version", "Outcome", "Time", "Tag", "Release", "Why")
    return sparse_table(heading, rows, always=4)


def _files_section(report: Report, detail: Detail) -> list[str]:
    named = name_files(
        [
            result
            for result in report.results
            if result.outcome is Outcome.WOULD_PUBLISH
            or (not report.dry_run and result.outcome not in _NOT_TRIED)
        ]
    )
    files = [file for _, file in named]
    if not files or not detail.files:
        return []
    signed = any(file.attestation for file in files)
    heading = ("File", "Bytes", "SHA-256", *(["Signed"] if signed else []))
    rows = [
        (
            code(clip(name, 200)),
            str(file.size),
            code(file.sha256[:64]),
            *([link(*entry_link(file))] if signed else []),
        )
        for name, file in named[: detail.rows]
    ]
    more = ["", *more_lines(len(files) - detail.rows)[:1]] if len(files) > detail.rows else []
    count = count_of(len(files), "file", "files")
    told = "which would be uploaded" if report.dry_run else "with digests"
    words = f"<b>{count}</b>, {size(sum(file.size for file in files))}, {told}"
    return details(words, [*table(heading, rows), *more])


def early_summary(
    errors: Sequence[tuple[str, str]], problem: Problem, origin: Origin, *, published: bool
) -> str:
    """Of a run that an error ended before it had anything else to show. `errors` are messages, each
    with what to do about it. `published` says whether something may be on a registry by now.
    """
    ended = "The run ended with an error." if published else "Nothing was published."
    hints = dict.fromkeys(prose(clip(hint, _MAX_EARLY)) for _, hint in errors if hint)
    messages = (prose(clip(message, _MAX_EARLY)) for message, _ in errors)
    lines = [
        *title("❌", origin.project, "the run ended early"),
        *alert_box("CAUTION", [f"**{ended}**", *messages]),
        *(line for hint in hints for line in (f"**What to do**: {hint}", "")),
        f"More about it: [{problem}]({problem.url})",
        "",
        *facts("", origin.pages, origin.run_url, []),
    ]
    return "\n".join(lines).rstrip() + "\n"
