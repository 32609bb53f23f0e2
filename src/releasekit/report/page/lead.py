"""What the page begins and ends with: the headline, what to do first, where the time went."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from releasekit.model import Outcome
from releasekit.report.page.markup import MARKS, listed, log, outcome, section
from releasekit.report.spent_words import totals
from releasekit.report.text import by_reason, few, packages, seconds
from releasekit.report.verdict import headline, verdict_of
from releasekit.report.warnings import grouped
from releasekit.text.escape import clip, html, html_link

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from releasekit.model import PackageId, Report, Result

_MOST_CARDS: Final = 12
_MOST_NAMED: Final = 8
_FEW_STEPS: Final = 15
_MOST_STEPS: Final = 60
_MOST_CHARS: Final = 2_000
_LEAST_S: Final = 0.05
_ROOTS: Final = frozenset({Outcome.FAILED, Outcome.UNKNOWN, Outcome.STAGED})


def head(report: Report) -> str:
    """What it is, in one sentence and one bar; where it is from."""
    verdict = verdict_of(report)
    theme = '<button type="button" id="theme" hidden data-scripted>Theme: system</button>'
    return (
        f'<header class="top {verdict}">\n<div class="title"><p class="project">'
        f"{_project(report)}</p>{theme}</div>\n"
        f"<h1>{html(headline(report))}</h1>\n{_bar(report)}\n{listed(_facts(report))}\n</header>"
    )


def _project(report: Report) -> str:
    return html_link(clip(report.project, 200), report.repository) if report.project else "Release"


def _facts(report: Report) -> list[tuple[str, str]]:
    commit = report.commit.partition("+")[0]
    tree = f"{report.repository}/commit/{commit}" if report.repository and commit else ""
    registries = ", ".join(
        f"{html(clip(name, 40))}: {html_link(clip(url, 200), url)}"
        for name, url in sorted(report.registries.items())
    )
    return [
        ("Result", html(verdict_of(report))),
        ("Commit", html_link(clip(report.commit, 80), tree)),
        ("Run", html_link("workflow run", report.run_url) if report.run_url else ""),
        ("Began", f"<time>{html(clip(report.started_at, 40))}</time>"),
        ("Took", seconds(report.duration_s)),
        ("Builds", html(clip(report.builds, 200))),
        ("Registries", registries),
    ]


def _bar(report: Report) -> str:
    """Widths are attributes, since the page allows no style but its own."""
    counts = Counter(result.outcome for result in report.results)
    total, at, parts, legend = len(report.results), 0.0, [], []
    for kind in MARKS:
        if count := counts[kind]:
            width = 100 * count / total
            parts.append(f'<rect class="{kind}" x="{at:.3f}%" width="{width:.3f}%" height="100%"/>')
            legend.append(f"<li>{outcome(kind)} <b>{count}</b></li>")
            at += width
    if not parts:
        return ""
    return (
        f'<svg class="bar" aria-hidden="true" focusable="false">{"".join(parts)}</svg>\n'
        f'<ul class="counts">{"".join(legend)}</ul>'
    )


def first_to_do(report: Report) -> str:
    """A card for each thing to do, with what it is about; what only waits is counted there."""
    told = _causes(report.results)
    if not told:
        return ""
    waiting = _waiting(report, [result for _, about in told[:_MOST_CARDS] for result in about])
    cards = [_card(hint, about, waiting) for hint, about in told[:_MOST_CARDS]]
    if len(told) > _MOST_CARDS:
        cards.append(f"<p>{len(told) - _MOST_CARDS} more stand in the table below.</p>")
    failed = any(result.outcome is Outcome.FAILED for _, about in told for result in about)
    title = "What failed, and what to do first" if failed else "What to do first"
    return section(title, "first", cards)


def _causes(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    """By what to do about them, the worst first; what is blocked is told by what blocks it."""
    found: dict[tuple[int, str], list[Result]] = {}
    order = list(MARKS)
    rooted = any(result.outcome in _ROOTS for result in results)
    for result in results:
        silent = not result.hint and result.outcome not in {Outcome.FAILED, Outcome.UNKNOWN}
        silent |= result.outcome is Outcome.BLOCKED and rooted
        if not silent:
            found.setdefault((order.index(result.outcome), result.hint), []).append(result)
    return [(hint, found[rank, hint]) for rank, hint in sorted(found, key=lambda each: each[0])]


def _waiting(report: Report, roots: Iterable[Result]) -> dict[PackageId, int]:
    """How many are blocked behind each of `roots`, through others too."""
    blocked = {r.package.id for r in report.results if r.outcome is Outcome.BLOCKED}
    behind: dict[PackageId, list[PackageId]] = {}
    for package in blocked:
        for on in report.edges.get(package, ()):
            behind.setdefault(on, []).append(package)
    return {root.package.id: len(_reached(root.package.id, behind)) for root in roots}


def _reached(start: PackageId, behind: Mapping[PackageId, list[PackageId]]) -> set[PackageId]:
    seen: set[PackageId] = set()
    ahead = [start]
    while ahead:
        new = [each for each in behind.get(ahead.pop(), ()) if each not in seen]
        seen.update(new)
        ahead += new
    return seen


def _card(hint: str, about: list[Result], waiting: Mapping[PackageId, int]) -> str:
    kind = about[0].outcome
    advice = f'<p class="advice">{html(clip(hint, _MOST_CHARS))}</p>' if hint else ""
    rows = [_cause(result, waiting[result.package.id]) for result in about[:_MOST_NAMED]]
    more = len(about) - _MOST_NAMED
    rest = f"<li>and {more} more with the same to do</li>" if more > 0 else ""
    return f'<div class="card {kind}">{advice}<ul>{"".join(rows)}{rest}</ul></div>'


def _cause(result: Result, waiting: int) -> str:
    name = html(clip(str(result.package), 200))
    wait = f' <span class="note">{packages(waiting)} blocked by it</span>' if waiting else ""
    tail = log(result.log[-12:], f"The last lines of the log of {clip(str(result.package), 200)}")
    return (
        f"<li>{outcome(result.outcome)} <b>{name}</b>{wait}"
        f"<p>{html(clip(result.reason, _MOST_CHARS))}</p>{tail}</li>"
    )


def spending(report: Report) -> str:
    """What was spent, and the chain that made the run as long as it was."""
    spent = report.spent
    if spent is None:
        return ""
    lines = [f"<p>{html(line)}</p>" for line in totals(spent.total)]
    if spent.advice:
        lines.append(f'<p class="advice">{html(clip(spent.advice, _MOST_CHARS))}.</p>')
    steps = [step for step in spent.chain if step.lasted_s >= _LEAST_S]
    if steps:
        # The longest tell where the time went; they stay in their order.
        least = sorted((step.lasted_s for step in steps), reverse=True)[:_MOST_STEPS][-1]
        shown = [step for step in steps if step.lasted_s >= least][:_MOST_STEPS]
        total, left = len(spent.chain), len(spent.chain) - len(shown)
        unfolded = " open" if len(shown) <= _FEW_STEPS else ""
        count = f"{total} step{'s' if total > 1 else ''}"  # as many as the timeline has
        lines.append(f"<details{unfolded}><summary>The critical path, {count}</summary><ol>")
        lines += [
            f"<li>{html(clip(step.package, 200))} <i>{html(step.what)}</i> "
            f"{seconds(step.lasted_s)}</li>"
            for step in shown
        ]
        rest = "1 shorter one is" if left == 1 else f"{left} shorter ones are"
        lines.append("</ol>" + (f"<p>{rest} left out.</p>" if left else ""))
        lines.append("</details>")
    return "\n".join(lines)


def warnings(report: Report) -> str:
    groups = grouped((result.package, result.warnings) for result in report.results)
    rows = [
        f"<li><b>{html(warning.name)}</b> "
        f"{html(clip(few([str(package.id) for package in about]), 500))}: "
        f"{html(clip(warning.message, _MOST_CHARS))}</li>"
        for warning, about in groups.items()
    ]
    return section("Warnings", "warnings", [f"<ul>{''.join(rows)}</ul>"]) if rows else ""


def private(report: Report) -> str:
    rows = [
        f"<li>{html(clip(reason, 500)) or 'private'}: "
        f"{html(clip(few([str(package.id) for package in about], 50), 5_000))}</li>"
        for reason, about in by_reason(report.private).items()
    ]
    return section("Never published", "private", [f"<ul>{''.join(rows)}</ul>"]) if rows else ""
