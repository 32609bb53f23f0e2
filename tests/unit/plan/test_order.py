"""What a release can do without gives way where it closes a cycle; the rest names the cycle."""

from __future__ import annotations

import pytest

import fakes
from fakes import package_id
from releasekit.errors import Cycle
from releasekit.fields import replace
from releasekit.model import Dependency, DependencyKind, Package, PackageId
from releasekit.plan.order import in_order, without_soft_cycles

RUNTIME, BUILD = DependencyKind.RUNTIME, DependencyKind.BUILD
INDIRECT = DependencyKind.INDIRECT
DEV = DependencyKind.DEV
PEER, OPTIONAL, ORDER = DependencyKind.PEER, DependencyKind.OPTIONAL, DependencyKind.ORDER


def package(name: str, **needs: DependencyKind) -> Package:
    """What it needs of each kind; all but runtime and build dependencies are soft."""
    dependencies = tuple(
        Dependency(on=package_id(on), kind=kind, soft=kind not in {RUNTIME, BUILD})
        for on, kind in needs.items()
    )
    return replace(fakes.package(name), dependencies=dependencies)


def running(name: str, **needs: DependencyKind) -> Package:
    """All that it needs is soft."""
    made = package(name, **needs)
    return replace(made, dependencies=tuple(replace(n, soft=True) for n in made.dependencies))


def ordered(*packages: Package) -> tuple[list[str], tuple[str, ...]]:
    """Names, first to last, and the notes."""
    remaining, notes = without_soft_cycles({each.id: each for each in packages})
    return [each.id.name for each in in_order([*remaining.values()])], notes


def test_an_optional_dependency_gives_way_to_a_peer() -> None:
    """R7: npm and pnpm publish such a pair."""
    names, notes = ordered(package("a", b=OPTIONAL), package("b", a=PEER))
    assert names == ["a", "b"]
    assert notes == (
        "fake: dependencies that close a cycle do not order the release: a -> b (optional)",
    )


def test_a_peer_gives_way_to_what_is_needed() -> None:
    names, notes = ordered(package("a", b=PEER), package("b", c=RUNTIME), package("c", a=BUILD))
    assert names == ["a", "c", "b"]
    assert "a -> b (peer)" in notes[0]


def test_what_is_needed_at_run_time_gives_way_last() -> None:
    """R7: of Go modules that require one another, what is imported counts for more."""
    names, notes = ordered(running("a", b=OPTIONAL), running("b", a=RUNTIME))
    assert names == ["a", "b"]
    names, notes = ordered(running("a", b=INDIRECT), running("b", a=RUNTIME))
    assert names == ["a", "b"]
    assert notes == (
        "fake: dependencies that close a cycle do not order the release: a -> b (indirect)",
    )
    names, _ = ordered(running("a", b=RUNTIME), running("b", a=RUNTIME))
    assert names == ["b", "a"]


def test_what_goes_first_of_a_cycle_waits_for_what_the_others_need() -> None:
    """R6: without them it is of no use."""
    outer = package("a", c=RUNTIME)
    ring = Dependency(on=package_id("b"), soft=True)
    packages = [
        replace(outer, dependencies=(ring, *outer.dependencies)),
        running("b", a=RUNTIME),
        package("c"),
        package("d", b=RUNTIME),
    ]
    remaining, notes = without_soft_cycles({each.id: each for each in packages})
    assert "b -> a (runtime)" in notes[0]
    assert [each.id.name for each in in_order([*remaining.values()])] == ["c", "b", "a", "d"]
    first = remaining[package_id("b")]
    assert first.dependencies == (Dependency(on=package_id("c"), kind=INDIRECT),)
    assert [need.on.name for need in first.set_aside] == ["a"]
    unchanged = {package_id(name) for name in "acd"}
    assert all(remaining[each.id] == each for each in packages if each.id in unchanged)


def test_a_development_dependency_gives_way_to_an_optional_one() -> None:
    """R48: cargo publishes such a pair, and the plan says how."""
    names, notes = ordered(package("a", b=DEV), package("b", a=OPTIONAL))
    assert names == ["a", "b"]
    assert "a -> b (dev)" in notes[0]


def test_what_closes_no_cycle_orders_the_release_and_is_no_news() -> None:
    names, notes = ordered(package("a", b=OPTIONAL, c=PEER), package("b"), package("c"))
    assert names == ["b", "c", "a"]
    assert notes == ()


def test_nobody_is_told_of_what_nobody_needs() -> None:
    """Most parents manage the versions of their own children."""
    names, notes = ordered(package("parent", child=ORDER), package("child", parent=RUNTIME))
    assert names == ["parent", "child"]
    assert notes == ()


def test_a_note_names_a_few_of_many() -> None:
    plugins = {f"p{number}": OPTIONAL for number in range(9)}
    users = [package(name, core=RUNTIME) for name in plugins]
    names, (note,) = ordered(package("core", **plugins), *users)
    assert names[0] == "core"
    assert "core -> p4 (optional) and 4 more" in note
    assert "p5" not in note


def test_what_is_outside_of_the_plan_orders_nothing() -> None:
    lone = replace(
        package("a"),
        dependencies=(Dependency(on=PackageId("fake", "gone"), kind=OPTIONAL, soft=True),),
    )
    remaining, notes = without_soft_cycles({lone.id: lone})
    assert remaining == {lone.id: lone}
    assert notes == ()


def test_a_cycle_says_of_each_dependency_what_it_is_for() -> None:
    """R7"""
    packages = [package("a", b=RUNTIME), package("b", c=BUILD), package("c", a=RUNTIME)]
    with pytest.raises(Cycle) as caught:
        in_order(packages)
    assert "fake:a needs fake:b (runtime); fake:b needs fake:c (build); fake:c needs" in str(
        caught.value
    )
    assert caught.value.names == ("fake:a", "fake:b", "fake:c")
