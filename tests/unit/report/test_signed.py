"""What is said of signatures, wherever a run is told."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from releasekit.fields import replace
from releasekit.report import (
    join,
    load_results,
    outputs,
    plan_summary,
    plan_table,
    results_json,
    results_table,
    summary,
)
from releasekit.report.page import report_page
from releasekit.report.redacted import Redacted
from sample_runs import (
    ATTESTATIONS,
    artifact,
    hostile_text,
    mixed_plan,
    outcomes,
    report,
    result,
    signed,
    signed_report,
    statement,
)

if TYPE_CHECKING:
    from releasekit.model import Report

SCHEMA = json.loads(
    (Path(__file__).parents[3] / "docs/results.schema.json").read_text(encoding="utf-8")
)
ENTRY = "https://search.sigstore.dev/?logIndex="


def line(run: Report) -> str:
    (found,) = (each for each in results_table(run).splitlines() if each.startswith("provenance: "))
    return found.removeprefix("provenance: ")


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (signed_report(), f"2 files signed, release statement: {ATTESTATIONS}/31"),
        (
            signed_report(statement(12)),
            f"2 files signed, release statement about 12 files: {ATTESTATIONS}/31",
        ),
        (
            signed_report(statement(url="", note="GitHub: HTTP 403. Do this.")),
            "2 files signed, release statement in provenance.jsonl. GitHub: HTTP 403. Do this.",
        ),
        (
            replace(report(result("core")), statement=statement(1)),
            f"release statement about 1 file: {ATTESTATIONS}/31",
        ),
        (report(result("core", artifacts=(signed(),))), "1 file signed"),
        (
            signed_report(replace(statement(0, url="", note="It is not."), attestations=())),
            "2 files signed. It is not.",
        ),
        (
            signed_report(provenance="npm:web is not: why"),
            f"2 files signed, release statement: {ATTESTATIONS}/31",
        ),
    ],
)
def test_the_log_ends_with_one_line_about_it(run: Report, words: str) -> None:
    assert line(run) == words


def test_why_nothing_is_signed_is_told_by_the_plan_and_in_the_summary() -> None:
    run = replace(outcomes(), provenance="nothing is signed: the repository is private")
    assert "provenance" not in results_table(run)
    assert "provenance: nothing is signed: the repository is private" in summary(run)


def test_where_nothing_is_signed_nothing_is_said() -> None:
    run = report(result("core", artifacts=(artifact(),)))
    assert "provenance" not in results_table(run)
    assert "provenance" not in summary(run)
    assert "Signed" not in summary(run)
    assert "Provenance" not in report_page(run)
    assert outputs(run)["attestations"] == "{}"


def test_the_summary_leads_to_statement_and_entries() -> None:
    text = summary(signed_report())
    shown = unescape(text)
    assert f'2 files signed, <a href="{ATTESTATIONS}/31">release statement</a>' in shown
    assert f'<a href="{ENTRY}7">log entry 7</a> |' in shown
    assert f'<a href="{ENTRY}8">log entry 8</a> |' in shown
    assert "| File | Bytes | SHA-256 | Signed |" in text


def test_summary_and_page_say_what_was_planned_of_the_rest() -> None:
    run = signed_report(statement(3), provenance="npm:web is not: why")
    for text in (summary(run), report_page(run)):
        words = "release statement about 3 files</a>. Planned: npm:web is not: why"
        assert words in unescape(text)
    assert "Planned" not in summary(signed_report(provenance="2 packages to attest"))
    assert "provenance: why" in summary(replace(outcomes(), provenance="why")).splitlines()


def test_what_went_as_planned_is_not_said_again() -> None:
    words = "2 packages to attest, all files in the release statement"
    for provenance in (words, f"all files in the release statement; {words}"):
        run = signed_report(statement(3), provenance=provenance)
        assert "Planned" not in summary(run) + report_page(run)
    run = signed_report(statement(3), provenance=f"{words}; nothing is attested: why. Do this.")
    assert f"Planned: {words}; nothing is attested: why. Do this." in unescape(summary(run))


def test_a_sentence_of_it_ends_once() -> None:
    about = statement(3, url="", note="GitHub has not taken it: HTTP 403. Do this.")
    text = unescape(summary(signed_report(about, provenance="npm:web is not: why")))
    assert "Do this. Planned: npm:web" in text


def test_files_of_which_none_is_signed_stand_beside_signed_ones() -> None:
    text = summary(report(result("core", artifacts=(signed(), artifact("core.whl")))))
    (row,) = (each for each in text.splitlines() if "core.whl" in each)
    assert row.count("|") == 5
    assert row.endswith("|  |")


def test_the_page_leads_to_statement_and_entries() -> None:
    page = unescape(report_page(signed_report()))
    assert f'<dt>Provenance</dt><dd>2 files signed, <a href="{ATTESTATIONS}/31"' in page
    assert f'signed, <a href="{ENTRY}7" rel="noreferrer">log entry 7</a></li>' in page


@pytest.mark.parametrize(
    "log", ["http://elsewhere.example", "javascript:alert(1)//", 'https://x.example/"><b>']
)
def test_nobody_can_vouch_from_anywhere_else(log: str) -> None:
    """R35: what says who signed is https, or of this machine."""
    plain = "http://elsewhere.example/acme/attestations/1"
    about = statement(url=plain, log=log)
    run = replace(
        report(result("core", artifacts=(signed(log=log),))), statement=about, project="acme"
    )
    loaded = load_results(results_json(run))
    for text in (summary(loaded), report_page(loaded)):
        assert 'href="http:' not in unescape(text)
        assert "javascript:" not in text
        assert "log entry 7" in unescape(text)
    assert "elsewhere" not in line(loaded)


def test_a_plan_says_what_will_be_signed() -> None:
    plan = replace(mixed_plan(), provenance="2 packages are signed; pypi:app is not: why")
    assert f"provenance: {plan.provenance}" in plan_table(plan).splitlines()
    assert f"provenance: {plan.provenance}" in unescape(plan_summary(plan)).splitlines()
    assert "provenance" not in plan_table(mixed_plan())
    assert "provenance" not in plan_summary(mixed_plan())


def test_results_hold_what_was_signed_and_give_it_back() -> None:
    run = signed_report(statement(12, note="why"), provenance="words")
    text = results_json(run)
    document = json.loads(text)
    Draft202012Validator(SCHEMA).validate(document)
    assert document["packages"][0]["artifacts"][0]["attestation"] == {
        "log_index": 7,
        "log_url": "https://rekor.sigstore.dev",
        "url": f"{ENTRY}7",
        "sha256": "cd" * 32,
    }
    assert document["provenance"] == "words"
    assert document["statement"]["filename"] == "provenance.jsonl"
    assert document["statement"]["attestations"][0]["url"] == f"{ENTRY}9"
    loaded = load_results(text)
    assert results_json(loaded) == text
    assert summary(loaded) == summary(run)
    assert loaded.statement is not None
    assert (loaded.statement.subjects, loaded.statement.note) == (12, "why")


def test_earlier_versions_signed_nothing() -> None:
    document = json.loads(results_json(signed_report()))
    for key in ("provenance", "statement"):
        del document[key]
    for file in document["packages"][0]["artifacts"]:
        del file["attestation"]
    loaded = load_results(json.dumps(document))
    assert (loaded.provenance, loaded.statement) == ("", None)
    assert {file.attestation for file in loaded.results[0].artifacts} == {None}


def test_a_statement_of_results_names_no_place_on_this_machine() -> None:
    """R36"""
    text = results_json(signed_report()).replace("provenance.jsonl", "../../etc/passwd")
    loaded = load_results(text)
    assert loaded.statement is not None
    assert loaded.statement.path == Path("passwd")


def test_each_signed_file_is_an_output() -> None:
    found = json.loads(outputs(signed_report())["attestations"])
    assert found == {
        "core-1.0.0.tar.gz": {"log-index": 7, "url": f"{ENTRY}7"},
        "core-1.0.0-py3-none-any.whl": {"log-index": 8, "url": f"{ENTRY}8"},
    }


def test_files_of_one_name_are_told_apart_by_their_packages() -> None:
    run = report(
        result("a", artifacts=(signed("x.tgz", 1), signed("y.tgz", 2))),
        result("b", artifacts=(signed("x.tgz", 3),)),
    )
    found = json.loads(outputs(run)["attestations"])
    assert {name: each["log-index"] for name, each in found.items()} == {
        "pypi:a/x.tgz": 1,
        "y.tgz": 2,
        "pypi:b/x.tgz": 3,
    }


def test_large_outputs_lose_attestations_before_checksums() -> None:
    """R40"""
    files = tuple(signed(f"{n}-{'x' * 80}.whl", n) for n in range(250))
    found = outputs(report(*(result(f"p{n}", artifacts=files) for n in range(10))))
    assert found["attestations"] == "{}"
    assert len(found["checksums"].splitlines()) == 2_500


def test_statements_of_several_jobs_are_joined() -> None:
    one = signed_report(statement(2, note="late"), provenance="b")
    other = replace(
        report(result("http", artifacts=(signed("http.whl", 3),))),
        statement=statement(1, url=f"{ATTESTATIONS}/32"),
        provenance="a",
    )
    joined = join([one, other])
    about = joined.statement
    assert about is not None
    assert (about.subjects, len(about.attestations), about.note) == (3, 2, "late")
    assert about.url == ATTESTATIONS
    assert joined.provenance == "a; b"
    Draft202012Validator(SCHEMA).validate(json.loads(results_json(joined)))


def test_jobs_without_a_statement_change_none() -> None:
    alone = join([signed_report(), report(result("http"))])
    assert alone.statement == statement()
    assert join([report(result("http"))]).statement is None
    apart = join(
        [
            signed_report(),
            replace(report(result("http")), statement=statement(url="https://x.example/1")),
        ]
    )
    assert apart.statement is not None
    assert apart.statement.url == ""


def test_what_is_said_of_it_holds_no_secret() -> None:
    """R34, R50"""
    clean = Redacted(lambda text: text.replace("canary", "***"))
    told = "canary at https://x.example/a?sig=1"
    run = clean.clean(signed_report(statement(note=told, url=told), provenance=told))
    text = results_json(run) + summary(run) + results_table(run)
    assert "canary" not in text
    assert "sig=1" not in text
    plan = clean.clean(replace(mixed_plan(), provenance=told))
    assert plan.provenance == "*** at https://x.example/a?…"
    assert clean.clean(outcomes()).statement is None


@given(text=hostile_text)
def test_nothing_of_it_is_a_command_to_the_runner(text: str) -> None:
    """R35"""
    run = signed_report(statement(url=text, note=text, log=text), provenance=text)
    for told in results_table(run).splitlines():
        assert not told.lstrip().startswith("::")
        assert "##[" not in told
    plan = replace(mixed_plan(), provenance=text)
    assert not any("##[" in told for told in plan_table(plan).splitlines())
    assert outputs(run)["attestations"].isascii()
