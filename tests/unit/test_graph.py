from __future__ import annotations

from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from releasekit.errors import Cycle, UnknownDependency
from releasekit.graph import DependencyGraph, levels_above, reachable, rings, without_cycles


def test_order_has_dependencies_first_and_ties_by_name() -> None:
    """R9, R13"""
    graph = DependencyGraph.from_edges({"d": ["b", "c"], "c": ["a"], "b": ["a"], "a": [], "e": []})
    assert graph.order == ("a", "b", "c", "d", "e")
    assert list(graph) == list(graph.order)
    assert len(graph) == 5
    assert "a" in graph
    assert "x" not in graph
    assert graph.edges["d"] == {"b", "c"}


@pytest.mark.parametrize(
    ("edges", "names"),
    [
        ({"a": ["a"]}, ("a",)),
        ({"b": ["a"], "a": ["b"], "x": ["b"]}, ("a", "b")),
        ({"c": ["a"], "b": ["c"], "a": ["b"], "free": []}, ("a", "b", "c")),
    ],
)
def test_a_cycle_is_named_whole(edges: dict[str, list[str]], names: tuple[str, ...]) -> None:
    """R7"""
    with pytest.raises(Cycle) as caught:
        DependencyGraph.from_edges(edges)
    assert caught.value.names == names
    assert str(caught.value).startswith(" -> ".join((*names, names[0])) + ":")
    assert caught.value.exit_code == 3


def test_an_unknown_dependency_is_an_error() -> None:
    """R7"""
    with pytest.raises(UnknownDependency, match="a depends on y, z, which"):
        DependencyGraph.from_edges({"a": ["z", "y"]})


def test_what_many_packages_offer_an_edge_to_is_walked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thousands may have an extra that names the package which needs all of them."""
    walks = Mock(wraps=reachable)
    monkeypatch.setattr("releasekit.graph.reachable", walks)
    names = [f"p{number}" for number in range(100)]
    hard = {"all": names, "docs": [], **{name: [] for name in names}}
    offered = [(name, on) for name in names for on in ("all", "docs")]
    assert without_cycles(hard, offered) == [(name, "docs") for name in names]
    assert walks.call_count == 1


def test_an_edge_that_was_kept_leads_further_from_then_on() -> None:
    hard: dict[str, list[str]] = {"app": [], "core": [], "glue": []}
    offered = [("app", "core"), ("core", "glue"), ("glue", "core")]
    assert without_cycles(hard, offered) == [("app", "core"), ("core", "glue")]


def test_restricting_looks_through_what_is_left_out() -> None:
    graph = DependencyGraph.from_edges(
        {"app": ["glue"], "glue": ["core", "log"], "core": [], "log": []}
    )
    assert dict(graph.restricted_to({"app", "core"}).edges) == {
        "app": frozenset({"core"}),
        "core": frozenset(),
    }
    assert graph.restricted_to(list(graph)) is graph
    with pytest.raises(UnknownDependency, match="ghost"):
        graph.restricted_to({"ghost"})


def test_depth_costs_no_stack() -> None:
    """R6"""
    depth = 5_000
    names = [f"n{at:05}" for at in range(depth)]
    edges = {name: names[max(0, at - 1) : at] for at, name in enumerate(names)}
    graph = DependencyGraph.from_edges(edges)
    assert graph.order == tuple(names)
    with pytest.raises(Cycle) as caught:
        DependencyGraph.from_edges(edges | {names[0]: [names[-1]]})
    assert len(caught.value.names) == depth


def test_a_hundred_thousand_packages_are_ordered() -> None:
    edges = {f"n{at}": [f"n{at - 7}"] if at >= 7 else [] for at in range(100_000)}
    assert len(DependencyGraph.from_edges(edges)) == 100_000


def test_what_is_reachable_includes_where_it_starts_and_may_lead_in_circles() -> None:
    edges = {"a": ["b"], "b": ["c", "a"], "c": [], "d": ["a"]}
    assert reachable(["b"], edges.__getitem__) == {"a", "b", "c"}
    assert reachable([], edges.__getitem__) == set()


def test_a_soft_edge_gives_way_to_hard_ones_and_to_those_before_it() -> None:
    """R7"""
    hard = {"app": [], "core": ["base"], "base": [], "docs": []}
    offered = [("base", "core"), ("app", "docs"), ("docs", "app"), ("app", "docs")]
    assert without_cycles(hard, offered) == [("app", "docs")]


def test_rings_are_told_from_what_is_between_and_beside_them() -> None:
    edges = {
        "app": ["a"],
        "a": ["b", "c", "base"],
        "b": ["a"],
        "c": ["d"],
        "d": ["c"],
        "base": [],
    }
    assert sorted(map(sorted, rings(edges))) == [["a", "b"], ["c", "d"]]
    assert rings({}) == []


NAMES = st.integers(0, 7)
PAIRS = st.tuples(NAMES, NAMES).filter(lambda pair: pair[0] != pair[1])


@given(st.lists(PAIRS, max_size=20))
def test_all_of_a_ring_lead_to_each_other(pairs: list[tuple[int, int]]) -> None:
    edges = {name: {on for owner, on in pairs if owner == name} for name in range(8)}
    ahead = {name: reachable([name], edges.__getitem__) for name in edges}
    together = {
        (one, other)
        for one in edges
        for other in ahead[one]
        if one != other and one in ahead[other]
    }
    assert together == {
        (one, other) for ring in rings(edges) for one in ring for other in ring if one != other
    }


@given(st.lists(PAIRS, max_size=20), st.lists(PAIRS, max_size=20))
def test_soft_edges_are_kept_unless_they_close_a_cycle(
    needs: list[tuple[int, int]], offered: list[tuple[int, int]]
) -> None:
    """Hard edges lead to lower names here, so that they form no cycle by themselves."""
    edges: dict[int, set[int]] = {name: set() for name in range(8)}
    for one, other in needs:
        edges[max(one, other)].add(min(one, other))
    kept = without_cycles(edges, offered)
    complete = {
        name: on | {other for owner, other in kept if owner == name} for name, on in edges.items()
    }
    DependencyGraph.from_edges(complete)  # raises Cycle
    for name, other in set(offered) - set(kept):
        assert name in reachable([other], complete.__getitem__)


def test_how_many_follow_one_another_above_each() -> None:
    edges = {"core": [], "text": ["core"], "cli": ["text", "core", "elsewhere"], "lone": []}
    assert levels_above(edges) == {"core": 2, "text": 1, "cli": 0, "lone": 0}
    assert levels_above({"a": ["b"], "b": ["a"]}) == {"a": 0, "b": 0}
