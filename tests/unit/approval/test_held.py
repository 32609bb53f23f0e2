from __future__ import annotations

import pytest

from approvals import recorded
from releasekit.approval.review import Held
from releasekit.errors import ConfigError
from releasekit.fields import replace
from releasekit.model import Outcome, PackageId, Report, Result


def name(text: str) -> PackageId:
    return PackageId("npm", text)


def held(edges: dict[str, list[str]], *others: Result, **staged: Result) -> Held:
    results = [staged.get(each, recorded(each)) for each in edges]
    results = [next((o for o in others if o.package.id == r.package.id), r) for r in results]
    report = Report(
        run_id="run",
        plan_digest="",
        commit="",
        started_at="2026-11-22T12:00:00+00:00",
        duration_s=1.0,
        results=tuple(results),
        edges={name(each): frozenset(map(name, on)) for each, on in edges.items()},
    )
    return Held.of(report, "results.json", lambda _: True)


def test_dependencies_come_first_by_level() -> None:
    found = held({"web": ["api", "core"], "api": ["core"], "core": [], "also": []})
    assert [each.name for each in found.recorded] == ["also", "core", "api", "web"]
    assert {each.name: level for each, level in found.levels().items()} == {
        "also": 1,
        "core": 1,
        "api": 2,
        "web": 3,
    }
    assert found.needed_by()[name("core")] == [name("api"), name("web")]


def test_what_is_published_in_between_orders_as_well() -> None:
    between = replace(recorded("api"), outcome=Outcome.PUBLISHED)
    found = held({"web": ["api"], "api": ["core"], "core": []}, between)
    assert found.needs == {name("core"): frozenset(), name("web"): {name("core")}}


def test_what_was_blocked_waits_behind() -> None:
    blocked = replace(recorded("web"), outcome=Outcome.BLOCKED)
    other = replace(recorded("other"), outcome=Outcome.BLOCKED)
    found = held({"web": ["core"], "core": [], "other": ["missing"]}, blocked, other)
    assert found.behind == {name("web"): {name("core")}}


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.UNKNOWN, Outcome.BLOCKED])
def test_what_needs_something_that_is_nowhere_is_told(outcome: Outcome) -> None:
    """R1"""
    core = replace(recorded("core"), outcome=outcome)
    found = held({"web": ["core"], "core": [], "other": []}, core)
    assert found.lacks == {name("web"): {name("core")}}


def test_a_cycle_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"results.json: a dependency cycle: npm:\w -> npm:\w"):
        held({"a": ["b"], "b": ["a"]})


@pytest.mark.parametrize("lacks", [{"artifacts": ()}, {"staged": None}])
def test_what_cannot_be_compared_is_refused(lacks: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="its files are not on record"):
        held({"core": []}, replace(recorded("core"), **lacks))  # type: ignore[arg-type]
