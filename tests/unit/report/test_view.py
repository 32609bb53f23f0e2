"""Who is to blame, what shares a row, and how many packages wait for one that did not go out."""

from __future__ import annotations

from itertools import pairwise

import pytest

from releasekit.model import Outcome
from releasekit.report.text import without_name
from releasekit.report.view import Row, View, waiting_clause
from sample_runs import package, report, result


def test_a_failure_of_two_hundred_fits_one_screen() -> None:
    blocked = [f"b{number:03}" for number in range(158)]
    done = [result(f"a{number:02}") for number in range(41)]
    failed = result("core", Outcome.FAILED, reason="pypi:core 1.0.0: it did not build")
    rest = [result(name, Outcome.BLOCKED, reason=f"needs {name[0]}") for name in blocked]
    chain: dict[str, tuple[str, ...]] = {name: (on,) for on, name in pairwise(["core", *blocked])}
    assert View(report(*done, failed, *rest, edges=chain)).rows == [
        Row(
            "158 packages",
            "",
            Outcome.BLOCKED,
            "wait for pypi:core, which failed: pypi:b000, pypi:b001, pypi:b002 and 155 more",
        ),
        Row(
            "pypi:core",
            "1.0.0",
            Outcome.FAILED,
            "it did not build; 158 packages wait for it",
        ),
    ]


def test_a_few_have_rows_of_their_own_that_name_what_failed() -> None:
    """Not what lies in between."""
    made = report(
        result("core", Outcome.UNKNOWN, reason="no answer"),
        result("http", Outcome.BLOCKED, reason="needs pypi:core, which is unknown"),
        result("app", Outcome.BLOCKED, reason="needs pypi:http, which is blocked by pypi:core"),
        edges={"http": ("core",), "app": ("http",)},
    )
    assert [(row.package, row.why) for row in View(made).rows] == [
        ("pypi:http", "needs pypi:core, which is unknown"),
        ("pypi:app", "needs pypi:core, which is unknown"),
        ("pypi:core", "no answer; 2 packages wait for it"),
    ]


def test_what_is_done_has_a_row_only_with_something_to_do() -> None:
    made = report(
        result("core"),
        result("kept", Outcome.ALREADY_PUBLISHED),
        result("plan", Outcome.WOULD_PUBLISH),
        result("http", reason="published; its script failed", hint="Run it by hand."),
    )
    assert [row.package for row in View(made).rows] == ["pypi:http"]


def test_the_same_failure_of_many_is_one_row() -> None:
    many = [result(f"p{number}", Outcome.FAILED, reason="HTTP 401") for number in range(4)]
    (row,) = View(report(*many)).rows
    assert (row.package, row.why) == (
        "4 packages",
        "HTTP 401: pypi:p0, pypi:p1, pypi:p2 and 1 more",
    )


def test_what_became_of_a_dependency_is_told_in_plain_words() -> None:
    made = report(
        result("core", Outcome.REMOVED, reason="left out"),
        result("app", Outcome.BLOCKED, reason="no"),
        edges={"app": ("core",)},
    )
    whys = {row.package: row.why for row in View(made).rows}
    assert whys["pypi:app"] == "needs pypi:core, which was left out"


def test_what_is_blocked_by_nothing_in_the_plan_says_its_own_reason() -> None:
    made = report(
        result("app", Outcome.BLOCKED, reason="needs npm:other, which another job did not publish")
    )
    (row,) = View(made).rows
    assert row.why == "needs npm:other, which another job did not publish"


def test_rows_hold_no_commands_to_the_terminal() -> None:
    """R35"""
    (row,) = View(report(result("a\x1b[2J", Outcome.FAILED, reason="\x1b[2J"))).rows
    assert row.package.isprintable()
    assert row.why.isprintable()


@pytest.mark.parametrize(
    ("reason", "rest"),
    [
        ("pypi:core 1.0.0: no", "no"),
        ("pypi:core: no", "no"),
        ("pypi:core needs more", "needs more"),
        ("pypi:core-http 1.0.0: no", "pypi:core-http 1.0.0: no"),
        ("pypi:core", "pypi:core"),
        ("", ""),
    ],
)
def test_a_name_that_stands_beside_is_not_repeated(reason: str, rest: str) -> None:
    assert without_name(reason, package("core")) == rest


FAILED, BLOCKED, UNKNOWN = Outcome.FAILED, Outcome.BLOCKED, Outcome.UNKNOWN


def test_what_waits_directly_or_not_counts_once() -> None:
    """R47: `app` needs `core` on two ways; who mends `core` gets three packages for it."""
    needs = {"core": "", "left": "core", "right": "core", "app": "left right core"}
    assert counts(needs, core=FAILED) == {"core": 3}


def test_what_failed_by_itself_is_a_root_of_its_own() -> None:
    needs = {"core": "", "late": "core", "app": "late"}
    assert counts(needs, core=FAILED, late=FAILED) == {"late": 1}


def test_what_needs_two_that_failed_waits_for_both() -> None:
    needs = {"core": "", "other": "", "app": "core other"}
    assert counts(needs, core=FAILED, other=UNKNOWN) == {"core": 1, "other": 1}


def test_nobody_waits_for_what_is_there() -> None:
    needs = {"base": "", "core": "base", "app": "core", "free": "base"}
    run = counts(needs, base=Outcome.PUBLISHED, core=FAILED, free=Outcome.PUBLISHED)
    assert run == {"core": 1}


def test_a_long_chain_and_dependencies_of_other_plans_do_no_harm() -> None:
    names = [f"p{number:05}" for number in range(1_500)]
    needs = dict(zip(names, ["elsewhere", *names], strict=False))
    assert counts(needs, p00000=FAILED) == {"p00000": 1_499}


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, ""), (1, "1 package waits for it"), (41, "41 packages wait for it")],
)
def test_it_is_said_in_words(count: int, words: str) -> None:
    assert waiting_clause(count) == words


def counts(needs: dict[str, str], **ended: Outcome) -> dict[str, int]:
    """`ended` by name; what it does not name is blocked."""
    run = report(
        *(result(name, ended.get(name, BLOCKED)) for name in needs),
        edges={name: tuple(text.split()) for name, text in needs.items()},
    )
    return {package.name: count for package, count in View(run).waiting.items()}


def test_the_roots_of_what_is_blocked_are_found_through_all_that_lies_between() -> None:
    """The terminal names the first in publish order; the summary names up to five that failed."""
    failed = [f"f{number}" for number in range(6)]
    run = report(
        result("left-out", Outcome.REMOVED),
        *(result(name, FAILED) for name in reversed(failed)),
        result("late", UNKNOWN),
        result("http", BLOCKED),
        result("app", BLOCKED),
        result("alone", BLOCKED),
        edges={"http": ("left-out", *failed), "app": ("http", "late"), "alone": ("elsewhere",)},
    )
    roots = {name.name: found for name, found in View(run).roots.items()}
    five = tuple(package(name).id for name in failed[:5])
    assert roots["http"] == roots["app"] == (package("left-out").id, five)
    assert roots["alone"] == (None, ())
