"""Tags and releases, as programs read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from releasekit.announced import Announcement, Status, Tag
from releasekit.errors import ConfigError
from releasekit.fields import replace
from releasekit.model import Action, Outcome, PackageId
from releasekit.problems import Problem
from releasekit.report import (
    exit_code,
    join,
    load_results,
    outputs,
    plan_outputs,
    results_json,
    verdict_of,
)
from releasekit.report.redacted import Redacted
from sample_runs import (
    announcement,
    followed,
    hostile_followed,
    hostile_text,
    mixed_plan,
    outcomes,
    plan,
    report,
    result,
    step,
    tag,
)

SCHEMA = json.loads(
    (Path(__file__).parents[3] / "docs/results.schema.json").read_text(encoding="utf-8")
)
PUBLISHED, THERE, STAGED = Outcome.PUBLISHED, Outcome.ALREADY_PUBLISHED, Outcome.STAGED
MADE, OWED, FOREIGN = Status.CREATED, Status.PENDING, Status.FOREIGN


@pytest.mark.parametrize("status", Status)
def test_every_status_can_be_joined(status: Status) -> None:
    """R18: with that of another job."""
    told = replace(result(), announcement=announcement(status=status))
    (found,) = join([report(told), report(told, run_id="r2")]).results
    assert found.announcement == told.announcement


def test_the_schema_knows_every_status() -> None:
    assert SCHEMA["$defs"]["status"]["enum"] == [each.value for each in Status]


@pytest.mark.parametrize("status", Status)
def test_results_hold_tag_and_release_and_give_them_back(status: Status) -> None:
    run = report(followed("core", tagged=status, announced=status), result("plain"))
    text = results_json(run)
    document = json.loads(text)
    Draft202012Validator(SCHEMA).validate(document)
    row = document["packages"][0]
    assert row["tag"]["name"] == row["announcement"]["tag"] == "core-v1.0.0"
    assert row["tag"]["status"] == row["announcement"]["status"] == status
    assert (document["packages"][1]["tag"], document["packages"][1]["announcement"]) == (None, None)
    loaded = load_results(text)
    assert [(each.tag, each.announcement) for each in loaded.results] == [
        (each.tag, each.announcement) for each in run.results
    ]


def test_a_row_says_all_that_is_known_of_a_tag() -> None:
    about = replace(tag(status=FOREIGN), note="why", hint="Do this.", problem=Problem.TAG_REFUSED)
    (row,) = json.loads(results_json(report(replace(result(), tag=about))))["packages"]
    assert row["tag"] == {
        "name": "core-v1.0.0",
        "commit": "",
        "object": "",
        "status": "foreign",
        "url": "",
        "note": "why",
        "hint": "Do this.",
        "problem": "RK-130",
    }


def test_earlier_versions_tagged_nothing_and_later_ones_know_more_problems() -> None:
    document = json.loads(results_json(report(followed(tagged=OWED))))
    document["packages"][0]["tag"]["problem"] = "RK-199"
    del document["packages"][0]["announcement"]
    (loaded,) = load_results(json.dumps(document)).results
    assert loaded.tag is not None
    assert loaded.tag.problem is None
    assert loaded.announcement is None


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("tag", "core-v1", r"packages\[0\]: tag: must be an object"),
        ("tag", {"name": 1}, r"packages\[0\]: tag: 'name' must be text"),
        ("tag", {"name": "", "commit": ""}, "tag: 'object' is missing"),
        (
            "tag",
            {"name": "", "commit": "", "object": "", "status": "fine"},
            "tag: 'status' must be one of wanted, made",
        ),
        ("announcement", {}, r"packages\[0\]: announcement: 'tag' is missing"),
    ],
)
def test_a_wrong_row_is_named(key: str, value: object, message: str) -> None:
    document = json.loads(results_json(report(followed())))
    document["packages"][0][key] = value
    with pytest.raises(ConfigError, match=message):
        load_results(json.dumps(document))


@given(hostile_text)
def test_any_text_of_them_survives_the_round_trip(text: str) -> None:
    again = load_results(results_json(report(hostile_followed(text))))
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    (loaded,) = again.results
    assert loaded.tag == Tag(
        name=whole, status=OWED, commit=whole, object=whole, url=whole, note=whole, hint=whole
    )
    assert load_results(results_json(again)) == again


@pytest.mark.parametrize(
    ("outcome", "tagged", "announced", "verdict", "code"),
    [
        (PUBLISHED, MADE, MADE, "success", 0),
        (THERE, Status.EXISTING, Status.EXISTING, "noop", 0),
        (THERE, MADE, None, "success", 0),
        (THERE, Status.EXISTING, MADE, "success", 0),
        (PUBLISHED, OWED, None, "partial", 1),
        (PUBLISHED, FOREIGN, None, "partial", 1),
        (THERE, OWED, None, "partial", 1),
        (THERE, Status.EXISTING, OWED, "partial", 1),
        (PUBLISHED, MADE, FOREIGN, "success", 0),
        (THERE, Status.EXISTING, FOREIGN, "noop", 0),
    ],
)
def test_what_is_owed_makes_a_release_partial(
    outcome: Outcome, tagged: Status, announced: Status | None, verdict: str, code: int
) -> None:
    run = report(followed("core", outcome, tagged=tagged, announced=announced))
    assert (verdict_of(run), exit_code(run)) == (verdict, code)


def test_what_is_owed_of_one_makes_staged_partial_and_changes_no_failure() -> None:
    owed = followed("core", tagged=OWED)
    assert verdict_of(report(owed, result("http", STAGED))) == "partial"
    assert verdict_of(report(owed, result("http", Outcome.FAILED))) == "partial"
    assert verdict_of(report(owed, result("http", Outcome.CANCELLED))) == "cancelled"
    assert verdict_of(report(followed("core", THERE), result("http", STAGED))) == "staged"


def test_a_dry_run_owes_nothing_yet() -> None:
    wanted = followed("core", Outcome.WOULD_PUBLISH, tagged=Status.WANTED, announced=Status.WANTED)
    assert verdict_of(report(wanted, dry_run=True)) == "success"
    there = followed("core", THERE, tagged=Status.WANTED, announced=Status.WANTED)
    assert verdict_of(report(there, dry_run=True)) == "noop"


def test_outputs_list_what_this_run_has_made() -> None:
    run = report(
        followed("core"),
        followed("http", THERE, tagged=Status.EXISTING, announced=MADE),
        followed("app", tagged=OWED, announced=OWED),
        result("plain"),
    )
    found = outputs(run)
    assert json.loads(found["tags"]) == [
        {
            "package": "pypi:core",
            "version": "1.0.0",
            "tag": "core-v1.0.0",
            "commit": "c0" * 20,
            "url": "https://github.com/acme/widgets/tree/core-v1.0.0",
        }
    ]
    assert [(each["package"], each["commit"]) for each in json.loads(found["releases"])] == [
        ("pypi:core", "c0" * 20),
        ("pypi:http", "c0" * 20),
    ]


def test_a_release_of_a_tag_that_is_not_known_has_no_commit() -> None:
    run = report(followed("core", tagged=None))
    assert json.loads(outputs(run)["releases"])[0]["commit"] == ""
    assert outputs(outcomes(PUBLISHED))["tags"] == outputs(outcomes(PUBLISHED))["releases"] == "[]"


def test_outputs_of_a_large_release_name_its_tags_as_long_as_they_can() -> None:
    """R40"""
    large = outputs(report(*(followed(f"package-{n}") for n in range(1_200))))
    assert json.loads(large["tags"])[7] == {
        "package": "pypi:package-7",
        "version": "1.0.0",
        "tag": "package-7-v1.0.0",
    }
    assert len(json.loads(large["releases"])) == 1_200
    larger = outputs(report(*(followed(f"package-{n}") for n in range(3_000))))
    assert larger["tags"] == larger["releases"] == "[]"
    assert len(json.loads(larger["published-packages"])) == 3_000


def test_of_several_jobs_the_one_that_saw_more_is_right() -> None:
    """Whatever the outcome that each of them tells."""
    one = report(followed("core", PUBLISHED, tagged=OWED, announced=None))
    other = report(followed("core", THERE, tagged=Status.EXISTING, announced=FOREIGN))
    for jobs in ([one, other], [other, one]):
        (joined,) = join(jobs).results
        assert joined.outcome is PUBLISHED
        assert joined.tag == other.results[0].tag
        assert joined.announcement == other.results[0].announcement
    assert join([report(result("core")), one]).results[0].tag == one.results[0].tag


def test_what_is_only_to_be_tagged_is_work() -> None:
    """A job that publishes has to be started for it."""
    wanted = step("core", Action.KEEP)
    for more in (
        {"tag": tag(status=Status.WANTED)},
        {"tag": tag(status=Status.EXISTING), "announcement": announcement(status=Status.WANTED)},
    ):
        made = plan_outputs(plan(replace(wanted, **more), step("http", Action.KEEP)))
        assert made["has-work"] == "true"
        rows = json.loads(made["matrix"])["include"]
        assert rows == [{"ecosystem": "pypi", "packages": "core"}]
    there = replace(wanted, tag=tag(status=Status.EXISTING))
    assert plan_outputs(plan(there))["has-work"] == "false"


def test_what_is_only_to_be_tagged_goes_to_the_part_it_is_of() -> None:
    """One of its own, where nothing of its ecosystem is left to be published."""
    app = step("app", Action.KEEP)
    other = replace(app.package, id=PackageId("npm", "app"))
    parts = [
        replace(step("core", Action.KEEP), shard="2/2", tag=tag(status=Status.WANTED)),
        replace(step("http", Action.PUBLISH), shard="1/2"),
        replace(app, package=other, tag=tag(status=Status.WANTED)),
    ]
    rows = json.loads(plan_outputs(plan(*parts))["matrix"])["include"]
    assert [(row["row"], row["packages"]) for row in rows] == [
        ("npm", "app"),
        ("pypi-1", "http"),
        ("pypi-2", "core"),
    ]


def test_nothing_of_them_holds_a_secret() -> None:
    """R34, R50"""
    clean = Redacted(lambda text: text.replace("canary", "***"))
    told = "canary at https://user:word@x.example/a?sig=1"
    run = clean.clean(report(hostile_followed(told)))
    (about,) = run.results
    assert about.tag == Tag(
        name="*** at https://user:word@x.example/a?sig=1",
        status=OWED,
        commit=told,
        object=told,
        url="*** at https://***@x.example/a?…",
        note="*** at https://***@x.example/a?…",
        hint="*** at https://user:word@x.example/a?sig=1",
    )
    assert isinstance(about.announcement, Announcement)
    assert "canary" not in str(about.announcement)
    steps = tuple(
        replace(each, tag=hostile_followed(told).tag, announcement=about.announcement)
        for each in mixed_plan().packages
    )
    planned = clean.clean(replace(plan(*steps), announcing=told))
    assert planned.announcing == "*** at https://***@x.example/a?…"
    assert planned.packages[0].tag == about.tag
