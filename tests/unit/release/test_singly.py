"""Packages that one tool builds, split where nothing else is built."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from fakes import FakeRegistry, FakeWorkspace, config, package, plan
from releasekit.ecosystems.interface import Target
from releasekit.model import Action, Outcome, PackageId
from releasekit.release.release import ReleaseRun
from releasekit.release.sources import Sources
from releasekit.state.directory import make_state_directory
from releasekit.state.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from releasekit.errors import BuildFailed
    from releasekit.model import Artifact, Package, Plan

CORE, APP = package("core"), package("app", "core")
OTHER = replace(package("other"), id=PackageId("other", "other"))


@dataclass
class Counting(FakeWorkspace):
    calls: list[tuple[str, ...]] = field(default_factory=list)

    async def build(
        self, packages: Sequence[Package], into: Callable[[Package], Path]
    ) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        self.calls.append(tuple(each.id.name for each in packages))
        return await super().build(packages, into)


def alone(packages: Sequence[Package]) -> list[list[Package]]:
    return [[package] for package in packages]


def built(root: Path, made: Plan) -> list[tuple[str, ...]]:
    """What each call got of the packages of `fake`."""
    workspace = Counting(batch=True)

    async def main() -> None:
        settings = config(root)
        make_state_directory(settings.state_directory)
        journal = Journal.open(settings.state_directory, run_id="run")
        journal.run_started(
            plan_digest=made.digest, commit="", tool="", started_at="", ecosystems=["fake"]
        )
        targets = {
            "fake": Target(workspace, FakeRegistry(), singly=alone),
            "other": Target(FakeWorkspace(), FakeRegistry()),
        }
        steps = []
        for step in made.packages:
            manifest = root / f"{step.package.id.name}.toml"
            manifest.write_text("")
            steps.append(replace(step, package=replace(step.package, manifest=manifest)))
        placed = replace(made, packages=tuple(steps))
        release = ReleaseRun(
            placed,
            targets,
            config=settings,
            journal=journal,
            watch=lambda _: None,
            sources=Sources(placed, None),
        )
        await release.run()
        journal.close()
        outcomes = {result.outcome for result in release.results()}
        assert outcomes <= {Outcome.PUBLISHED, Outcome.ALREADY_PUBLISHED}

    asyncio.run(main())
    return sorted(workspace.calls)


@pytest.mark.parametrize(
    ("other", "calls"),
    [
        (Action.KEEP, [("app",), ("core",)]),
        (Action.PUBLISH, [("core", "app")]),
    ],
)
def test_what_waits_for_one_tool_takes_no_slot_of_others(
    tmp_path: Path, other: Action, calls: list[tuple[str, ...]]
) -> None:
    """R2"""
    made = plan(CORE, APP, OTHER, actions={"other": other})
    versions = {"fake": {"core": "1", "app": "1"}, "other": {"other": "1"}}
    assert built(tmp_path, replace(made, versions=versions)) == calls
