"""Every reachable state of the real Frontier equals its specification, and none is a dead end."""

from __future__ import annotations

import itertools

import pytest

from effort import SEARCHING
from simulation.exhaustive import (
    Moves,
    ends,
    everything,
    explore,
    graphs,
    marks,
    removals,
    retries,
    width,
)


@pytest.mark.parametrize("size", [1, 2, 3, 4, *([5] if SEARCHING else [])])
def test_every_order_of_ends_cancels_and_kills(size: int) -> None:
    """R1, R2, R4, R5, R6, R8, R9"""
    for graph in graphs(size):
        for limit in range(1, width(graph) + 1):
            assert explore(graph, limit, ends) > 0


@pytest.mark.parametrize(
    ("size", "moves"),
    [
        (3, retries),
        (2, removals),
        (1, everything),
        (2, everything),
        *([(4, retries), (3, removals)] if SEARCHING else []),
    ],
)
def test_retries_removals_and_pauses_at_every_moment(size: int, moves: Moves) -> None:
    """R10, R11"""
    for graph in graphs(size):
        for limit in range(1, width(graph) + 1):
            assert explore(graph, limit, moves) > 0


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("size", [1, 2, *([3] if SEARCHING else [])])
def test_what_others_do_and_what_is_completed_after_a_cancel(size: int, sequential: bool) -> None:
    """R41, R42: with anything that waits for something in a lane that completes."""
    for graph in graphs(size):
        later = [name for name, after in graph.items() if after]
        for count in range(len(later) + 1):
            for confirms in itertools.combinations(later, count):
                explored = explore(graph, 1, marks, confirms=confirms, sequential=sequential)
                assert explored > 0


def test_the_graphs_are_all_there_are() -> None:
    # https://oeis.org/A003087: acyclic digraphs with n unlabeled nodes
    assert [sum(1 for _ in graphs(size)) for size in range(1, 6)] == [1, 2, 6, 31, 302]
