from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from markdown_it import MarkdownIt

from approvals import on_page, recorded
from releasekit.announced import Status
from releasekit.fields import replace
from releasekit.model import Outcome, Span
from releasekit.report import summary
from sample_runs import (
    hostile_followed,
    hostile_text,
    outcomes,
    package,
    partial_report,
    report,
    result,
    signed,
    staged_report,
    statement,
)

if TYPE_CHECKING:
    from releasekit.model import Report, Result

MARKDOWN = MarkdownIt("commonmark").enable("table")


def shape(text: str) -> list[tuple[str, ...]]:
    """What a renderer makes of a summary, without the words."""
    found: list[tuple[str, ...]] = []
    for token in MARKDOWN.parse(text):
        tags = re.findall(r"<(?!/?code>)[^>]*>", token.content) if token.type != "fence" else []
        # What stands in backticks becomes code, whoever wrote it.
        children = [
            child.type
            for child in token.children or []
            if child.type != "text" and child.content not in {"<code>", "</code>"}
        ]
        found.append((token.type, token.tag, token.info, *tags, *children))
    return found


def test_summary_begins_with_the_truth_in_the_colour_of_it() -> None:
    """R47"""
    lines = summary(replace(partial_report(), project="acme/widgets")).splitlines()
    heading = "## ❌ acme/widgets: 3 of 5 packages are on their registries"
    assert lines[:3] == [heading, "", "> [!CAUTION]"]
    assert lines[3].startswith(
        "> **1 failed, 1 blocked.** Fix what is named below. Then run it again"
    )
    # What to do is on the first screen of a phone; tables and pictures have time.
    assert lines[5] == "### What went wrong, and what to do"
    bar = lines.index("🟩🟩⬜🟥🟧")
    legend = "🟩 **2** published · ⬜ **1** already there · 🟥 **1** failed · 🟧 **1** blocked"
    assert lines[bar + 2] == legend
    assert not [line for line in lines[:bar] if line.startswith("|")]


@pytest.mark.parametrize(
    ("run", "sign", "alert"),
    [
        (outcomes(Outcome.PUBLISHED), "✅", "TIP"),
        (outcomes(Outcome.WOULD_PUBLISH, dry_run=True), "✅", "TIP"),
        (outcomes(Outcome.ALREADY_PUBLISHED), "✅", "NOTE"),
        (outcomes(), "✅", "NOTE"),
        (outcomes(Outcome.STAGED), "⏳", "IMPORTANT"),
        (outcomes(Outcome.CANCELLED), "⚠️", "WARNING"),
        (outcomes(Outcome.PUBLISHED, Outcome.UNKNOWN), "❌", "CAUTION"),
        (outcomes(Outcome.FAILED), "❌", "CAUTION"),
        (outcomes(Outcome.FAILED, dry_run=True), "❌", "CAUTION"),
    ],
)
def test_each_ending_has_a_colour_of_its_own(run: Report, sign: str, alert: str) -> None:
    text = summary(run)
    assert text.startswith(f"## {sign} ")
    assert text.count("> [!") == text.count(f"> [!{alert}]\n> ") == 1


def test_a_summary_without_a_project_is_headed_by_the_truth_alone() -> None:
    assert summary(partial_report()).startswith("## ❌ 3 of 5 packages are on their registries\n")


def test_summary_leads_to_the_run_the_commit_and_every_page() -> None:
    repository = "https://github.com/acme/widgets"
    commit = "5d41402abc4b2a76b9719d911017c592ae1f3c07"
    run = replace(
        partial_report(),
        repository=repository,
        run_url=f"{repository}/actions/runs/17",
        commit=commit,
    )
    text = summary(run)
    assert f'<a href="{link_text(run.run_url)}">workflow run</a>' in text
    page = link_text(f"{repository}/commit/{commit}")
    assert f'commit <a href="{page}"><code>5d41402abc</code></a> · took 12 s' in text
    dirty = summary(replace(run, commit=f"{commit}+dirty.0123"))
    assert f'<a href="{page}"><code>5d41402abc+dirty</code></a>' in dirty
    assert "commit <code>c0ffee</code>" in summary(partial_report())


def link_text(url: str) -> str:
    return url.replace("_", "&#95;")


