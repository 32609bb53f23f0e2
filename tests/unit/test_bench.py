"""The arithmetic of bench/release: what its tables say has been counted rightly."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.release.measure import Cost, idle_share, too_early
from bench.release.place import Scenario
from bench.release.rounds import Measured, medians
from bench.release.shape import levels_of, shape
from bench.release.tables import between_marks

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("packages", [2, 10, 60, 300])
def test_each_package_needs_two_of_the_level_below(packages: int) -> None:
    made = shape(packages)
    assert len(made) == packages
    depth: dict[str, int] = {}
    for name, needs in made.items():
        depth[name] = 1 + max((depth[need] for need in needs), default=0)
        assert {depth[need] for need in needs} <= {depth[name] - 1}
        assert len(needs) in ({0} if depth[name] == 1 else {1, 2})
    assert max(depth.values()) == levels_of(packages)


def test_a_slot_is_idle_where_no_upload_of_a_package_is_under_way() -> None:
    # Two slots for ten seconds: one package for four, with two files at once, another for eight.
    uploads = [("a", 2.0, 6.0), ("a", 3.0, 5.0), ("b", 2.0, 10.0)]
    assert idle_share(uploads, 0.0, 2) == pytest.approx(1 - 12 / 20)
    assert idle_share(uploads, 0.0, 1) == pytest.approx(1 - 8 / 10)


def test_what_is_sent_before_something_that_it_needs_is_counted() -> None:
    needs = {"a": (), "b": ("a",), "c": ("a", "b")}
    in_order = [("a", 0.0, 1.0), ("b", 1.0, 2.0), ("c", 2.0, 3.0)]
    assert too_early(in_order, needs) == 0
    assert too_early([("@acme/a", 0.0, 1.0), ("b", 0.5, 2.0), ("c", 2.0, 3.0)], needs) == 1
    assert too_early([*in_order, ("a", 2.0, 2.5)], needs) == 2


def test_ratios_are_of_ways_in_the_same_round() -> None:
    scenario = Scenario("npm", 60, 0.2)
    seconds = {"quick": (1.0, 2.0, 8.0), "slow": (3.0, 8.0, 16.0)}
    measured = [
        Measured(scenario, way, 16, number, _cost(wall_s))
        for way, each in seconds.items()
        for number, wall_s in enumerate(each)
    ]
    quick, slow = medians(measured)
    assert (quick.cost.wall_s, slow.cost.wall_s) == (2.0, 8.0)
    assert slow.over["quick"] == 3.0  # of 3, 4 and 2
    assert slow.rounds == 3


def test_the_page_has_a_place_for_the_tables() -> None:
    page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    once = between_marks(page, "measured")
    assert between_marks(once, "\0").replace("\0", "measured") == once
    with pytest.raises(SystemExit, match="begin"):
        between_marks("nothing", "measured")


def _cost(wall_s: float) -> Cost:
    return Cost(
        wall_s=wall_s,
        cpu_s=0.0,
        peak_bytes=0,
        requests=0,
        connections=0,
        first_upload_s=0.0,
        idle=0.0,
        early=0,
        server_cpu_s=0.0,
        published={},
    )
