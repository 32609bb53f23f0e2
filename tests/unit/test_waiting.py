"""How many packages wait for one that did not go out."""

from __future__ import annotations

import pytest

from releasekit.model import Outcome
from releasekit.report.waiting import wait_for_it, waiting_for
from sample_runs import report, result

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
    names = [f"p{number:05}" for number in range(5_000)]
    needs = dict(zip(names, ["elsewhere", *names], strict=False))
    assert counts(needs, p00000=FAILED) == {"p00000": 4_999}


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, ""), (1, "1 package waits for it"), (41, "41 packages wait for it")],
)
def test_it_is_said_in_words(count: int, words: str) -> None:
    assert wait_for_it(count) == words


def counts(needs: dict[str, str], **ended: Outcome) -> dict[str, int]:
    """`ended` by name; what it does not name is blocked."""
    run = report(
        *(result(name, ended.get(name, BLOCKED)) for name in needs),
        edges={name: tuple(text.split()) for name, text in needs.items()},
    )
    return {package.name: count for package, count in waiting_for(run).items()}