def test_summary_shows_failures_first_with_what_to_do() -> None:
    """R47"""
    text = summary(partial_report())
    failed, blocked, published = (
        text.index(f"<code>pypi:{name}</code>{after}")
        for name, after in (("broken", " "), ("app", " "), ("core", "</a>"))
    )
    assert failed < blocked < text.index("```mermaid") < published
    failed_item, blocked_item = trouble(partial_report())
    assert failed_item == (
        "- 🟥&nbsp;**failed**: <code>pypi:broken</code> <code>1.0.0</code>, **1 package waits for "
        "it**<br>the build failed<br>**What to do**: Read the log."
    )
    assert blocked_item == (
        "- 🟧&nbsp;**blocked**: <code>pypi:app</code> <code>1.0.0</code> waits for "
        "<code>pypi:broken</code>"
    )


def test_what_most_packages_wait_for_comes_first() -> None:
    run = report(
        result("a", Outcome.FAILED, reason="one"),
        result("b", Outcome.FAILED, reason="two"),
        result("c", Outcome.BLOCKED),
        edges={"c": ("b",)},
    )
    text = summary(run)
    assert text.index("pypi:b</code> ") < text.index("pypi:a</code> ")


def test_packages_with_one_cause_share_a_row() -> None:
    """R47: whatever their names are, and however many there are."""
    names = [f"p{number}" for number in range(9)]
    failed = (
        result(
            name,
            Outcome.FAILED,
            reason=f"pypi:{name} 1.0.0: POST https://x.example/: HTTP 400",
            hint=f"The whole output is in logs/build-pypi-{name}.log",
        )
        for name in names
    )
    other = result("p9", Outcome.FAILED, reason="pypi:p9 1.0.0: POST https://x.example/: HTTP 403")
    rows = trouble(report(*failed, other))
    assert len(rows) == 2
    assert rows[0].startswith("- 🟥&nbsp;**failed**: **9 packages**<br>")
    assert "<br><code>pypi:p0</code>, <code>pypi:p1</code>, <code>pypi:p2</code>" in rows[0]
    assert "<details><summary>and 6 more</summary><code>pypi:p3</code>, " in rows[0]
    assert "<code>pypi:p8</code></details>" in rows[0]


def test_what_is_blocked_by_one_failure_is_one_row() -> None:
    """However many that are blocked lie in between; who waits for two is a row of its own."""
    names = [f"p{number}" for number in range(200)]
    edges = {name: (before,) for before, name in zip(["root", *names], names, strict=False)}
    run = report(
        result("root", Outcome.FAILED),
        result("other", Outcome.FAILED, reason="another"),
        *(result(name, Outcome.BLOCKED, hint="Fix what it needs.") for name in names),
        result("both", Outcome.BLOCKED, hint="Fix what it needs."),
        edges={**edges, "both": ("p199", "other")},
    )
    rows = trouble(run)
    assert len(rows) == 4
    assert "**201 packages wait for it**<br>" in rows[0]
    assert "**200 packages** wait for <code>pypi:root</code><br>" in rows[2]
    assert "waits for <code>pypi:other</code>, <code>pypi:root</code>" in rows[3]
    text = summary(run)
    assert all(f"<code>pypi:{name}</code>" in text for name in names)


@pytest.mark.parametrize(
    "outcome", [Outcome.FAILED, Outcome.UNKNOWN, Outcome.BLOCKED, Outcome.CANCELLED]
)
def test_there_is_always_something_to_do(outcome: Outcome) -> None:
    """R47: nobody had a hint for it."""
    (row,) = trouble(outcomes(outcome))
    assert row.partition("<br>**What to do**: ")[2]


def test_a_failed_build_without_a_hint_of_its_own_leads_to_its_log() -> None:
    general = "Fix what the end of its log says, then run the same command again"
    log = ("error: no such file",)
    path = "logs/20261122T120000Z-1f2e3d4c/build-pypi-core.log"
    hint = f"Fix it. The whole output is in /home/runner/work/{path}. Or turn it off."
    (bare,) = trouble(report(result(outcome=Outcome.FAILED, log=log)))
    assert general in bare
    kept = report(result(outcome=Outcome.FAILED, log=log, hint=hint))
    assert trouble(kept)[0].endswith("**What to do**: Fix it. Or turn it off.")
    assert f"The whole output is in /home/runner/work/{path}.\n" in summary(kept)
    # The runner is gone when somebody reads it.
    gone = summary(replace(kept, run_url="https://github.com/acme/widgets/actions/runs/17"))
    assert "/home/runner" not in gone
    assert f"The whole output is in {path} of the state directory, if the workflow keeps" in gone
    (known,) = trouble(report(result(outcome=Outcome.FAILED, log=log, hint="Install cargo.")))
    assert known.endswith("**What to do**: Install cargo.")


