"""The battery in short, made to fail early: what a mutant has to get past."""

from __future__ import annotations

import logging

from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from simulation.exhaustive import ends, everything, explore, graphs, marks, retries, width
from simulation.simulate import simulate
from simulation.test_properties import (
    Histories,
    test_a_queue_of_any_length_gives_its_smallest,
)

SEEDS = 1_000
# Who judges need not find the smallest example.
FEW = settings(
    max_examples=160,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    phases=(Phase.generate,),
)


def judge() -> None:
    """Raises at the first thing that is wrong."""
    logging.disable(logging.CRITICAL)
    for seed in range(200):
        simulate(seed)
    test_a_queue_of_any_length_gives_its_smallest()
    batteries = (
        (2, everything),
        (3, ends),
        (3, retries),
        (4, ends),
    )
    for size, moves in batteries:
        for graph in graphs(size):
            for limit in range(1, width(graph) + 1):
                explore(graph, limit, moves)
    for graph in graphs(3):
        for sequential in (False, True):
            later = [name for name, after in graph.items() if after]
            explore(graph, 1, marks, confirms=later, sequential=sequential)
    run_state_machine_as_test(Histories, settings=FEW)
    for seed in range(200, SEEDS):
        simulate(seed)


if __name__ == "__main__":
    judge()
