from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from releasekit.model import PackageId
from releasekit.report.mermaid import MAX_BYTES, MAX_EDGES, drawable, flowchart
from sample_runs import hostile_text

CORE, HTTP, APP = (PackageId("pypi", name) for name in ("core", "http", "app"))
LINE = re.compile(
    r'flowchart LR|    n\d+\["[A-Za-z0-9 ._+/@:-]+"\]:::\w+|    n\d+ --> n\d+|'
    r"    classDef \w+ fill:#\w+,stroke:#\w+,color:#\w+"
)


def test_flowchart_draws_labels_edges_and_the_styles_in_use() -> None:
    chart = flowchart(
        {CORE: ("core 1.0", "done"), HTTP: ("http 2.0", "failed")},
        {CORE: frozenset(), HTTP: frozenset({CORE})},
    )
    assert chart.splitlines() == [
        "flowchart LR",
        '    n0["core 1.0"]:::done',
        '    n1["http 2.0"]:::failed',
        "    n0 --> n1",
        "    classDef done fill:#d2f4d3,stroke:#1a7f37,color:#0b3d1a",
        "    classDef failed fill:#ffd8d3,stroke:#cf222e,color:#5c0d12",
    ]


def test_flowchart_leaves_out_what_is_not_in_the_plan() -> None:
    chart = flowchart({HTTP: ("http", "done")}, {HTTP: frozenset({CORE}), APP: frozenset({HTTP})})
    assert "-->" not in chart


@given(st.lists(hostile_text, min_size=1, max_size=4))
def test_no_text_adds_a_line_or_leaves_its_quotes(texts: list[str]) -> None:
    """R35"""
    labels = {PackageId("pypi", f"{n}{text}"): (text, "done") for n, text in enumerate(texts)}
    edges = {name: frozenset({next(iter(labels))}) for name in list(labels)[1:]}
    lines = flowchart(labels, edges).splitlines()
    assert len(lines) == 1 + len(texts) + len(edges) + 1
    assert all(LINE.fullmatch(line) for line in lines)


def test_large_graphs_are_not_drawable() -> None:
    """R40"""
    names = [PackageId("pypi", f"p{n}") for n in range(MAX_EDGES + 2)]
    labels = {name: (name.name, "done") for name in names}
    star = {name: frozenset({names[0]}) for name in names[1:]}
    assert not drawable(flowchart(labels, star))
    assert drawable(flowchart(labels, dict(list(star.items())[1:])))
    assert not drawable("x" * (MAX_BYTES + 1))