def test_results_say_what_builds_were_kept_from_in_the_last_line() -> None:
    run = replace(partial_report(), builds="sandboxed (Landlock 7)")
    assert unescape(summary(run).splitlines()[-1]) == "builds: sandboxed (Landlock 7)"


def trouble(run: Report) -> list[str]:
    return [line for line in summary(run).splitlines() if "&nbsp;**" in line]


def test_summary_shows_the_last_lines_of_a_failed_build() -> None:
    text = summary(partial_report())
    assert "<details open>\n<summary>Last lines of the build of <code>pypi:broken</code>" in text
    assert "```\nTraceback:\nSyntaxError: invalid syntax\n```" in text


def test_summary_links_published_packages() -> None:
    page = '<a href="https://pypi.org/project/core/1.0.0/">'
    cells = f"{page}<code>pypi:core</code></a> | {page}<code>1.0.0</code></a>"
    assert f"| {cells} | 🟩 published | 1.5 s |" in summary(partial_report())


def test_what_went_well_is_folded_by_ecosystem() -> None:
    """Only a handful stands open."""
    few = summary(outcomes(*[Outcome.PUBLISHED] * 10))
    assert "<details open>\n<summary>🟩 10 published</summary>" in few
    many = summary(outcomes(*[Outcome.PUBLISHED] * 11, Outcome.ALREADY_PUBLISHED))
    title = "<summary><b>pypi</b>: 🟩 11 published, ⬜ 1 already there</summary>"
    assert f"<details>\n{title}" in many
    assert "<details open>" not in many


def test_another_attempt_is_told() -> None:
    assert "| 🟩 published, 3 attempts |" in summary(report(replace(result(), attempts=3)))


def test_summary_colours_the_graph_by_outcome() -> None:
    text = summary(partial_report())
    assert 'n0["pypi:core 1.0.0: published"]:::done' in text
    assert 'n3["pypi:broken 1.0.0: failed"]:::failed' in text
    assert 'n4["pypi:app 1.0.0: blocked"]:::blocked' in text
    assert "    n3 --> n4\n" in text


def test_summary_names_private_packages_and_why() -> None:
    text = summary(partial_report())
    assert "<summary>1 package never published</summary>" in text
    assert "marked Private :: Do Not Upload" in text


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (partial_report(), "Fix what is named below. Then run it again to finish"),
        (outcomes(Outcome.CANCELLED), "The run was cancelled. Run it again to finish"),
        (outcomes(Outcome.STAGED), "Approve what is staged; that is all."),
        (staged_report(), "Approve what is staged, then run it again: it publishes what needs"),
    ],
)
def test_summary_of_an_unfinished_release_says_how_to_finish(run: Report, words: str) -> None:
    assert words in summary(run).replace("**", "").replace("\n>\n> ", " ")


@pytest.mark.parametrize(
    "run",
    [outcomes(), outcomes(Outcome.PUBLISHED), outcomes(Outcome.WOULD_PUBLISH, dry_run=True)],
)
def test_summary_of_a_finished_run_asks_for_nothing(run: Report) -> None:
    assert "run it again" not in summary(run)


def test_what_waits_is_reviewed_by_one_command() -> None:
    run = "https://github.com/acme/widgets/actions/runs/17"
    text = summary(replace(staged_report(), run_url=run))
    assert f"```\nreleasekit approve --run {run}\n```" in text
    assert '<a href="https://registry.example/staged/5f0c">review</a>' in text
    waits, _, told = text.partition("### What is left to do")
    assert waits.count("review</a>") == 1
    assert "waits for <code>pypi:http</code>" in told
    assert "releasekit approve results.json" in summary(staged_report())
    assert "approval" not in summary(replace(partial_report(), run_url=run))


def test_what_waits_on_a_page_is_not_reviewed_by_the_command() -> None:
    page = "https://central.sonatype.com/publishing/deployments"
    alone = summary(report(on_page()))
    assert f"Press Publish or Drop at {page} for maven:com.acme:core" in unescape(alone)
    assert f'<a href="{page}">review</a>' in alone
    assert "| Package | Version | Tag | Page |" in alone
    assert "releasekit approve" not in alone
    mixed = summary(report(on_page(), recorded("web")))
    assert "for maven:com.acme:core\n" in unescape(mixed)
    assert "One review of all others, as their maintainer:\n\n```\nreleasekit approve" in mixed


