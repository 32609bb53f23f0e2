from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given

from releasekit.announced import Status
from releasekit.fields import replace
from releasekit.host.runner import MAX_DOTENV
from releasekit.model import Outcome
from releasekit.problems import Problem
from releasekit.report import job_links, junit, scalars
from sample_runs import (
    followed,
    hostile_text,
    outcomes,
    partial_report,
    report,
    result,
)

if TYPE_CHECKING:
    from releasekit.model import Report


def suite(made: Report) -> ET.Element:
    (found,) = ET.fromstring(junit(made))
    return found


def case(made: Report, name: str) -> ET.Element:
    (found,) = (each for each in suite(made) if each.get("name") == name)
    return found


def test_each_package_is_a_case() -> None:
    """R34"""
    made = partial_report()
    found = suite(made)
    names = [f"{each.package.id.name} {each.package.version}" for each in made.results]
    assert [each.get("name") for each in found] == names
    assert {each.get("classname") for each in found} == {"pypi"}
    assert (found.get("tests"), found.get("failures"), found.get("skipped")) == ("5", "1", "1")


@pytest.mark.parametrize(
    ("outcome", "tags"),
    [
        (Outcome.PUBLISHED, []),
        (Outcome.ALREADY_PUBLISHED, []),
        (Outcome.STAGED, []),
        (Outcome.WOULD_PUBLISH, []),
        (Outcome.FAILED, ["failure"]),
        (Outcome.UNKNOWN, ["failure"]),
        (Outcome.BLOCKED, ["skipped"]),
        (Outcome.CANCELLED, ["skipped"]),
        (Outcome.REMOVED, ["skipped"]),
    ],
)
def test_an_outcome_is_passed_failed_or_skipped(outcome: Outcome, tags: list[str]) -> None:
    (found,) = suite(outcomes(outcome))
    assert [each.tag for each in found] == tags


def test_a_failed_case_says_why_and_what_to_do_and_where_to_read_on() -> None:
    failed = replace(
        result("core", Outcome.FAILED),
        reason="the build failed",
        hint="Read the log.",
        problem=Problem.BUILD_FAILED,
    )
    (failure,) = case(report(failed), "core 1.0.0")
    assert failure.get("message") == "pypi:core 1.0.0 failed [RK-101]"
    assert (failure.text or "").split("\n") == [
        "the build failed", "Read the log.", Problem.BUILD_FAILED.url
    ]  # fmt: skip


def test_a_tag_that_is_missing_fails_though_its_package_is_published() -> None:
    made = report(followed("core", tagged=Status.PENDING))
    found = suite(made)
    assert [len(each) for each in found] == [0, 1]
    assert found[1].get("classname") == "tags and releases"
    assert found.get("failures") == "1"


@given(hostile_text)
def test_text_from_outside_stays_text(text: str) -> None:
    """R52: a control character or a lone surrogate would make GitLab refuse the whole file."""
    failed = replace(result("core", Outcome.FAILED), reason=text, hint=text)
    made = replace(report(failed), started_at=text)
    found = suite(made)
    assert found.get("failures") == "1"
    assert [each.tag for each in found.iter()] == ["testsuite", "testcase", "failure"]


def test_numbers_take_the_place_of_lists_and_leave_room_for_others() -> None:
    found = scalars(partial_report())
    assert found["result"] == "partial"
    assert found["published"] == "true"
    assert (found["published-packages"], found["failed-packages"]) == ("2", "1")
    others = {"results-file", "report-url", "releases-url"}
    assert len(found | dict.fromkeys(others, "")) < MAX_DOTENV


@pytest.mark.parametrize("url", ["javascript:alert(1)//", "data:text/html,x", "http://g.example/r"])
def test_no_link_leads_where_a_page_may_not_lead(url: str) -> None:
    """`report` reads results that another job has left, and GitLab shows what they say."""
    result = followed("core")
    assert result.announcement is not None
    made = report(replace(result, announcement=replace(result.announcement, url=url)))
    links = job_links(made, report_url="", releases_url=f"{url}/-/releases")
    assert links == '{"ReleaseKit":[]}'


def test_links_lead_to_what_there_is() -> None:
    made = report(followed("core"))
    text = job_links(made, report_url="https://g.example/r", releases_url="")
    assert '{"label":"Report","url":"https://g.example/r"}' in text
    assert "Releases" not in text
    assert text.count("external_link") == 2
    assert job_links(partial_report(), report_url="", releases_url="") == '{"ReleaseKit":[]}'
