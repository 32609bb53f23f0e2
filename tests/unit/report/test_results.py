from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from releasekit.errors import ConfigError
from releasekit.fields import replace
from releasekit.host.ci import Origin
from releasekit.model import Action, Outcome, PackageId, Phase, Span, WarningName
from releasekit.report import join, load_all, load_results, results_json, results_table, summary
from releasekit.text.json_text import count_values
from sample_runs import (
    hostile_text,
    outcomes,
    package,
    partial_report,
    plan,
    report,
    result,
    staged_report,
    step,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from releasekit.model import Report

SCHEMA = json.loads(
    (Path(__file__).parents[3] / "docs/results.schema.json").read_text(encoding="utf-8")
)
CORE, HTTP = PackageId("pypi", "core"), PackageId("pypi", "http")


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "run",
    [
        partial_report(),
        staged_report(),
        outcomes(),
        outcomes(*Outcome),
        outcomes(Outcome.WOULD_PUBLISH, dry_run=True),
        replace(outcomes(), registries={"npm": "https://registry.npmjs.org/"}),
    ],
)
def test_results_are_valid_by_the_published_schema(run: Report) -> None:
    Draft202012Validator(SCHEMA).validate(json.loads(results_json(run)))


def test_the_schema_has_all_that_is_written() -> None:
    document = json.loads(results_json(partial_report()))
    assert document.keys() == SCHEMA["properties"].keys()
    assert document["packages"][0].keys() == SCHEMA["$defs"]["package"]["properties"].keys()


def test_the_schema_knows_every_word() -> None:
    """R4"""
    of_packages = SCHEMA["$defs"]["package"]["properties"]
    assert of_packages["outcome"]["enum"] == [*Outcome]
    assert of_packages["spans"]["items"]["properties"]["phase"]["enum"] == [*get_args(Phase)]
    assert of_packages["warnings"]["items"]["properties"]["name"]["enum"] == [*WarningName]


def test_results_hold_every_package_once_in_publish_order() -> None:
    """R4"""
    document = json.loads(results_json(partial_report()))
    names = [row["name"] for row in document["packages"]]
    assert names == ["core", "extras", "http", "broken", "app"]
    assert document["result"] == "partial"
    assert document["packages"][4]["dependencies"] == ["pypi:broken", "pypi:http"]
    assert document["packages"][0]["artifacts"][0] == {
        "filename": "core-1.0.0.tar.gz",
        "sha256": "ab" * 32,
        "size": 1234,
        "attestation": None,
    }


@pytest.mark.parametrize(
    "run", [partial_report(), replace(staged_report(), registries={"pypi": "https://x.example/"})]
)
def test_loaded_results_tell_the_same(run: Report) -> None:
    loaded = load_results(results_json(run))
    assert results_json(loaded) == results_json(run)
    assert summary(loaded) == summary(run)
    assert loaded.registries == run.registries
    assert [each.staged for each in loaded.results] == [each.staged for each in run.results]


@given(hostile_text)
def test_any_text_survives_the_round_trip(text: str) -> None:
    run = report(result(text, Outcome.FAILED, version=text, reason=text, hint=text, log=(text,)))
    again = load_results(results_json(run))
    # Halves of characters aside, which no file takes.
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert again.results[0].log == (whole,)
    assert load_results(results_json(again)) == again


def test_loaded_results_name_no_place_on_this_machine() -> None:
    """R36: a path from a file somebody else wrote is a filename, nothing else."""
    text = results_json(partial_report()).replace("core-1.0.0.tar.gz", "../../etc/passwd")
    loaded = load_results(text)
    assert loaded.results[0].artifacts[0].filename == "passwd"


def broken(change: Callable[[dict[str, object]], object]) -> str:
    document = json.loads(results_json(partial_report()))
    change(document)
    return json.dumps(document)