def test_summary_without_commit_or_edges_is_plain() -> None:
    text = summary(report(result("core"), commit=""))
    assert "commit" not in text
    assert "mermaid" not in text


def test_a_graph_too_large_to_read_is_drawn_by_layer_and_ecosystem() -> None:
    """R40"""
    names = [f"p{n}" for n in range(300)]
    run = report(
        *(result(name, Outcome.FAILED if name == "p7" else Outcome.PUBLISHED) for name in names),
        edges=dict.fromkeys(names[1:], ("p0",)),
    )
    text = summary(run)
    assert '    g0["pypi · layer 1<br/>🟩 1"]:::done\n' in text
    assert '    g1["pypi · layer 2<br/>🟩 298 🟥 1<br/>p7"]:::failed\n' in text
    assert "    g0 --> g1\n" in text
    assert "Each box has the packages of one ecosystem in some layers" in text
    assert "Each box" not in summary(partial_report())


def told(word: str, line: str) -> Report:
    # A whole address of the log, or of GitHub, is a link; harmless text is none either.
    unlinked = f"nowhere {word}"
    run = report(
        result(
            word,
            Outcome.FAILED,
            version=word,
            reason=word,
            hint=word,
            log=(line, line),
            spans=(Span(phase="build", start_s=0, end_s=1),),
            artifacts=(signed(log=unlinked),),
        ),
        _followed(word, Status.CREATED, unlinked),
        _followed(f"{word}3", Status.PENDING, unlinked),
        edges={f"{word}2": (word,)},
        private=(package(f"{word}3", word, unpublishable=word),),
        run_id=word,
        commit=word,
    )
    return replace(run, provenance=word, statement=statement(url=unlinked, note=word))


def _followed(word: str, status: Status, url: str) -> Result:
    """Published, and what follows is made or owed."""
    about = hostile_followed(word, status)
    assert about.tag is not None
    assert about.announcement is not None
    return replace(
        result(f"{word}2", version=word, reason=word),
        tag=replace(about.tag, url=url),
        announcement=replace(about.announcement, url=url),
    )


SHAPE = shape(summary(told("word", "line")))


@given(text=hostile_text, log=hostile_text)
def test_no_text_changes_the_shape_of_a_summary(text: str, log: str) -> None:
    """R35: no column, tag, section or block more or less than with harmless text."""
    assert shape(summary(told(text, log))) == SHAPE


def enormous(text: str, count: int) -> Report:
    return report(
        *(
            result(
                f"{text}{n}",
                Outcome.FAILED if n % 2 else Outcome.PUBLISHED,
                version=text,
                reason=f"{n} {text}",
                hint=text if n % 2 else "",
                log=(text,) * 50,
                url=f"https://example.org/{n}",
            )
            for n in range(count)
        ),
        private=tuple(package(f"{text}{n}", text, unpublishable=text) for n in range(count)),
        commit=text,
        run_id=text,
    )


@pytest.mark.parametrize("text", ["word" * 20, "\ud800|" * 1_000, "`\u202e@" * 1_000])
@pytest.mark.parametrize("count", [100, 200])
def test_summary_stays_below_the_limit_and_whole(text: str, count: int) -> None:
    """R40: GitHub drops a summary over 1 MiB as a whole."""
    told = summary(enormous(text, count))
    assert len(told.encode()) <= 1_000_000
    assert told.count("<details") == told.count("</details>")
    assert {line.count("|") for line in told.splitlines() if line.startswith("| ")} <= {3, 4, 5, 6}
    assert " · took 12 s · run <code>" in told


def test_summary_says_how_much_it_leaves_out() -> None:
    told = summary(enormous("word " * 60, 3_000), limit_bytes=100_000)
    assert "… and 1485 more, in the results file." in told
    assert len(told.encode()) <= 100_000


def test_the_shortest_summary_is_given_where_none_fits() -> None:
    assert summary(partial_report(), limit_bytes=10).startswith("## ❌ 3 of 5 packages")


def test_files_are_listed_with_their_digests() -> None:
    row = f"| <code>core-1.0.0.tar.gz</code> | 1234 | <code>{'ab' * 32}</code> |"
    assert row in summary(partial_report())
