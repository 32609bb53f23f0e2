"""Tags and releases, as people read of them."""

from __future__ import annotations

import json
from html import unescape
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from releasekit.announced import Announcement, Status, Tag
from releasekit.fields import replace
from releasekit.model import Action, Outcome
from releasekit.problems import Problem
from releasekit.report import (
    headline,
    notices,
    plan_headline,
    plan_json,
    plan_summary,
    plan_table,
    results_table,
    summary,
)
from releasekit.report.page import report_page
from releasekit.report.view import View
from sample_runs import (
    RELEASES,
    ROOT,
    announcement,
    followed,
    hostile_followed,
    hostile_text,
    mixed_plan,
    outcomes,
    partial_report,
    plan,
    report,
    result,
    step,
    tag,
)

if TYPE_CHECKING:
    from releasekit.model import PlannedPackage, Result

THERE, STAGED = Outcome.ALREADY_PUBLISHED, Outcome.STAGED
MADE, OWED, FOREIGN = Status.CREATED, Status.PENDING, Status.FOREIGN
TREE = "https://github.com/acme/widgets/tree"


def six(tagged: Status = MADE, announced: Status | None = MADE) -> list[Result]:
    return [followed(f"p{n}", tagged=tagged, announced=announced) for n in range(6)]


@pytest.mark.parametrize(
    ("results", "words"),
    [
        (six(), "All 6 packages are published, 6 tagged, 6 announced"),
        (six(announced=None), "All 6 packages are published, 6 tagged"),
        (
            [*six()[:4], *(followed(f"x{n}", tagged=OWED, announced=None) for n in range(2))],
            "All 6 packages are published, 4 tagged, 4 announced, 2 tags are owed",
        ),
        (
            [followed("a", THERE), followed("b", THERE, tagged=Status.EXISTING, announced=OWED)],
            "Both packages are already published, 1 tagged, 1 announced, 1 release is owed",
        ),
        (
            [followed("a", THERE, tagged=Status.EXISTING, announced=FOREIGN)],
            "The package is already published, nothing to do",
        ),
        (
            [followed("a", THERE), result("b"), result("c", Outcome.FAILED)],
            "1 of 3 packages published, 1 already there, 1 failed, 1 tagged, 1 announced",
        ),
    ],
)
def test_the_headline_counts_what_was_made_and_what_is_owed(
    results: list[Result], words: str
) -> None:
    assert headline(report(*results)) == words


def test_a_shared_tag_that_is_owed_is_one_tag() -> None:
    shared = tag("v1.0.0", OWED, note="why")
    run = report(*(replace(result(f"p{n}"), tag=shared) for n in range(3)))
    assert headline(run) == "All 3 packages are published, 1 tag is owed"


def test_a_dry_run_says_what_it_would_make() -> None:
    wanted = Status.WANTED
    run = report(
        followed("a", Outcome.WOULD_PUBLISH, tagged=wanted, announced=wanted),
        followed("b", THERE, tagged=wanted, announced=None),
        dry_run=True,
    )
    words = "Dry run: 1 of 2 packages would be published, 1 already there, 2 to tag, 1 to announce"
    assert headline(run) == words
    assert View(run).registry_headline.endswith("would be published, 2 to tag, 1 to announce")


def test_the_log_ends_with_what_was_made_and_what_is_lacking() -> None:
    run = report(
        followed("a"),
        followed("b", tagged=FOREIGN, announced=OWED),
        followed("c", THERE, tagged=Status.EXISTING, announced=FOREIGN),
    )
    lines = results_table(run).splitlines()
    assert lines[-6:] == [
        "tagged: a-v1.0.0 (on the remote; `git fetch --tags` brings tags into a clone)",
        f"announced: {RELEASES}/a-v1.0.0",
        (
            "1 tag is foreign: b-v1.0.0: the tag is foreign. Look after the tag that is foreign. "
            f"{Problem.TAG_REFUSED.url}"
        ),
        (
            "1 release is owed: b-v1.0.0: the release is owed. Give the job `contents: write`. "
            f"{Problem.PACKAGE.url}"
        ),
        "1 release is foreign: c-v1.0.0: the release is foreign",
        headline(run),
    ]


