"""Versions that were taken back: who may rest on one, by what each client takes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest
from packaging.specifiers import SpecifierSet

from fakes import FakeRegistry, FakeTarget, FakeWorkspace, config, package
from releasekit.decided import Edge
from releasekit.ecosystems.cargo.requirements import Requirement
from releasekit.ecosystems.pypi.manifest import is_pin, is_taken_instead
from releasekit.errors import PlanError
from releasekit.fields import replace
from releasekit.model import Action, DependencyKind, Published, Withdrawal
from releasekit.plan.make import make_plan
from releasekit.problems import Problem
from releasekit.state.history import History

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from releasekit.model import Package, Plan

CORE, APP = package("core"), package("app", "core")
YANKED = Withdrawal(word="yanked", cure="un-yank it", reason="broken")
TAKES = {"cargo": lambda _: False, "pypi": is_pin, "npm": None}


@dataclass
class Registry(FakeRegistry):
    """Where `core` was withdrawn."""

    withdrawal: Withdrawal | None = None

    async def lookup(self, package: Package) -> Published | None:
        if package.id != CORE.id:
            return None
        return Published(files={"core.pkg": "sha256:00"}, withdrawal=self.withdrawal)


def cargo(requirement: str) -> Callable[[str], bool]:
    return Requirement.parse(requirement).matches


def pypi(requirement: str) -> Callable[[str], bool]:
    return partial(SpecifierSet(requirement).contains, prereleases=True)


def plan_of(root: Path, withdrawal: Withdrawal, edges: Sequence[Edge], takes: str) -> Plan:
    packages = [replace(each, manifest=root / each.id.name) for each in (CORE, APP)]
    for each in packages:
        each.manifest.write_text("")
    target = FakeTarget(
        FakeWorkspace(packages=packages),
        Registry(withdrawal=withdrawal),
        list_edges=lambda _: edges,
        takes_hidden=TAKES[takes],
        takes_instead=is_taken_instead if takes == "pypi" else None,
    )
    planning = make_plan(config(root), {"fake": target}, History(), commit="c0ffee")
    return asyncio.run(planning)


@pytest.mark.parametrize(
    ("client", "admits", "requirement", "others", "optional", "expected"),
    [
        ("cargo", cargo, "^1", (), False, "no other version fits `^1`"),
        ("cargo", cargo, "=1.0.0", ("1.0.1",), False, "no other version fits `=1.0.0`"),
        ("cargo", cargo, "^1", ("2.0.0", "1.1.0-rc.1", "x"), False, "no other version fits"),
        ("cargo", cargo, "^1", ("1.0.1",), False, ""),
        ("cargo", cargo, "^1", (), True, ""),
        ("pypi", pypi, ">=1.0", (), False, "no other version fits `>=1.0`"),
        ("pypi", pypi, "==1.*", (), False, "no other version fits `==1.*`"),
        ("pypi", pypi, "", (), False, "no other version fits any version"),
        ("pypi", pypi, "==1.0", (), False, ""),
        ("pypi", pypi, "===1.0", (), False, ""),
        ("pypi", pypi, "==1.0,>0.5", ("1.1",), False, ""),
        ("pypi", pypi, ">=1.0", ("1.1",), False, ""),
        (
            "pypi",
            pypi,
            ">=1.0",
            ("1.1rc1",),
            False,
            "fits `>=1.0` except 1.1rc1, a prerelease, which uv",
        ),
        (
            "pypi",
            pypi,
            "",
            ("1.1.dev1",),
            False,
            "no other version fits any version except 1.1.dev1",
        ),
        ("pypi", pypi, ">=1.0", ("1.1rc1", "1.2"), False, ""),
        ("pypi", pypi, ">=1.0rc1", ("1.1rc1",), False, ""),
        ("pypi", pypi, ">=1.0", ("1.1rc1",), True, ""),
        ("npm", cargo, "^1", (), False, ""),
    ],
)
def test_what_a_client_would_not_take_is_refused(
    tmp_path: Path,
    client: str,
    admits: Callable[[str], Callable[[str], bool]],
    requirement: str,
    others: tuple[str, ...],
    expected: str,
    *,
    optional: bool,
) -> None:
    """R65: as cargo, pip and uv do when asked for such packages; all else is a warning."""
    edge = Edge(
        dependent=APP.id,
        on=CORE.id,
        requirement=requirement,
        admits=admits(requirement),
        optional=optional,
    )
    withdrawal = replace(YANKED, others=others)
    if expected:
        with pytest.raises(PlanError, match=r"fake:app needs core 1\.0, which is yanked") as caught:
            plan_of(tmp_path, withdrawal, [edge], client)
        assert expected in str(caught.value)
        assert caught.value.problem is Problem.NEEDS_YANKED
        assert caught.value.hint.startswith("Either un-yank it, or bump the version of core, or le")
        return
    core, app = plan_of(tmp_path, withdrawal, [edge], client).packages
    assert (core.action, core.reason) == (Action.KEEP, "on the registry already, yanked (broken)")
    (warning,) = app.warnings
    assert warning.name == "withdrawn-sibling"
    assert warning.message.startswith("it needs core 1.0, which is yanked (broken)")


@pytest.mark.parametrize("word", ["yanked in part", "deprecated", "retracted"])
def test_what_clients_still_take_is_a_warning(tmp_path: Path, word: str) -> None:
    """R65: whatever the ecosystem."""
    edge = Edge(dependent=APP.id, on=CORE.id, requirement="^1", admits=cargo("^1"))
    made = plan_of(tmp_path, replace(YANKED, word=word), [edge], "cargo")  # type: ignore[arg-type]
    assert [each.name for each in made.packages[1].warnings] == ["withdrawn-sibling"]


@pytest.mark.parametrize(
    ("kinds", "fatal"),
    [
        ([DependencyKind.OPTIONAL], False),
        ([DependencyKind.PEER], False),
        ([DependencyKind.OPTIONAL, DependencyKind.RUNTIME], True),
        ([], False),
    ],
)
def test_the_worst_of_several_requirements_counts(
    tmp_path: Path, kinds: list[DependencyKind], *, fatal: bool
) -> None:
    """R65: an extra can be left out; of what releasekit.toml declares, clients do not know."""
    edges = [
        Edge(dependent=APP.id, on=CORE.id, kind=kind, requirement=">=1", admits=pypi(">=1"))
        for kind in kinds
    ]
    if fatal:
        with pytest.raises(PlanError, match="its users could not install it"):
            plan_of(tmp_path, YANKED, edges, "pypi")
        return
    assert len(plan_of(tmp_path, YANKED, edges, "pypi").packages[1].warnings) == 1
