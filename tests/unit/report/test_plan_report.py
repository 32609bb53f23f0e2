from __future__ import annotations

import json
import re

import pytest
from hypothesis import given

from releasekit.fields import replace
from releasekit.host.ci import Origin
from releasekit.model import Action, PackageId, Staged
from releasekit.report import (
    plan_headline,
    plan_json,
    plan_mermaid,
    plan_summary,
    plan_table,
)
from sample_runs import ROOT, hostile_followed, hostile_text, mixed_plan, package, plan, step


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
    assert lines[-2:] == ["to: pypi.org", plan_headline(mixed_plan())]


def test_a_plan_says_where_its_packages_go() -> None:
    """R34: each place once, of ecosystems that it has, and nothing that lets somebody in."""
    steps = [
        replace(each, package=replace(each.package, id=PackageId(ecosystem, "core")))
        for ecosystem in ("pypi", "npm", "cargo", "go")
        for each in [step("core", Action.PUBLISH)]
    ]
    made = replace(
        plan(*steps),
        registries={
            "pypi": "https://me:pw@upload.pypi.org/legacy/",
            "npm": "https://me:pw@r.example/np_m?token=pw#pw",
            "cargo": "https://r.example/np_m",
            "go": "dir:/tmp/registry/go",
            "maven": "https://central.sonatype.com/",
        },
    )
    places = "https://r.example/np_m, dir:/tmp/registry/go, pypi.org"  # cargo's, which is npm's
    assert plan_table(made).splitlines()[-2] == f"to: {places}"
    assert "pw" not in plan_table(made) + plan_summary(made)
    assert " · to " in plan_summary(made)
    assert "np&#95;m" in plan_summary(made)
    assert "sonatype" not in plan_table(made) + plan_summary(made)


def test_where_packages_go_is_no_command_to_the_runner() -> None:
    """R35"""
    made = replace(mixed_plan(), registries={"pypi": "dir:/tmp/a\n::error::b"})
    assert "\n::" not in plan_table(made)


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


def test_a_reason_that_most_packages_of_an_action_share_is_told_once() -> None:
    """And every row still has its package, version and action, for those who search in it."""
    new = [step(f"n{number}", Action.PUBLISH, reason="not there") for number in range(4)]
    kept = [step(f"k{number}", Action.KEEP, reason="there already") for number in range(3)]
    odd = step("odd", Action.PUBLISH, reason="its files are gone")
    lines = plan_table(plan(*new, *kept, odd)).splitlines()
    assert lines[1] == "pypi:n0   1.0.0    publish"
    assert [line for line in lines if "not there" in line] == ["publish (4): not there"]
    assert sum("there already" in line for line in lines) == 3
    assert re.fullmatch(r"pypi:odd +1\.0\.0 +publish +its files are gone", lines[8])
    text = plan_summary(plan(*new, *kept, odd))
    assert text.count("not there") == 1
    assert "\n4 to build and publish: not there\n" in text
    assert "| <code>pypi:n0</code> | <code>1.0.0</code> | 🟩 to build and publish |  |" in text
    assert json.loads(plan_json(plan(*new), ROOT))["packages"][0]["reason"] == "not there"


def test_no_column_is_for_what_all_packages_share() -> None:
    new = [step(f"n{number}", Action.PUBLISH, reason="not there") for number in range(4)]
    assert plan_table(plan(*new)).splitlines()[0] == "package  version  action"
    assert "| Package | Version | Action |\n" in plan_summary(plan(*new))


def test_a_summary_tells_each_reason_of_private_packages_once() -> None:
    examples = [package(f"e{number}", "1", unpublishable="it is an example") for number in range(4)]
    lone = package("lone", "1", unpublishable="it has no version")
    text = plan_summary(plan(private=(*examples, lone)))
    assert text.count("it is an example") == 1
    assert "| it has no version | <code>pypi:lone</code> |" in text
    assert "more" not in text
    many = [package(f"e{n}", "1", unpublishable="it is an example") for n in range(2_001)]
    assert "… and 1 more." in plan_summary(plan(private=tuple(many)))


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
        "prebuilt": [],
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
    assert text.startswith("## ❌ 2 packages to publish\n")
    assert "| <code>pypi:http</code> | <code>1.0.0</code> | 🟦 to upload as built before |" in text
    assert "```mermaid\n%%{init" in text
    assert "1 package never published" in text


