from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from releasekit.model import Outcome, PackageId
from releasekit.report.marks import OUTCOMES
from releasekit.report.mermaid import (
    MAX_BYTES,
    MAX_EDGES,
    MAX_PACKAGES,
    drawable,
    flowchart,
    is_grouped,
    picture,
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
    assert not drawable(flowchart(labels, star))
    assert drawable(flowchart(labels, dict(list(star.items())[1:])))
    assert not drawable("x" * (MAX_BYTES + 1))


def test_packages_are_drawn_one_by_one_as_long_as_they_can_be_read() -> None:
    """R40"""
    names = [PackageId("pypi", f"p{n}") for n in range(MAX_PACKAGES + 1)]
    packages = {name: (str(name), DONE) for name in names}
    line = dict(zip(names[1:], ({name} for name in names), strict=False))
    edges = {name: frozenset(needs) for name, needs in line.items()}
    assert is_grouped(picture(packages, edges, ORDER))
    del packages[names[-1]]
    chart = picture(packages, edges, ORDER)
    assert not is_grouped(chart)
    assert chart.count(":::done") == MAX_PACKAGES


def test_few_packages_with_too_many_edges_are_drawn_as_groups() -> None:
    """R40"""
    names = [PackageId("pypi", f"p{n:02}") for n in range(MAX_PACKAGES)]
    packages = {name: (str(name), DONE) for name in names}
    edges = {name: frozenset(names[:place]) for place, name in enumerate(names)}
    assert is_grouped(picture(packages, edges, ORDER))


def test_nothing_is_drawn_where_even_groups_are_too_many() -> None:
    """R40: results of somebody else may name any number of ecosystems."""
    names = [PackageId(f"{'e' * 60}{n}", "p") for n in range(1_000)]
    packages = {name: (str(name), DONE) for name in names}
    edges = {name: frozenset(names[:1]) for name in names[1:]}
    assert picture(packages, edges, ORDER) == ""


@given(st.lists(hostile_text, min_size=MAX_PACKAGES + 1, max_size=MAX_PACKAGES + 5))
def test_no_text_breaks_out_of_a_group(texts: list[str]) -> None:
    """R35"""
    names = [PackageId(text, f"{n}{text}") for n, text in enumerate(texts)]
    packages = {name: ("", FAILED if place % 9 else DONE) for place, name in enumerate(names)}
    edges = {name: frozenset({names[place // 3]}) for place, name in enumerate(names) if place}
    lines = picture(packages, edges, ORDER).splitlines()
    assert lines[0] == "flowchart TB"
    assert [line for line in lines if not GROUPS.fullmatch(line)] == []
