from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from approvals import on_page, recorded
from releasekit.model import Action, Outcome
from releasekit.report import (
    Verdict,
    checksums,
    exit_code,
    headline,
    notices,
    outputs,
    plan_outputs,
    verdict_of,
)
from releasekit.report.tables import results_table
from releasekit.report.text import columns, seconds
from releasekit.report.view import View
from releasekit.state.directory import built_directory
from releasekit.text.commands import spell
from sample_runs import (
    artifact,
    mixed_plan,
    outcomes,
    partial_report,
    plan,
    report,
    result,
    staged_report,
    step,
)

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.model import Report

PUBLISHED, ALREADY, FAILED = Outcome.PUBLISHED, Outcome.ALREADY_PUBLISHED, Outcome.FAILED
UNKNOWN, BLOCKED = Outcome.UNKNOWN, Outcome.BLOCKED
REMOVED, CANCELLED, STAGED = Outcome.REMOVED, Outcome.CANCELLED, Outcome.STAGED
WOULD = Outcome.WOULD_PUBLISH


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (outcomes(*[ALREADY] * 4, PUBLISHED, FAILED), "5 of 6 packages are on their registries"),
        (outcomes(ALREADY, CANCELLED), "1 of 2 packages is on its registry"),
        (outcomes(PUBLISHED, FAILED), "1 of 2 packages published"),
        (outcomes(PUBLISHED, ALREADY), "1 of 2 packages published"),
        (outcomes(ALREADY, ALREADY), "Both packages are already published, nothing to do"),
        (outcomes(WOULD, ALREADY, dry_run=True), "Dry run: 1 of 2 packages would be published"),
    ],
)
def test_a_heading_counts_what_was_there_before_where_something_is_missing(
    run: Report, sentence: str
) -> None:
    """R47"""
    assert View(run).registry_headline == sentence


@pytest.mark.parametrize(
    ("run", "word", "code", "sentence"),
    [
        (outcomes(), "noop", 0, "No package to publish"),
        (outcomes(PUBLISHED), "success", 0, "The package is published"),
        (outcomes(PUBLISHED, PUBLISHED), "success", 0, "Both packages are published"),
        (
            outcomes(PUBLISHED, ALREADY),
            "success",
            0,
            "1 of 2 packages published, 1 already there",
        ),
        (
            outcomes(ALREADY, ALREADY),
            "noop",
            0,
            "Both packages are already published, nothing to do",
        ),
        (
            outcomes(*[PUBLISHED] * 7, FAILED, BLOCKED),
            "partial",
            1,
            "7 of 9 packages published, 1 failed, 1 blocked",
        ),
        (
            outcomes(ALREADY, FAILED),
            "partial",
            1,
            "0 of 2 packages published, 1 already there, 1 failed",
        ),
        (outcomes(FAILED), "failure", 1, "0 of 1 package published, 1 failed"),
        (outcomes(UNKNOWN, PUBLISHED), "partial", 1, "1 of 2 packages published, 1 unknown"),
        (outcomes(REMOVED, PUBLISHED), "partial", 1, "1 of 2 packages published, 1 left out"),
        (
            outcomes(UNKNOWN, CANCELLED, PUBLISHED),
            "cancelled",
            130,
            "1 of 3 packages published, 1 unknown, 1 cancelled",
        ),
        (
            outcomes(FAILED, CANCELLED, PUBLISHED),
            "partial",
            1,
            "1 of 3 packages published, 1 failed, 1 cancelled",
        ),
        (
            outcomes(WOULD, ALREADY, dry_run=True),
            "success",
            0,
            "Dry run: 1 of 2 packages would be published, 1 already there",
        ),
        (
            outcomes(WOULD, FAILED, dry_run=True),
            "partial",
            1,
            "Dry run: 1 of 2 packages would be published, 1 failed",
        ),
        (
            outcomes(ALREADY, dry_run=True),
            "noop",
            0,
            "The package is already published, nothing to do",
        ),
        (
            outcomes(CANCELLED, dry_run=True),
            "cancelled",
            130,
            "Dry run: 0 of 1 package would be published, 1 cancelled",
        ),
        (outcomes(STAGED), "staged", 0, "The package is staged, for a person to approve"),
        (
            outcomes(STAGED, STAGED),
            "staged",
            0,
            "Both packages are staged, for a person to approve",
        ),
        (
            outcomes(*[PUBLISHED] * 12, *[STAGED] * 8),
            "staged",
            0,
            "12 of 20 packages published, 8 staged",
        ),
        (
            outcomes(ALREADY, STAGED),
            "staged",
            0,
            "0 of 2 packages published, 1 already there, 1 staged",
        ),
        (staged_report(), "staged", 0, "1 of 4 packages published, 2 staged, 1 blocked"),
        (
            outcomes(PUBLISHED, STAGED, FAILED),
            "partial",
            1,
            "1 of 3 packages published, 1 staged, 1 failed",
        ),
        (
            outcomes(STAGED, UNKNOWN),
            "failure",
            1,
            "0 of 2 packages published, 1 staged, 1 unknown",
        ),
        (
            outcomes(STAGED, CANCELLED),
            "cancelled",
            130,
            "0 of 2 packages published, 1 staged, 1 cancelled",
        ),
        (
            outcomes(STAGED, WOULD, dry_run=True),
            "staged",
            0,
            "Dry run: 1 of 2 packages would be published, 1 staged",
        ),
    ],
)
def test_verdict_exit_code_and_headline_tell_the_same(
    run: Report, word: Verdict, code: int, sentence: str
) -> None:
    """R4"""
    assert (verdict_of(run), exit_code(run), headline(run)) == (word, code, sentence)


