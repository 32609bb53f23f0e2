"""Groups of packages, for graphs that are too large to draw."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from releasekit.model import Outcome, PackageId
from releasekit.report.layers import Grouped, grouped, layers
from releasekit.report.marks import OUTCOMES

DONE, FAILED, BLOCKED = (
    OUTCOMES[outcome] for outcome in (Outcome.PUBLISHED, Outcome.FAILED, Outcome.BLOCKED)
)
ORDER = list(OUTCOMES.values())


def package(name: str) -> PackageId:
    return PackageId.parse(name if ":" in name else f"pypi:{name}")


def edges(needs: dict[str, str]) -> dict[PackageId, frozenset[PackageId]]:
    return {package(name): frozenset(map(package, text.split())) for name, text in needs.items()}


def ties(found: Grouped) -> list[tuple[str, int, str, int]]:
    return [(on.ecosystem, on.row, group.ecosystem, group.row) for on, group in found.ties]


def test_a_layer_is_the_longest_way_down() -> None:
    needs = edges({"core": "", "http": "core", "app": "core http", "lone": "elsewhere"})
    assert {each.name: number for each, number in layers(needs, needs).items()} == {
        "core": 1,
        "http": 2,
        "app": 3,
        "lone": 1,
    }


def test_a_group_counts_and_names_what_failed() -> None:
    needs = edges({"core": "", "broken": "", "app": "broken core", "npm:ui": "core"})
    ended = dict(zip(needs, (DONE, FAILED, BLOCKED, DONE), strict=True))
    below, app, ui = sorted(
        grouped(ended, needs, order=ORDER).groups,
        key=lambda each: (each.row, each.ecosystem == "npm"),
    )
    assert (below.ecosystem, below.layers) == ("pypi", "layer 1")
    assert below.counts == [(DONE, 1), (FAILED, 1)]
    assert (below.failures, below.worst) == ("broken", FAILED)
    assert (app.counts, app.failures, app.worst) == ([(BLOCKED, 1)], "", BLOCKED)
    assert (ui.ecosystem, ui.row, ui.worst) == ("npm", 1, DONE)


def test_deep_graphs_share_rows() -> None:
    names = [f"p{number:03}" for number in range(100)]
    needs = edges({name: before for before, name in zip(["", *names], names, strict=False)})
    found = grouped(dict.fromkeys(needs, DONE), needs, order=ORDER, rows=4)
    assert [(each.row, each.layers) for each in found.groups] == [
        (0, "layers 1 to 25"),
        (1, "layers 26 to 50"),
        (2, "layers 51 to 75"),
        (3, "layers 76 to 100"),
    ]
    assert ties(found) == [("pypi", n, "pypi", n + 1) for n in range(3)]


def test_of_many_ties_those_that_most_share_are_drawn() -> None:
    needs = edges(
        {
            **{f"{kind}:base": "" for kind in ("cargo", "go", "npm")},
            **{f"pypi:a{n}": "npm:base" for n in range(3)},
            **{f"pypi:b{n}": "cargo:base" for n in range(2)},
            "pypi:c": "go:base",
        }
    )
    found = grouped(dict.fromkeys(needs, DONE), needs, order=ORDER)
    assert ties(found) == [("cargo", 0, "pypi", 1), ("npm", 0, "pypi", 1)]


@given(st.lists(st.tuples(st.sampled_from(("npm", "pypi", "go")), st.integers(0, 99)), max_size=60))
def test_every_package_is_in_one_group_and_every_group_has_its_row(
    drawn: list[tuple[str, int]],
) -> None:
    names = [PackageId(kind, f"p{place}") for place, (kind, _) in enumerate(drawn)]
    needs = {
        name: frozenset({names[drawn[place][1] % place]}) if place else frozenset[PackageId]()
        for place, name in enumerate(names)
    }
    found = grouped(dict.fromkeys(names, DONE), needs, order=ORDER, rows=5)
    assert sum(count for group in found.groups for _, count in group.counts) == len(names)
    assert len({(group.row, group.ecosystem) for group in found.groups}) == len(found.groups)
    drawn_to = {id(group) for _, group in [*found.ties, *found.below]}
    assert drawn_to == {id(group) for group in found.groups if group.row}
    assert all(on.row < group.row for on, group in [*found.ties, *found.below])
    assert max((group.row for group in found.groups), default=0) < 5
