"""Two thousand seeded runs of the real Scheduler. A seed that fails is replayed, with its trace, by
`python tests/simulation/simulate.py SEED`.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import pytest

from effort import tries
from simulation.scenario import draw
from simulation.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = tries("SCHEDULES", sample=2_000, all_of_them=10_000)
FIRST = int(os.environ.get("FIRST_RUN", "0"))
CHUNK = 500


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    # Observers fail on purpose in many of these runs, and each failure is logged.
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("first", range(FIRST, FIRST + RUNS, CHUNK))
def test_no_run_breaks_a_rule(first: int) -> None:
    """R1, R2, R3, R4, R6, R10, R11, R12, R29"""
    for seed in range(first, first + CHUNK):
        simulate(seed)


def test_outcomes_do_not_depend_on_the_order_of_wake_ups() -> None:
    """R5: what was drawn to happen to each package is the same, all that differs is the order."""
    calm = [s for s in range(RUNS // 2) if not draw(s).events and draw(s).outer_timeout_s is None]
    assert len(calm) > RUNS / 8
    for seed in calm:
        (_, first), (_, second) = simulate(seed), simulate(seed, order=seed + 1)
        assert first is not None
        assert second is not None
        assert dict(first.outcomes) == dict(second.outcomes)
        assert first.reasons == second.reasons


def test_a_seed_is_a_run() -> None:
    """R13. But for a cancelled TaskGroup, which ends its tasks in no particular order."""
    for seed in (s for s in range(200) if draw(s).outer_timeout_s is None):
        assert simulate(seed)[0].trace == simulate(seed)[0].trace


def test_the_runs_see_everything_that_may_happen() -> None:
    seen = "\n".join("\n".join(simulate(seed)[0].trace) for seed in range(300))
    for what in (
        *(
            "retry",
            "pause",
            "resume",
            "remove",
            "bar",
            "add",
            "cancel",
            "grace",
            "lane",
            "finish",
            "mark",
        ),
        *("blocked by", "removed", "failed", "unknown", "cancelled", "already-published"),
        *("hang", "late", "itself", "foreign", "busy", "CancelledError"),
    ):
        assert what in seen, what
