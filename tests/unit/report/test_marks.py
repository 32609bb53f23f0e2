"""Squares of one colour for each outcome."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from releasekit.model import Action, Outcome
from releasekit.report.marks import ACTIONS, OUTCOMES, bar, legend

MARKS = list(OUTCOMES.values())


def test_every_outcome_and_every_action_has_a_mark_with_a_word() -> None:
    assert set(OUTCOMES) == set(Outcome)
    assert set(ACTIONS) == set(Action)
    for marks in (OUTCOMES, ACTIONS):
        assert len({mark.word for mark in marks.values()}) == len(marks)
    # Only what was published and what would be look alike.
    for signs in ({mark.sign for mark in MARKS}, {mark.ascii for mark in MARKS}):
        assert len(signs) == len(MARKS) - 1


@given(st.lists(st.integers(0, 10_000), min_size=len(MARKS), max_size=len(MARKS)))
def test_a_bar_shows_everything_there_is_by_its_share(numbers: list[int]) -> None:
    """R47: one failure of 10,000 packages is seen."""
    counts = list(zip(MARKS, numbers, strict=True))
    squares = bar(counts)
    assert len(squares) == min(sum(numbers), 30)
    assert {mark.square for mark, number in counts if number} == set(squares)
    for mark, number in counts:
        assert (f"**{number}** {mark.word}" in legend(counts)) == bool(number)


def test_a_bar_is_as_long_as_there_are_packages_in_a_small_release() -> None:
    published, failed = OUTCOMES[Outcome.PUBLISHED], OUTCOMES[Outcome.FAILED]
    assert bar([(published, 2), (failed, 1)]) == "🟩🟩🟥"
    assert bar([(published, 999), (failed, 1)]) == "🟩" * 29 + "🟥"
    assert bar([]) == ""