def test_what_lacks_for_one_reason_is_one_line() -> None:
    run = report(*six(OWED, OWED))
    (line,) = (each for each in results_table(run).splitlines() if "tags are owed:" in each)
    assert line.startswith("6 tags are owed: p0-v1.0.0, p1-v1.0.0, p2-v1.0.0 and 3 more: the tag")


@pytest.mark.parametrize(
    ("about", "what"),
    [
        (tag(status=OWED, note="why"), "Run the same command again: it makes what is missing"),
        (tag(status=FOREIGN, note="why"), "Nothing is ever moved. If the tag is wrong, delete"),
    ],
)
def test_there_is_something_to_do_about_everything(about: Tag, what: str) -> None:
    told = results_table(report(replace(result(), tag=about)))
    assert f"why. {what}" in told


def test_annotations_are_errors_for_what_is_wrong() -> None:
    run = report(
        followed("a", tagged=OWED, announced=OWED),
        followed("b", tagged=FOREIGN, announced=FOREIGN),
    )
    found = [(level, title) for level, notes in notices(run) for title, _ in notes]
    assert found == [
        ("error", "1 tag is foreign: b-v1.0.0 [RK-130]"),
        ("error", "1 tag is owed: a-v1.0.0 [RK-130]"),
        ("error", "1 release is owed: a-v1.0.0 [RK-100]"),
        ("notice", "1 release is foreign: b-v1.0.0"),
    ]
    texts = [text for _, notes in notices(run) for _, text in notes]
    assert texts[2] == (
        f"the release is owed\nGive the job `contents: write`.\n{Problem.PACKAGE.url}"
    )


def test_the_summary_leads_to_tags_and_releases() -> None:
    text = unescape(summary(report(followed("a"), followed("b", THERE, tagged=Status.EXISTING))))
    assert "| Package | Version | Outcome | Time | Tag | Release |" in text
    assert f'<a href="{TREE}/a-v1.0.0">a-v1.0.0</a>' in text
    assert f'<a href="{TREE}/b-v1.0.0">b-v1.0.0 (there)</a>' in text
    assert f'<a href="{RELEASES}/a-v1.0.0">a-v1.0.0</a>' in text
    assert "What is not tagged" not in text


def test_the_summary_says_what_to_do_before_what_went_well() -> None:
    run = report(followed("a"), followed("b", tagged=FOREIGN, announced=OWED))
    lines = unescape(summary(run)).splitlines()
    assert lines[2] == "> [!CAUTION]"
    assert lines[3].startswith(
        "> **1 tag is foreign, 1 release is owed.** Fix what is named below."
    )
    start = lines.index("### What is not tagged or announced")
    assert start < next(n for n, line in enumerate(lines) if line.startswith("<details"))
    foreign, owed = lines[start + 2 : start + 4]
    assert foreign == (
        "- 🟥\N{NO-BREAK SPACE}**1 tag is foreign**: <code>b-v1.0.0</code> of <code>pypi:b</code>"
        "<br>the tag is foreign<br>**What to do**: Look after the tag that is foreign. "
        f"[RK-130]({Problem.TAG_REFUSED.url})"
    )
    assert "Give the job <code>contents: write</code>." in owed


def test_a_release_of_somebody_else_is_told_and_no_failure() -> None:
    text = unescape(summary(report(followed("a", announced=FOREIGN))))
    assert "> [!TIP]" in text
    assert "### Releases of somebody else" in text
    assert "What is not tagged" not in text


def test_many_causes_are_cut_in_the_summary() -> None:
    """R40"""
    long = "x" * 900
    run = report(
        *(
            replace(result(f"p{n}"), tag=tag(f"t{n}", OWED, note=f"{n} {long}", hint=long))
            for n in range(3_000)
        )
    )
    text = summary(run)
    assert len(text.encode()) <= 1_000_000
    assert "more, in the results file." in text


def test_the_page_has_cards_facts_and_links() -> None:
    run = report(followed("a"), followed("b", tagged=FOREIGN, announced=OWED))
    page = unescape(report_page(run))
    words = "1 tagged, 1 announced, 1 tag is foreign, 1 release is owed"
    assert f"<dt>Tags and releases</dt><dd>{words}</dd>" in page
    assert "What to do first" in page
    assert "<b>1 tag is foreign</b>: b-v1.0.0" in page
    assert f'<dt>Tag</dt><dd><a href="{TREE}/a-v1.0.0" rel="noreferrer">a-v1.0.0</a>: made' in page
    assert f'<dt>Release</dt><dd><a href="{RELEASES}/a-v1.0.0"' in page
    assert f'href="{Problem.TAG_REFUSED.url}"' in page


