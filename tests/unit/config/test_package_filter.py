"""Runs that are about a part of the workspace, with edges to the other parts."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from fakes import FakeRegistry, FakeWorkspace, config, extra_edge, package
from releasekit.ecosystems.interface import Target
from releasekit.errors import ConfigError, Cycle, PlanError
from releasekit.fields import replace
from releasekit.model import Action, Package, PackageId, Plan
from releasekit.plan.make import make_plan
from releasekit.report import plan_outputs
from releasekit.state.journal import History

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from releasekit.decided import Edge

HERE = ("cargo:measure", "cargo:units", "npm:cli", "pypi:core", "pypi:measure")
# A wheel after the crate of the same name.
WHEEL = (extra_edge("pypi:measure", "cargo:measure"),)


def placed(text: str, root: Path, unpublishable: str = "") -> Package:
    manifest = root / text.replace(":", "-")
    manifest.write_text(text)
    made = package("any", unpublishable=unpublishable)
    return replace(made, id=PackageId.parse(text), manifest=manifest, directory=root)


def plan_of(
    root: Path,
    extra: tuple[Edge, ...],
    *,
    published: Iterable[str] = (),
    private: Iterable[str] = (),
    **changes: object,
) -> Plan:
    """Of the targets that the program makes for these settings, and of no others."""
    settings = config(root, extra_edges=extra, **changes)
    packages = [placed(text, root, "it says so" if text in private else "") for text in HERE]
    files = {PackageId.parse(it).name: {"file": "sha256:00"} for it in published}
    asked = settings.ecosystem or ("cargo", "npm", "pypi")
    targets = {
        name: Target(
            FakeWorkspace(packages=[each for each in packages if each.id.ecosystem == name]),
            FakeRegistry(files=files if any(it.startswith(name) for it in published) else {}),
        )
        for name in (*asked, *settings.package_filter.find_consulted(extra))
    }
    return asyncio.run(make_plan(settings, targets, History(), commit="c0ffee"))


def names(plan: Plan) -> list[str]:
    return [str(step.package.id) for step in plan.packages]


def test_an_edge_orders_packages_of_two_ecosystems_that_share_a_name(tmp_path: Path) -> None:
    """R1"""
    plan = plan_of(tmp_path, WHEEL)
    assert names(plan) == list(HERE)
    wheel, crate = PackageId("pypi", "measure"), PackageId("cargo", "measure")
    assert plan.edges()[wheel] == {crate}


def test_a_cycle_across_ecosystems_is_named_whole(tmp_path: Path) -> None:
    """R7: whichever part of it a run is about."""
    extra = (
        *WHEEL,
        extra_edge("cargo:measure", "npm:cli"),
        extra_edge("npm:cli", "pypi:measure"),
    )
    with pytest.raises(Cycle) as caught:
        plan_of(tmp_path, extra)
    assert caught.value.names == ("cargo:measure", "npm:cli", "pypi:measure")
    short = (*WHEEL, extra_edge("cargo:measure", "pypi:measure"))
    with pytest.raises(Cycle, match="cargo:measure -> pypi:measure -> cargo:measure"):
        plan_of(tmp_path, short, ecosystem=("pypi",))


def test_what_a_left_out_ecosystem_has_to_publish_first_is_refused(tmp_path: Path) -> None:
    """R1: the job of one ecosystem cannot know when that of another one gets there."""
    with pytest.raises(PlanError) as caught:
        plan_of(tmp_path, WHEEL, ecosystem=("pypi",))
    assert str(caught.value) == (
        "pypi:measure needs cargo:measure, which is left out and not published yet"
    )
    assert "`ecosystem: cargo,pypi`" in caught.value.hint


def test_what_a_left_out_ecosystem_has_published_is_no_obstacle(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, WHEEL, ecosystem=("pypi",), published=["cargo:measure"])
    assert names(plan) == ["pypi:core", "pypi:measure"]
    assert set(plan.registries) == {"pypi"}


def test_a_part_of_a_plan_is_planned_as_it_was_as_a_whole(tmp_path: Path) -> None:
    """R20: else `plan-file` would refuse it."""
    whole = plan_of(tmp_path, WHEEL)
    part = plan_of(tmp_path, WHEEL, ecosystem=("pypi",), published=["cargo:measure"])
    fingerprints = {step.package.id: step.fingerprint for step in whole.packages}
    assert all(fingerprints[step.package.id] == step.fingerprint for step in part.packages)


@pytest.mark.parametrize(
    "changes",
    [
        {"ecosystem": ("npm",)},
        {"ecosystem": ("cargo",)},
        {"ecosystem": ("pypi",), "exclude_packages": ("pypi:measure",)},
        {"ecosystem": ("pypi",), "packages": ("core",)},
    ],
)
def test_nobody_is_asked_about_edges_of_what_is_left_out(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    """So that a job needs no tools of an ecosystem that it has nothing to do with."""
    about = config(tmp_path, **changes).package_filter
    assert about.find_consulted(WHEEL) == ()
    assert plan_of(tmp_path, WHEEL, **changes).packages


def test_private_packages_of_a_consulted_ecosystem_are_not_reported(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        WHEEL,
        ecosystem=("pypi",),
        published=["cargo:measure"],
        private=["cargo:units", "pypi:core"],
    )
    assert [str(it.id) for it in plan.private] == ["pypi:core"]


def test_a_private_package_of_another_ecosystem_is_named_in_full(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"measure needs cargo:measure, which is never"):
        plan_of(tmp_path, WHEEL, private=["cargo:measure"])


@pytest.mark.parametrize(
    ("ecosystems", "name"),
    [((), "cargo:mesure"), (("pypi",), "cargo:mesure"), (("pypi",), "cargo:zoo")],
)
def test_a_name_that_nobody_has_is_an_error_in_every_job(
    tmp_path: Path, ecosystems: tuple[str, ...], name: str
) -> None:
    """R7"""
    with pytest.raises(PlanError, match=f"'{name}', which is not a package here"):
        plan_of(tmp_path, (extra_edge("pypi:measure", name),), ecosystem=ecosystems)


def test_leaving_out_what_is_left_out_already_is_no_typo(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, (), ecosystem=("pypi",), exclude_packages=("npm:cli", "core"))
    assert names(plan) == ["pypi:measure"]
    for pattern in ("nmp:cli", "pypi:cli", "cli"):
        with pytest.raises(ConfigError, match="matches no package"):
            plan_of(tmp_path, (), ecosystem=("pypi",), exclude_packages=(pattern,))


def test_a_run_of_excluded_packages_alone_is_refused(tmp_path: Path) -> None:
    """R68: releasekit.toml may have the one, and an input the other."""
    with pytest.raises(ConfigError, match="names only packages that `exclude-packages: core` leav"):
        plan_of(tmp_path, (), packages=("pypi:core",), exclude_packages=("core",))


def rows(plan: Plan) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(plan_outputs(plan)["matrix"])["include"]
    return found


def test_a_matrix_keeps_together_what_waits_for_one_another(tmp_path: Path) -> None:
    """R1: its jobs run side by side."""
    crates, tools = "cargo:measure\ncargo:units", {"ecosystem": "npm", "packages": "cli"}
    assert rows(plan_of(tmp_path, WHEEL)) == [
        {"ecosystem": "cargo,pypi", "packages": f"{crates}\npypi:core\npypi:measure"},
        tools,
    ]
    chain = plan_of(tmp_path, (*WHEEL, extra_edge("npm:cli", "pypi:core")))
    assert [row["ecosystem"] for row in rows(chain)] == ["cargo,npm,pypi"]


def test_what_is_published_keeps_no_jobs_together(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, WHEEL, published=["cargo:measure"])
    assert {str(s.package.id) for s in plan.packages if s.action is Action.KEEP} == {
        "cargo:measure"
    }
    assert [row["ecosystem"] for row in rows(plan)] == ["cargo", "npm", "pypi"]


def test_jobs_that_wait_for_one_another_have_rows_of_their_own(tmp_path: Path) -> None:
    found = json.loads(plan_outputs(plan_of(tmp_path, WHEEL), apart=True)["matrix"])["include"]
    assert [(row["ecosystem"], row["packages"]) for row in found] == [
        ("cargo", "measure\nunits"),
        ("npm", "cli"),
        ("pypi", "core\nmeasure"),
    ]
