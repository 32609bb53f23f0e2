from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from markdown_it import MarkdownIt

from releasekit.model import Outcome, Span
from releasekit.report import results_table, summary
from releasekit.report.timeline import timeline
from sample_runs import (
    artifact,
    hostile_text,
    outcomes,
    package,
    partial_report,
    report,
    result,
    staged_report,
)

if TYPE_CHECKING:
    from releasekit.model import Report

MARKDOWN = MarkdownIt("commonmark").enable("table")


def shape(text: str) -> list[tuple[str, ...]]:
    """What a renderer makes of a summary, without the words."""
    found: list[tuple[str, ...]] = []
    for token in MARKDOWN.parse(text):
        tags = re.findall(r"<[^>]*>", token.content) if token.type != "fence" else []
        children = [child.type for child in token.children or [] if child.type != "text"]
        found.append((token.type, token.tag, token.info, *tags, *children))
    return found


def test_summary_begins_with_the_truth() -> None:
    text = summary(partial_report())
    assert text.startswith("## 2 of 5 packages published, 1 already there, 1 failed, 1 blocked\n")


def test_summary_shows_failures_first_with_what_to_do() -> None:
    text = summary(partial_report())
    failed, blocked, published = (
        text.index(f"<code>pypi:{name}</code> | <code>1.0.0</code> | ")
        for name in ("broken", "app", "core")
    )
    assert failed < blocked < published
    assert "**failed** | the build failed | Read the log. |" in text


def test_summary_shows_the_last_lines_of_a_failed_build() -> None:
    text = summary(partial_report())
    assert "Last lines of <code>pypi:broken</code>" in text
    assert "```\nTraceback:\nSyntaxError: invalid syntax\n```" in text


def test_summary_links_published_packages() -> None:
    assert '<a href="https://pypi.org/project/core/1.0.0/">published</a>' in summary(
        partial_report()
    )


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
        (partial_report(), "Fix what is named below first. Then run it again to finish"),
        (outcomes(Outcome.CANCELLED), "The run was cancelled. Then run it again to finish"),
        (outcomes(Outcome.STAGED), "Approve what is staged; that is all."),
        (staged_report(), "Approve what is staged, then run it again: it publishes what needs"),
    ],
)
def test_summary_of_an_unfinished_release_says_how_to_finish(run: Report, words: str) -> None:
    assert words in summary(run)


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
    waits, _, told = text.partition("| What to do |")
    assert waits.count("http") > 0
    assert "needs pypi:http, which is staged" in told
    assert "releasekit approve results.json" in summary(staged_report())
    assert "approval" not in summary(replace(partial_report(), run_url=run))


def test_summary_without_commit_or_edges_is_plain() -> None:
    text = summary(report(result("core"), commit=""))
    assert "commit" not in text
    assert "mermaid" not in text


def test_graphs_too_large_to_draw_become_a_table() -> None:
    """R40"""
    names = [f"p{n}" for n in range(300)]
    run = report(*map(result, names), edges=dict.fromkeys(names[1:], ("p0",)))
    text = summary(run)
    assert "mermaid" not in text
    assert "| <code>pypi:p1</code> | <code>pypi:p0</code> |" in text


def told(word: str, line: str) -> Report:
    return report(
        result(
            word,
            Outcome.FAILED,
            version=word,
            reason=word,
            hint=word,
            log=(line, line),
            spans=(Span(phase="build", start_s=0, end_s=1),),
        ),
        result(f"{word}2", version=word, reason=word),
        edges={f"{word}2": (word,)},
        private=(package(f"{word}3", word, unpublishable=word),),
        run_id=word,
        commit=word,
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
                reason=text,
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
    assert told.count("<details>") == told.count("</details>")
    assert {line.count("|") for line in told.splitlines() if line.startswith("| ")} <= {3, 4, 6}
    assert told.splitlines()[-1].startswith("Took 12 s, run <code>")


def test_summary_says_how_much_it_leaves_out() -> None:
    told = summary(enormous("word " * 60, 3_000), limit_bytes=100_000)
    assert "… and 1485 more, in the results file." in told


def test_the_shortest_summary_is_given_where_none_fits() -> None:
    assert summary(partial_report(), limit_bytes=10).startswith("## 2 of 5 packages published")


def test_results_table_ends_with_what_needs_attention() -> None:
    lines = results_table(partial_report()).splitlines()
    assert [line.split()[0] for line in lines[:6]] == [
        "package",
        "pypi:extras",
        "pypi:core",
        "pypi:http",
        "pypi:app",
        "pypi:broken",
    ]
    assert lines[-3] == "pypi:broken: Read the log."
    assert lines[-1] == "2 of 5 packages published, 1 already there, 1 failed, 1 blocked"


def test_files_are_listed_with_their_digests() -> None:
    row = f"| <code>core-1.0.0.tar.gz</code> | 1234 | <code>{'ab' * 32}</code> |"
    assert row in summary(partial_report())


def test_a_dry_run_lists_the_files_it_would_upload() -> None:
    built = result("core", Outcome.WOULD_PUBLISH, artifacts=(artifact("core-1.0.0.tar.gz"),))
    kept = result("http", Outcome.ALREADY_PUBLISHED, artifacts=(artifact("http-1.0.0.tar.gz"),))
    lines = results_table(report(built, kept, dry_run=True)).splitlines()
    assert lines[-4:-1] == [
        "would be uploaded:",
        f"core-1.0.0.tar.gz  1234 bytes  sha256:{'ab' * 32}",
        "",
    ]
    assert "would be uploaded" not in results_table(report(built, kept))


def test_results_table_of_nothing_is_its_headline() -> None:
    assert results_table(outcomes()) == "No package to publish"


def test_timeline_has_a_bar_for_each_package_that_ran() -> None:
    lines = timeline(partial_report())
    assert lines[0] == f"pypi:core  |{'=' * 5}{'#' * 11}{'.' * 3}{' ' * 41}|  4.0 s"
    assert lines[1] == f"pypi:http  |{' ' * 5}={' ' * 54}|  0.0 s"
    assert lines[-1] == "= build   # upload   . confirm   whole width: 12 s"


def test_timeline_keeps_the_longest_where_there_are_too_many() -> None:
    """R40"""
    runs = [
        result(f"p{n}", spans=(Span(phase="upload", start_s=0, end_s=n / 10),)) for n in range(99)
    ]
    lines = timeline(report(*runs))
    assert len(lines) == 62
    assert any("pypi:p98 " in line for line in lines)
    assert not any("pypi:p1 " in line for line in lines)


def test_timeline_of_an_instant_is_drawn() -> None:
    run = report(result("core", spans=(Span(phase="build", start_s=0, end_s=0),)))
    assert timeline(replace(run, duration_s=0.0))[0].startswith("pypi:core  |=")