def test_where_nothing_follows_nothing_is_said() -> None:
    run = partial_report()
    for text in (results_table(run), summary(run)):
        assert "tag" not in text.lower()
    page = report_page(run)
    assert "<dt>Tag</dt>" not in page
    assert "Tags and releases" not in page
    assert "tag" not in plan_table(mixed_plan())
    assert "| Tag |" not in plan_summary(mixed_plan())
    assert '"tag"' not in plan_json(mixed_plan(), ROOT)
    assert not [note for level, notes in notices(outcomes(Outcome.PUBLISHED)) for note in notes]


def planned(
    name: str, action: Action, about: Tag | None, release: Announcement | None = None
) -> PlannedPackage:
    return replace(step(name, action), tag=about, announcement=release)


def test_a_plan_says_what_would_be_tagged_and_announced() -> None:
    wanted = Status.WANTED
    made = plan(
        planned("a", Action.PUBLISH, tag("a-v1", wanted), announcement("a-v1", wanted)),
        planned("b", Action.KEEP, tag("b-v1", wanted)),
        planned("c", Action.KEEP, tag("c-v1", Status.EXISTING)),
        planned("d", Action.KEEP, tag("d-v1", FOREIGN, note="it is at 0b0b", hint="Rename.")),
    )
    made = replace(made, announcing="tags to origin")
    news = "2 to tag, 1 to announce, 1 tag is foreign"
    assert plan_headline(made).endswith(news)
    lines = plan_table(made, whole=False).splitlines()
    assert lines[0].split() == ["package", "version", "action", "tag", "why"]
    assert lines[3].split()[:5] == ["pypi:c", "1.0.0", "keep", "c-v1", "(there)"]
    assert "announcing: tags to origin" in lines
    assert "1 tag is foreign: d-v1: it is at 0b0b. Rename." in lines
    text = unescape(plan_summary(made))
    assert f"tags and releases: {news}. tags to origin" in text
    assert "| Package | Version | Action | Tag | Why |" in text
    assert "### What is not tagged or announced" in text
    rows = json.loads(plan_json(made, ROOT))["packages"]
    assert (rows[0]["tag"]["status"], rows[0]["announcement"]["tag"]) == ("wanted", "a-v1")
    assert "announcement" not in rows[1]


def test_a_package_that_is_only_to_be_tagged_has_a_row() -> None:
    """Those that are kept for one reason are only counted otherwise."""
    kept = [planned(f"p{n}", Action.KEEP, tag(f"p{n}", Status.EXISTING)) for n in range(9)]
    news = planned("q", Action.KEEP, tag("q-v1", Status.WANTED))
    lines = plan_table(plan(*kept, news), whole=False).splitlines()
    assert lines[1].split() == ["pypi:q", "1.0.0", "keep", "q-v1"]
    assert not any("pypi:p0 " in line for line in lines)


@pytest.mark.parametrize("url", ["http://elsewhere.example/x", "javascript:alert(1)"])
def test_only_pages_that_vouch_for_it_are_linked(url: str) -> None:
    """R35"""
    about = replace(tag(), url=url)
    run = report(replace(result(), tag=about, announcement=replace(announcement(), url=url)))
    for text in (summary(run), report_page(run), results_table(run)):
        assert "elsewhere" not in text
        assert "javascript:" not in text


@given(hostile_text)
def test_nothing_of_them_is_a_command_to_the_runner(text: str) -> None:
    """R35"""
    for status in (MADE, OWED, FOREIGN):
        about = hostile_followed(text, status)
        made = plan(
            replace(step(text, Action.KEEP), tag=about.tag, announcement=about.announcement)
        )
        told = [results_table(report(about)), plan_table(replace(made, announcing=text))]
        for line in "\n".join(told).splitlines():
            assert not line.lstrip().startswith("::")
            assert "##[" not in line
