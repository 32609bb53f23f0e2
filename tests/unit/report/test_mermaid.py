"""Graphs of packages, one by one and in boxes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from releasekit.model import Outcome, PackageId
from releasekit.report.marks import OUTCOMES
from releasekit.report.mermaid import (
    MAX_BYTES,
    MAX_EDGES,
    MAX_PACKAGES,
    Boxes,
    can_draw,
    draw_graph,
    flowchart,
    group_packages,
    is_grouped,
    layers,
)
from sample_runs import hostile_text

if TYPE_CHECKING:
    from releasekit.report.marks import Style

    Labels = dict[PackageId, tuple[str, Style]]

CORE, HTTP, APP = (PackageId("pypi", name) for name in ("core", "http", "app"))
LINE = re.compile(
    r'%%\{init: [a-zA-Z0-9"{}:, ]+\}%%|flowchart LR|'
    r'    n\d+\["[A-Za-z0-9 ._+/@:-]+"\]:::\w+|    n\d+ --> n\d+|'
    r"    classDef \w+ fill:#\w+,stroke:#\w+,color:#\w+(,stroke-width:3px)?"
)
GROUPS = re.compile(
    r"flowchart TB|    g\d+ (-->|~~~) g\d+|    classDef .*|"
    r'    g\d+\["[A-Za-z0-9 ._+/@:-]+ · layers? \d+( to \d+)?(<br/>[⬜🟩🟪🟥 0-9]+)'
    r'(<br/>[A-Za-z0-9 ._+/@:-]+)?"\]:::\w+'
)
DONE, FAILED = (OUTCOMES[outcome] for outcome in (Outcome.PUBLISHED, Outcome.FAILED))
ORDER = list(OUTCOMES.values())


def test_flowchart_draws_labels_edges_and_the_styles_in_use() -> None:
    chart = flowchart(
        {CORE: ("core 1.0", "done"), HTTP: ("http 2.0", "failed")},
        {CORE: frozenset(), HTTP: frozenset({CORE})},
    )
    assert chart.splitlines() == [
        '%%{init: {"flowchart": {"nodeSpacing": 10, "rankSpacing": 30, "padding": 6}}}%%',
        "flowchart LR",
        '    n0["core 1.0"]:::done',
        '    n1["http 2.0"]:::failed',
        "    n0 --> n1",
        "    classDef done fill:#d2f4d3,stroke:#1a7f37,color:#0b3d1a",
        "    classDef failed fill:#ffd8d3,stroke:#cf222e,color:#5c0d12,stroke-width:3px",
    ]


def test_flowchart_leaves_out_what_is_not_in_the_plan() -> None:
    chart = flowchart({HTTP: ("http", "done")}, {HTTP: frozenset({CORE}), APP: frozenset({HTTP})})
    assert "-->" not in chart


@given(st.lists(hostile_text, min_size=1, max_size=4))
def test_no_text_adds_a_line_or_leaves_its_quotes(texts: list[str]) -> None:
    """R35"""
    labels: Labels = {
        PackageId("pypi", f"{n}{text}"): (text, "done") for n, text in enumerate(texts)
    }
    edges = {name: frozenset({next(iter(labels))}) for name in list(labels)[1:]}
    lines = flowchart(labels, edges).splitlines()
    assert len(lines) == 2 + len(texts) + len(edges) + 1
    assert all(LINE.fullmatch(line) for line in lines)


def test_large_graphs_are_not_drawable() -> None:
    """R40"""
    names = [PackageId("pypi", f"p{n}") for n in range(MAX_EDGES + 2)]
    labels: Labels = {name: (name.name, "done") for name in names}
    star = {name: frozenset({names[0]}) for name in names[1:]}
    assert not can_draw(flowchart(labels, star))
    assert can_draw(flowchart(labels, dict(list(star.items())[1:])))
    assert not can_draw("x" * (MAX_BYTES + 1))


def test_packages_are_drawn_one_by_one_as_long_as_they_can_be_read() -> None:
    """R40"""
    names = [PackageId("pypi", f"p{n}") for n in range(MAX_PACKAGES + 1)]
    packages = {name: (str(name), DONE) for name in names}
    line = dict(zip(names[1:], ({name} for name in names), strict=False))
    edges = {name: frozenset(needs) for name, needs in line.items()}
    assert is_grouped(draw_graph(packages, edges, ORDER))
    del packages[names[-1]]
    chart = draw_graph(packages, edges, ORDER)
    assert not is_grouped(chart)
    assert chart.count(":::done") == MAX_PACKAGES


def test_few_packages_with_too_many_edges_are_drawn_as_groups() -> None:
    """R40"""
    names = [PackageId("pypi", f"p{n:02}") for n in range(MAX_PACKAGES)]
    packages = {name: (str(name), DONE) for name in names}
    edges = {name: frozenset(names[:place]) for place, name in enumerate(names)}
    assert is_grouped(draw_graph(packages, edges, ORDER))


def test_nothing_is_drawn_where_even_groups_are_too_many() -> None:
    """R40: results of somebody else may name any number of ecosystems."""
    names = [PackageId(f"{'e' * 60}{n}", "p") for n in range(1_000)]
    packages = {name: (str(name), DONE) for name in names}
    edges = {name: frozenset(names[:1]) for name in names[1:]}
    assert draw_graph(packages, edges, ORDER) == ""


@settings(max_examples=20)  # each of more than fifty texts
@given(st.lists(hostile_text, min_size=MAX_PACKAGES + 1, max_size=MAX_PACKAGES + 5))
def test_no_text_breaks_out_of_a_group(texts: list[str]) -> None:
    """R35"""
    names = [PackageId(text, f"{n}{text}") for n, text in enumerate(texts)]
    packages = {name: ("", FAILED if place % 9 else DONE) for place, name in enumerate(names)}
    edges = {name: frozenset({names[place // 3]}) for place, name in enumerate(names) if place}
    lines = draw_graph(packages, edges, ORDER).splitlines()
    assert lines[0] == "flowchart TB"
    assert [line for line in lines if not GROUPS.fullmatch(line)] == []


DONE, FAILED, BLOCKED = (
    OUTCOMES[outcome] for outcome in (Outcome.PUBLISHED, Outcome.FAILED, Outcome.BLOCKED)
)
ORDER = list(OUTCOMES.values())


def package_id(name: str) -> PackageId:
    return PackageId.parse(name if ":" in name else f"pypi:{name}")


def edges_of(needs: dict[str, str]) -> dict[PackageId, frozenset[PackageId]]:
    return {
        package_id(name): frozenset(map(package_id, text.split())) for name, text in needs.items()
    }


def ties(found: Boxes) -> list[tuple[str, int, str, int]]:
    return [(on.ecosystem, on.row, group.ecosystem, group.row) for on, group in found.ties]


def test_a_layer_is_the_longest_way_down() -> None:
    needs = edges_of({"core": "", "http": "core", "app": "core http", "lone": "elsewhere"})
    assert {each.name: number for each, number in layers(needs, needs).items()} == {
        "core": 1,
        "http": 2,
        "app": 3,
        "lone": 1,
    }


def test_a_group_counts_and_names_what_failed() -> None:
    needs = edges_of({"core": "", "broken": "", "app": "broken core", "npm:ui": "core"})
    ended = dict(zip(needs, (DONE, FAILED, BLOCKED, DONE), strict=True))
    below, app, ui = sorted(
        group_packages(ended, needs, order=ORDER).groups,
        key=lambda each: (each.row, each.ecosystem == "npm"),
    )
    assert (below.ecosystem, below.layers) == ("pypi", "layer 1")
    assert below.counts == [(DONE, 1), (FAILED, 1)]
    assert (below.failures, below.worst) == ("broken", FAILED)
    assert (app.counts, app.failures, app.worst) == ([(BLOCKED, 1)], "", BLOCKED)
    assert (ui.ecosystem, ui.row, ui.worst) == ("npm", 1, DONE)


def test_deep_graphs_share_rows() -> None:
    names = [f"p{number:03}" for number in range(100)]
    needs = edges_of({name: before for before, name in zip(["", *names], names, strict=False)})
    found = group_packages(dict.fromkeys(needs, DONE), needs, order=ORDER, rows=4)
    assert [(each.row, each.layers) for each in found.groups] == [
        (0, "layers 1 to 25"),
        (1, "layers 26 to 50"),
        (2, "layers 51 to 75"),
        (3, "layers 76 to 100"),
    ]
    assert ties(found) == [("pypi", n, "pypi", n + 1) for n in range(3)]


def test_of_many_ties_those_that_most_share_are_drawn() -> None:
    needs = edges_of(
        {
            **{f"{kind}:base": "" for kind in ("cargo", "go", "npm")},
            **{f"pypi:a{n}": "npm:base" for n in range(3)},
            **{f"pypi:b{n}": "cargo:base" for n in range(2)},
            "pypi:c": "go:base",
        }
    )
    found = group_packages(dict.fromkeys(needs, DONE), needs, order=ORDER)
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
    found = group_packages(dict.fromkeys(names, DONE), needs, order=ORDER, rows=5)
    assert sum(count for group in found.groups for _, count in group.counts) == len(names)
    assert len({(group.row, group.ecosystem) for group in found.groups}) == len(found.groups)
    drawn_to = {id(group) for _, group in [*found.ties, *found.below]}
    assert drawn_to == {id(group) for group in found.groups if group.row}
    assert all(on.row < group.row for on, group in [*found.ties, *found.below])
    assert max((group.row for group in found.groups), default=0) < 5