def first(document: dict[str, object]) -> dict[str, object]:
    return cast("list[dict[str, object]]", document["packages"])[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.json: not valid JSON"),
        ('{"schema": NaN}', "a.json: not valid JSON: NaN"),
        ("[" * 200_000, "a.json: not valid JSON"),
        ("[]", "a.json: must be an object, not []"),
        ("{}", "a.json: 'schema' is missing"),
        (broken(lambda d: d.update(schema=2)), "a.json: schema 2 is not known"),
        (broken(lambda d: d.update(schema=True)), "a.json: 'schema' must be a whole number"),
        (broken(lambda d: d.update(schema=10**400)), "a.json: 'schema' must be a whole number"),
        (broken(lambda d: d.update(registries=[])), "a.json: registries: must be an object, not"),
        (broken(lambda d: d.update(registries={"npm": 1})), "registries: 'npm' must be text"),
        (broken(lambda d: first(d).update(staged="")), "packages[0]: staged: must be an object"),
        (broken(lambda d: first(d).update(staged={"id": ""})), "staged: 'url' is missing"),
        (broken(lambda d: d.update(run_id=1)), "a.json: 'run_id' must be text, not 1"),
        (broken(lambda d: d.update(dry_run=0)), "a.json: 'dry_run' must be true or false, not 0"),
        (broken(lambda d: d.update(duration_s=-1)), "a.json: 'duration_s' must be a number of sec"),
        (broken(lambda d: d.update(duration_s=10**400)), "a.json: 'duration_s' must be a number"),
        (broken(lambda d: d.update(duration_s="1")), "a.json: 'duration_s' must be a number of se"),
        (broken(lambda d: d.update(started_at="now")), "a.json: 'started_at' must be an ISO 8601"),
        (broken(lambda d: d.update(started_at="2026-11-20T12:00:00")), "'started_at' must be an"),
        (broken(lambda d: d.update(packages={})), "a.json: 'packages' must be a list, not {}"),
        (broken(lambda d: d.update(packages=[1])), "a.json: packages[0]: must be an object, not 1"),
        (broken(lambda d: d.update(packages=[first(d)] * 2)), "a.json: pypi:core is listed more"),
        (
            broken(lambda d: first(d).update(outcome="fine")),
            "a.json: packages[0]: 'outcome' must be one of published, already-published, staged, ",
        ),
        (
            broken(lambda d: first(d).update(log=["a", 1])),
            "a.json: packages[0]: 'log' must be a list of texts",
        ),
        (
            broken(lambda d: first(d).update(spans=[{"phase": "test", "start_s": 0, "end_s": 1}])),
            "a.json: packages[0]: spans[0]: 'phase' must be one of build, attest, upload",
        ),
        (broken(lambda d: first(d).pop("url")), "a.json: packages[0]: 'url' is missing"),
    ],
)
def test_a_bad_file_is_named_with_the_key(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_results(text, "a.json")
    assert message in str(caught.value)


def test_a_huge_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """R40"""
    monkeypatch.setattr("releasekit.report.results.MAX_BYTES", 10)
    with pytest.raises(ConfigError, match=r"a\.json: larger than 10 bytes"):
        load_results('{"a": "bcdef"}', "a.json")


@pytest.mark.parametrize("limit", ["MAX_BYTES", "MAX_VALUES", "MAX_KB"])
def test_the_results_of_all_jobs_have_one_limit(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R40: a release may have any number of jobs."""
    text = results_json(report(result("core"))).encode()
    enough = {"MAX_BYTES": 3 * len(text), "MAX_VALUES": 3 * count_values(text), "MAX_KB": 18}
    monkeypatch.setattr(f"releasekit.report.results.{limit}", enough[limit])
    texts = [(name, text) for name in ("a.json", "b.json", "c.json", "d.json", "e.json")]
    assert len(load_all(texts[:3])) == 3
    with pytest.raises(ConfigError, match=r"[de]\.json: with the results before it, more than"):
        load_all(texts)


def test_packages_are_counted_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """R40"""
    text = results_json(report(result("core"), result("http")))
    monkeypatch.setattr("releasekit.report.results.MAX_PACKAGES", 1)
    with pytest.raises(ConfigError, match=r"a\.json: more packages, files and dependencies"):
        load_results(text, "a.json")


def test_joined_results_have_a_limit_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """R40: of dependencies that no job accounts for, too."""
    ours = report(result("core"), edges={"core": ("a", "b")})
    monkeypatch.setattr("releasekit.report.joined.MAX_PACKAGES", 2)
    with pytest.raises(ConfigError, match="name more than 2 packages"):
        join([ours])
    monkeypatch.setattr("releasekit.report.joined.MAX_KB", 1)
    with pytest.raises(ConfigError, match="list more than 1 dependencies"):
        join([ours])


def test_join_puts_the_parts_of_a_release_together() -> None:
    early = report(
        result("http", spans=(Span(phase="build", start_s=0, end_s=1),)),
        edges={"http": ("core",)},
        run_id="b",
        started_at="2026-11-20T12:00:30+00:00",
    )
    late = report(result("core"), run_id="a", private=(package("tools"),))
    joined = join([replace(early, registries={"pypi": "https://x.example/"}), late])
    assert joined.registries == {"pypi": "https://x.example/"}
    assert [row.package.id for row in joined.results] == [CORE, HTTP]
    assert joined.run_id == "a+b"
    assert joined.started_at == "2026-11-20T12:00:00+00:00"
    assert joined.duration_s == 42.5
    assert joined.results[1].spans == (Span(phase="build", start_s=30, end_s=31),)
    assert joined.edges == {CORE: frozenset(), HTTP: frozenset({CORE})}
    assert [package.id.name for package in joined.private] == ["tools"]
    assert joined.plan_digest == "d1" * 32
    Draft202012Validator(SCHEMA).validate(json.loads(results_json(joined)))


@pytest.mark.parametrize(
    ("one", "other", "truth"),
    [
        (Outcome.FAILED, Outcome.PUBLISHED, Outcome.PUBLISHED),
        (Outcome.ALREADY_PUBLISHED, Outcome.UNKNOWN, Outcome.ALREADY_PUBLISHED),
        (Outcome.FAILED, Outcome.UNKNOWN, Outcome.UNKNOWN),
        (Outcome.BLOCKED, Outcome.FAILED, Outcome.FAILED),
        (Outcome.STAGED, Outcome.PUBLISHED, Outcome.PUBLISHED),
        (Outcome.BLOCKED, Outcome.STAGED, Outcome.STAGED),
        (Outcome.REMOVED, Outcome.CANCELLED, Outcome.CANCELLED),
    ],
)
def test_join_believes_the_report_that_knows_more(
    one: Outcome, other: Outcome, truth: Outcome
) -> None:
    """R16, and R5: whatever the order of the files."""
    reports = [report(result("core", one)), report(result("core", other))]
    assert [row.outcome for row in join(reports).results] == [truth]
    assert [row.outcome for row in join(reports[::-1]).results] == [truth]


def test_join_accounts_for_packages_whose_job_left_nothing() -> None:
    """R4"""
    whole = plan(step("core", Action.PUBLISH), step("http", Action.PUBLISH, needs=("core",)))
    joined = join([report(result("core"))], plan=whole)
    assert [(row.package.id, row.outcome) for row in joined.results] == [
        (CORE, Outcome.PUBLISHED),
        (HTTP, Outcome.UNKNOWN),
    ]
    assert joined.results[1].package.version == "1.0.0"
    assert joined.plan_digest == whole.digest


def test_join_accounts_for_dependencies_nobody_reported() -> None:
    """R4"""
    joined = join([report(result("http"), edges={"http": ("core",)})])
    assert [(row.package.id, row.outcome) for row in joined.results] == [
        (CORE, Outcome.UNKNOWN),
        (HTTP, Outcome.PUBLISHED),
    ]


def test_join_of_different_plans_of_one_commit_has_no_plan() -> None:
    other = replace(report(result("http")), plan_digest="e2" * 32)
    assert not join([report(result("core")), other]).plan_digest


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        ([], "no results file to join"),
        ([outcomes(), report(commit="beef")], "of different commits: beef, c0ffee"),
        ([outcomes(), outcomes(dry_run=True)], "some of the results files are of a dry run"),
        (
            [report(result("a"), result("b"), edges={"a": ("b",), "b": ("a",)})],
            "the results files: a dependency cycle: pypi:",
        ),
    ],
)
def test_join_refuses_what_does_not_belong_together(reports: list[Report], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        join(reports)


def test_what_builds_were_kept_from_is_told_everywhere() -> None:
    """R50"""
    mixed = [replace(outcomes(), builds=words) for words in ("sandboxed (Landlock 7)", "", "not")]
    assert [load_results(results_json(each)).builds for each in mixed] == [
        "sandboxed (Landlock 7)",
        "",
        "not",
    ]
    joined = join(mixed)
    assert joined.builds == "not; sandboxed (Landlock 7)"
    assert "builds: not; sandboxed (Landlock 7)" in unescape(summary(joined))
    told = "builds: not; sandboxed (Landlock 7)"
    assert told in results_table(joined, verbose=True).splitlines()
    assert told not in results_table(joined)
    failed = replace(joined, results=(result("core", Outcome.FAILED, log=("no",)),))
    assert told in results_table(failed).splitlines()  # it may be why


def test_earlier_versions_did_not_tell_it() -> None:
    document = json.loads(results_json(outcomes(Outcome.PUBLISHED)))
    for key in ("builds", "registries", "project", "repository", "run_url"):
        del document[key]
    del document["packages"][0]["staged"]
    loaded = load_results(json.dumps(document))
    assert (loaded.builds, loaded.registries, loaded.results[0].staged) == ("", {}, None)
    assert (loaded.project, loaded.repository, loaded.run_url) == ("", "", "")


PLACE = Origin(
    project="acme/widgets",
    repository="https://github.com/acme/widgets",
    run_url="https://github.com/acme/widgets/actions/runs/17",
)


def placed(run: Report) -> Report:
    return replace(run, project=PLACE.project, repository=PLACE.repository, run_url=PLACE.run_url)


def place(run: Report) -> Origin:
    return Origin(project=run.project, repository=run.repository, run_url=run.run_url)


def test_results_say_where_they_are_from() -> None:
    text = results_json(placed(outcomes(Outcome.PUBLISHED)))
    Draft202012Validator(SCHEMA).validate(json.loads(text))
    assert place(load_results(text)) == PLACE


def test_joined_results_are_of_the_place_that_all_share() -> None:
    first = placed(report(result("core")))
    assert place(join([first, report(result("http"))])) == PLACE
    one, other = (
        replace(first, project="acme/widgets/js"),
        replace(first, project="acme/widgets/py"),
    )
    assert join([one, other]).project == "acme/widgets"
    apart = join([first, replace(first, project="b", repository="b", run_url="b")])
    assert place(apart) == Origin()