def test_plan_summary_of_nothing_is_its_headline() -> None:
    assert plan_summary(plan(), Origin(project="acme/widgets")) == (
        "## ✅ acme/widgets: No package to publish\n\n> [!NOTE]\n> There is nothing to do.\n\n"
        "commit <code>c0ffee</code>\n"
    )


@pytest.mark.parametrize(
    ("actions", "start"),
    [
        ((Action.PUBLISH, Action.UPLOAD), "## 📋 2 packages to publish\n\n> [!NOTE]\n"),
        ((Action.PUBLISH, Action.REFUSE), "## ❌ 1 package to publish\n\n> [!CAUTION]\n"),
        ((Action.KEEP, Action.AWAIT), "## ⏳ No package to publish\n\n> [!IMPORTANT]\n"),
        ((Action.KEEP,), "## ✅ No package to publish\n\n> [!NOTE]\n"),
    ],
)
def test_a_plan_is_headed_by_what_follows_from_it(actions: tuple[Action, ...], start: str) -> None:
    steps = [step(f"p{number}", action) for number, action in enumerate(actions)]
    assert plan_summary(plan(*steps)).startswith(start)


def test_a_plan_says_which_project_and_run_it_is_of() -> None:
    origin = Origin(
        project="acme/widgets",
        repository="https://github.com/acme/widgets",
        run_url="https://github.com/acme/widgets/actions/runs/17",
    )
    text = plan_summary(replace(mixed_plan(), commit="c0ffee00"), origin)
    assert text.startswith("## ❌ acme/widgets: 2 packages to publish\n")
    assert f'<a href="{origin.run_url}">workflow run</a> · commit <a href="' in text
    assert f'{origin.repository}/commit/c0ffee00"><code>c0ffee00</code></a>' in text
    assert "🟩🟦⬜🟥\n" in text


def test_a_plan_shows_what_would_be_published_by_ecosystem_and_what_needs_a_look() -> None:
    held = replace(
        step("held", Action.AWAIT), staged=Staged(url="https://registry.example/staged/5f0c")
    )
    text = plan_summary(plan(*mixed_plan().packages, held))
    places = [
        text.index(words)
        for words in (
            "### 🟥 Refused",
            "<code>pypi:broken</code> |",
            "### 🟪 Waiting for approval",
            '<a href="https://registry.example/staged/5f0c"><code>pypi:held</code></a> |',
            "### What would be published",
            "<details open>\n<summary><b>pypi</b>: 🟩 1 to build and publish, 🟦 1 to upload as",
            "<details>\n<summary>⬜ 1 already published</summary>",
            '<a href="https://x/"><code>pypi:core</code></a> |',
            "```mermaid",
        )
    ]
    assert places == sorted(places)


def test_plan_summary_of_a_large_plan_stays_below_the_limit() -> None:
    """R40"""
    steps = [step(f"p{n}", Action.PUBLISH, reason=f"{n}{'`|' * 200}") for n in range(3_000)]
    text = plan_summary(plan(*steps))
    assert len(text.encode()) < 1_000_000
    assert "… and 2700 more, in the plan file." in text


@given(name=hostile_text, reason=hostile_text)
def test_plan_summary_keeps_its_shape_whatever_the_text(name: str, reason: str) -> None:
    """R35"""
    shown = []
    for word, why in ((name, reason), ("harmless", "word")):
        made = plan(
            step(word, Action.REFUSE, reason=why),
            step(f"{word}2", Action.PUBLISH, needs=(word,), reason=why),
            replace(step(f"{word}3", Action.KEEP, reason=why), tag=hostile_followed(why).tag),
            private=(package(f"{word}4", word, unpublishable=why),),
        )
        text = plan_summary(
            replace(made, provenance=why, announcing=why),
            Origin(project=word, repository=f"{word} ", run_url=f"{why} "),  # no links,
        )
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert {line.count("|") for line in rows} == {3, 5, 6}
        # What is blank has no line in an item.
        shown.append(re.findall(r"<(?!br>|/?code>)[^>]*>|^#+ |^> ?|```\w*", text, re.MULTILINE))
    assert shown[0] == shown[1]
