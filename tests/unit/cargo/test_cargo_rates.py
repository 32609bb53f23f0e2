"""The rate plan of crates.io."""

from __future__ import annotations

import pytest

from releasekit.ecosystems.cargo.rates import Limit, Pace, plan_note


@pytest.mark.parametrize(
    ("new_crates", "new_versions", "time"),
    [(6, 0, "10 min"), (12, 30, "1 h 10 min"), (12, 3, "1 h 10 min"), (0, 31, "1 min"),
     (6, 60, "30 min")],
)  # fmt: skip
def test_how_long_a_release_takes_is_said_before_it_begins(
    new_crates: int, new_versions: int, time: str
) -> None:
    note = plan_note(new_crates=new_crates, new_versions=new_versions)
    assert f"takes at least {time}:" in note


@pytest.mark.parametrize(("new_crates", "new_versions"), [(0, 0), (5, 30)])
def test_where_nobody_has_to_wait_nothing_is_said(new_crates: int, new_versions: int) -> None:
    assert plan_note(new_crates=new_crates, new_versions=new_versions) == ""


def test_nobody_waits_before_the_registry_has_said_so() -> None:
    assert Pace(Limit(5, 600.0)).wait_s("a", 0.0) == 0.0


def test_each_gets_a_turn_of_its_own() -> None:
    pace = Pace(Limit(5, 600.0))
    assert pace.refused("a", 100.0, 30.0) == 30.0
    assert pace.refused("b", 100.0, 30.0) == 630.0
    assert pace.wait_s("c", 110.0) == 1220.0
    assert pace.wait_s("a", 130.0) == 0.0
    pace.taken("a")
    assert pace.wait_s("b", 600.0) == 130.0
    assert pace.wait_s("b", 730.0) == 0.0
    assert pace.wait_s("c", 1330.0) == 0.0


def test_who_is_refused_in_its_turn_goes_behind_the_others() -> None:
    pace = Pace(Limit(5, 600.0))
    pace.refused("a", 0.0, 10.0)
    pace.refused("b", 0.0, 10.0)
    assert pace.refused("a", 10.0, 5.0) == 1200.0


def test_once_all_turns_are_over_nobody_waits() -> None:
    pace = Pace(Limit(1, 1.0))
    pace.refused("a", 0.0, 1.0)
    assert pace.wait_s("b", 5.0) == 0.0
    pace.taken("a")
    pace.taken("b")
    assert pace.wait_s("b", 0.5) == 0.0