@pytest.mark.parametrize(
    ("edges", "word"),
    [
        ({"p1": ("p0",), "p2": ("p1",)}, "staged"),
        ({"p1": ("p0", "p3"), "p2": ("p1",)}, "staged"),
        ({"p1": ("p0",)}, "partial"),
        ({"p1": ("p0", "p4"), "p2": ("p1",)}, "partial"),
        ({"p1": ("p0",), "p2": ("p1", "p4")}, "partial"),
    ],
)
def test_what_is_blocked_waits_for_approval_where_nothing_else_blocks_it(
    edges: dict[str, tuple[str, ...]], word: Verdict
) -> None:
    """R4"""
    kinds = {"p0": STAGED, "p3": PUBLISHED, "p4": FAILED, "p1": BLOCKED, "p2": BLOCKED}
    needed = {"p0", "p1", "p2", "p3"} | {need for needs in edges.values() for need in needs}
    results = [result(name, kind) for name, kind in kinds.items() if name in needed]
    assert verdict_of(report(*results, edges=edges)) == word


@pytest.mark.parametrize(
    "outcome", [kind for kind in Outcome if not kind.done and kind is not STAGED]
)
def test_an_incomplete_release_never_exits_with_0(outcome: Outcome) -> None:
    """R4"""
    assert exit_code(outcomes(PUBLISHED, outcome)) != 0


def test_outputs_list_every_package_under_its_outcome() -> None:
    """R4"""
    found = outputs(partial_report())
    lists = {
        key.removesuffix("-packages"): [row["name"] for row in json.loads(value)]
        for key, value in found.items()
        if key.endswith("-packages")
    }
    assert lists == {
        "published": ["core", "http"],
        "already-published": ["extras"],
        "staged": [],
        "failed": ["broken"],
        "unknown": [],
        "blocked": ["app"],
        "cancelled": [],
    }
    assert set(lists) == set(Outcome) - {REMOVED, WOULD}
    assert (found["result"], found["published"]) == ("partial", "true")
    assert found["ecosystems"] == '["pypi"]'


def test_outputs_describe_a_package() -> None:
    rows = json.loads(outputs(partial_report())["published-packages"])
    assert rows[0] == {
        "name": "core",
        "version": "1.0.0",
        "ecosystem": "pypi",
        "url": "https://pypi.org/project/core/1.0.0/",
        "reason": "because",
        "attempts": 1,
        "duration_s": 1.5,
    }


def test_outputs_say_where_what_is_staged_is_approved() -> None:
    """Of a large release, too, its name is left."""
    rows = json.loads(outputs(staged_report())["staged-packages"])
    assert [(row["name"], row["stage-id"], row["url"]) for row in rows] == [
        ("http", "5f0c", "https://registry.example/staged/5f0c"),
        ("extras", "", ""),
    ]
    assert "stage-id" not in json.loads(outputs(staged_report())["published-packages"])[0]


def test_notices_say_what_waits() -> None:
    found = [(level, notes) for level, notes in notices(staged_report()) if notes]
    assert found == [
        (
            "notice",
            [
                (
                    "2 packages wait for approval",
                    f"pypi:http, pypi:extras: approve with {spell('approve')}",
                )
            ],
        )
    ]
    (_, notes), *_ = (each for each in notices(outcomes(STAGED)) if each[1])
    assert notes[0][0] == "1 package waits for approval"


