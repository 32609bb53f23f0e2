from __future__ import annotations

import json
import re
from dataclasses import replace

from hypothesis import given

from releasekit.model import Action
from releasekit.report import (
    plan_headline,
    plan_json,
    plan_mermaid,
    plan_summary,
    plan_table,
)
from sample_runs import ROOT, hostile_text, mixed_plan, package, plan, step


def test_plan_headline_counts_what_will_happen() -> None:
    assert plan_headline(mixed_plan()) == (
        "4 packages: 1 to build and publish, 1 to upload as built before, "
        "1 already published, 1 refused"
    )
    assert plan_headline(plan()) == "No package to publish"


def test_plan_table_lists_packages_in_publish_order_then_why_others_are_not_in_it() -> None:
    lines = plan_table(mixed_plan()).splitlines()
    assert [line.split()[0] for line in lines[:5]] == [
        "package",
        "pypi:core",
        "pypi:http",
        "pypi:app",
        "pypi:broken",
    ]
    assert re.fullmatch(r"pypi:core +1\.0\.0 +keep +on the registry already", lines[1])
    assert lines[5:7] == ["", "never published: pypi:tools: marked Private :: Do Not Upload"]
    assert lines[-1] == plan_headline(mixed_plan())


def test_a_reason_that_many_packages_share_is_told_once() -> None:
    """A workspace may hold hundreds of examples."""
    examples = [package(f"e{number}", "1", unpublishable="it is an example") for number in range(9)]
    lone = package("lone", "1", unpublishable="it has no version")
    lines = plan_table(plan(private=(*examples, lone))).splitlines()
    assert lines == [
        "never published: pypi:e0, pypi:e1, pypi:e2, pypi:e3, pypi:e4 and 4 more: it is an example",
        "never published: pypi:lone: it has no version",
        "",
        "No package to publish",
    ]


def test_plan_table_of_nothing_is_its_headline() -> None:
    assert plan_table(plan()) == "No package to publish"


def test_what_is_to_be_expected_stands_with_the_plan() -> None:
    noted = replace(mixed_plan(), notes=("It takes *long*.",))
    assert plan_table(noted).endswith(f"{plan_headline(noted)}\nIt takes *long*.")
    assert "It takes &#42;long&#42;" in plan_summary(noted)
    assert json.loads(plan_json(noted, ROOT))["notes"] == ["It takes *long*."]


def test_plan_json_holds_what_publishing_it_needs() -> None:
    document = json.loads(plan_json(mixed_plan(), ROOT))
    assert document["schema"] == 1
    assert document["registries"] == {"pypi": "https://upload.pypi.org/legacy/"}
    kept, uploaded, *_ = document["packages"]
    assert kept["published"] == {
        "files": {"core.whl": "sha256:00"},
        "complete": True,
        "url": "https://x/",
    }
    assert uploaded == {
        "ecosystem": "pypi",
        "name": "http",
        "version": "1.0.0",
        "directory": "packages/core",
        "manifest": "packages/core/pyproject.toml",
        "dependencies": [{"on": "pypi:core", "kind": "runtime", "requirement": "core>=1"}],
        "action": "upload",
        "reason": "built by an earlier run",
        "fingerprint": "f1" * 32,
        "artifacts": [
            {
                "path": ".releasekit/dist/http-1.0.0.tar.gz",
                "size": 1234,
                "digests": {"sha256": "ab" * 32},
            }
        ],
        "published": None,
        "warnings": [],
    }
    assert document["private"][0]["reason"] == "marked Private :: Do Not Upload"


def test_plan_json_names_no_path_of_the_machine() -> None:
    assert str(ROOT) not in plan_json(mixed_plan(), ROOT)


def test_plan_mermaid_points_from_a_package_to_its_dependents() -> None:
    chart = plan_mermaid(mixed_plan()).splitlines()
    assert '    n0["pypi:core 1.0.0"]:::kept' in chart
    assert "    n0 --> n1" in chart
    assert "    n0 --> n2" in chart
    assert "    n1 --> n2" in chart


def test_plan_summary_has_table_graph_and_private_packages() -> None:
    text = plan_summary(mixed_plan())
    assert text.startswith(f"## {plan_headline(mixed_plan())}\n")
    assert "| <code>pypi:http</code> | <code>1.0.0</code> | to upload as built before |" in text
    assert "```mermaid\nflowchart LR" in text
    assert "1 package never published" in text


def test_plan_summary_of_nothing_is_its_headline() -> None:
    assert plan_summary(plan()) == "## No package to publish\n"


def test_plan_summary_of_a_large_plan_stays_below_the_limit() -> None:
    """R40"""
    steps = [step(f"p{n}", Action.PUBLISH, reason="`|" * 200) for n in range(3_000)]
    text = plan_summary(plan(*steps))
    assert len(text.encode()) < 1_000_000
    assert "… and 2700 more, in the plan file." in text
    assert "mermaid" not in text


@given(name=hostile_text, reason=hostile_text)
def test_plan_summary_keeps_its_shape_whatever_the_text(name: str, reason: str) -> None:
    """R35"""
    private = (package(name, name, unpublishable=reason),)
    text = plan_summary(plan(step(name, Action.REFUSE, reason=reason), private=private))
    usual = plan_summary(mixed_plan())
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {4, 5}
    tags = set(re.findall(r"<[^>]*>", text))
    assert tags == set(re.findall(r"<[^>]*>", usual))
