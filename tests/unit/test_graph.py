from __future__ import annotations

import pytest

from releasekit.errors import Cycle, UnknownDependency
from releasekit.graph import DependencyGraph


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