def test_notices_name_the_page_where_something_waits() -> None:
    page = "https://central.sonatype.com/publishing/deployments"
    where = ("1 package waits for approval", f"Press Publish or Drop at {page} for maven:g:a")
    found = [notes for _, notes in notices(report(on_page("g:a"))) if notes]
    assert found == [[where]]
    assert [
        note for notes in notices(report(on_page("g:a"), recorded("b"))) for note in notes[1]
    ] == [
        ("1 package waits for approval", f"npm:b: approve with {spell('approve')}"),
        where,
    ]
    assert where[1] in results_table(report(on_page("g:a")))
    assert "releasekit approve" not in results_table(report(on_page("g:a")))


@pytest.mark.parametrize(
    "run",
    [
        outcomes(ALREADY),
        outcomes(FAILED),
        outcomes(STAGED),
        outcomes(WOULD, dry_run=True),
        outcomes(),
    ],
)
def test_published_is_false_when_this_run_published_nothing(run: Report) -> None:
    assert outputs(run)["published"] == "false"


def test_outputs_are_single_lines_of_ascii_but_for_checksums() -> None:
    """R35: no text can start another output."""
    found = outputs(report(result("core", FAILED, reason="one\ntwo=three\u202e\ud800 ü")))
    assert all(value.isascii() and value.isprintable() for value in found.values())


def test_checksums_are_those_of_what_the_registry_has() -> None:
    names = ("core-1.0.0.tar.gz", "core-1.0.0-py3-none-any.whl")
    assert checksums(partial_report()).splitlines() == [f"{'ab' * 32}  {name}" for name in names]
    assert not checksums(report(result("x", FAILED, artifacts=(artifact(),))))


def test_files_of_one_name_are_told_apart_where_they_lie(tmp_path: Path) -> None:
    """R68: those of Go modules have no other name than their version."""
    both = [result(name, artifacts=(artifact("v1.zip"),)) for name in ("core", "app")]
    lines = checksums(report(*both, result("lib", artifacts=(artifact("lib.whl"),)))).splitlines()
    names = [line.partition("  ")[2] for line in lines]
    assert names[-1] == "lib.whl"
    package = both[0].package
    place = built_directory(package, tmp_path).relative_to(tmp_path / "dist")
    assert names[0] == f"{place}/v1.zip" == f"pypi/core/{package.version}/v1.zip"
    assert len(set(names)) == 3


def test_large_outputs_lose_checksums_first() -> None:
    """R40"""
    files = tuple(artifact(f"{n}-{'x' * 80}.whl") for n in range(300))
    found = outputs(report(*(result(f"p{n}", artifacts=files) for n in range(10))))
    assert not found["checksums"]
    assert json.loads(found["published-packages"])[0]["reason"] == "because"


def test_huge_outputs_keep_every_package() -> None:
    """R40"""
    run = report(*(result(f"p{n}", FAILED, reason="why " * 100) for n in range(2_000)))
    rows = json.loads(outputs(run)["failed-packages"])
    assert len(rows) == 2_000
    assert rows[0] == {"name": "p0", "version": "1.0.0", "ecosystem": "pypi"}


def test_plan_outputs_hold_a_matrix_of_the_work() -> None:
    found = plan_outputs(mixed_plan())
    assert json.loads(found["matrix"]) == {
        "include": [{"ecosystem": "pypi", "packages": "http\napp\nbroken"}]
    }
    assert (found["has-work"], found["ecosystems"]) == ("true", '["pypi"]')


def test_plan_outputs_without_work_say_so() -> None:
    found = plan_outputs(plan(step("core", Action.KEEP)))
    assert json.loads(found["matrix"]) == {"include": []}
    assert (found["has-work"], found["ecosystems"]) == ("false", '["pypi"]')


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (0, "0.0 s"),
        (0.44, "0.4 s"),
        (9.99, "10.0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (185, "3 min 5 s"),
        (7_800, "2 h 10 min"),
    ],
)
def test_durations_are_as_short_as_a_reader_needs(duration_s: float, text: str) -> None:
    assert seconds(duration_s) == text


def test_a_long_cell_makes_its_own_row_long_and_no_other() -> None:
    """R51"""
    rows = columns([("x" * 2**20, "a", "y" * 2**20), *[("b", "c", "d")] * 9])
    assert len(rows[0]) == 2 * 2**20 + 5
    assert {len(row) for row in rows[1:]} == {100 + 2 + 1 + 2 + 1}


def test_columns_are_aligned_and_one_line_a_row() -> None:
    """R35"""
    assert columns([("a", "b"), ("longer", "::error::x\ny")]) == [
        "a       b",
        "longer  : :error::x y",
    ]
