from __future__ import annotations

from pathlib import Path

import pytest

from releasekit.errors import Cycle, PlanError, UnknownDependency
from releasekit.graph import DependencyGraph
from releasekit.model import Dependency, Package, PackageId


def package(name: str, *on: str, version: str = "1.0") -> Package:
    return Package(
        id=PackageId("pypi", name),
        version=version,
        directory=Path("/w") / name,
        manifest=Path("/w") / name / "pyproject.toml",
        dependencies=tuple(Dependency(on=PackageId("pypi", other)) for other in on),
    )


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


def test_packages_become_names_with_their_ecosystem() -> None:
    graph = DependencyGraph.from_packages([package("app", "core", "app"), package("core")])
    assert graph.order == ("pypi:core", "pypi:app")
    assert graph.edges["pypi:app"] == {"pypi:core"}


def test_a_package_that_is_there_twice_is_an_error() -> None:
    with pytest.raises(PlanError, match="pypi:core is there more than once"):
        DependencyGraph.from_packages([package("core"), package("core", version="2.0")])


DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "x": []}


def test_dependents_and_what_waits_for_them() -> None:
    graph = DependencyGraph.from_edges(DIAMOND)
    assert graph.dependents() == {"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": [], "x": []}
    assert graph.transitive_dependents(["a"]) == {"b", "c", "d"}
    assert graph.transitive_dependents(["b", "x"]) == {"d"}
    assert graph.transitive_dependents([]) == frozenset()


@pytest.mark.parametrize(
    ("durations", "path"),
    [
        (None, ("a", "b", "d")),
        ({"a": 1.0, "b": 1.0, "c": 2.0, "d": 1.0}, ("a", "c", "d")),
        ({"x": 9.0}, ("x",)),
    ],
)
def test_critical_path(durations: dict[str, float] | None, path: tuple[str, ...]) -> None:
    assert DependencyGraph.from_edges(DIAMOND).critical_path(durations) == path


def test_nothing_has_no_critical_path() -> None:
    assert DependencyGraph.from_edges({}).critical_path() == ()


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
    assert len(graph.critical_path()) == depth
    assert len(graph.transitive_dependents([names[0]])) == depth - 1
    with pytest.raises(Cycle) as caught:
        DependencyGraph.from_edges(edges | {names[0]: [names[-1]]})
    assert len(caught.value.names) == depth


def test_a_hundred_thousand_packages_are_ordered() -> None:
    edges = {f"n{at}": [f"n{at - 7}"] if at >= 7 else [] for at in range(100_000)}
    assert len(DependencyGraph.from_edges(edges)) == 100_000
