"""Packages that one tool builds, split where nothing else is built."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from fakes import FakeRegistry, FakeTarget, FakeWorkspace, config, package, plan
from releasekit.fields import replace
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
    """`most` is how many builds have run at a time. None ends before `together` of them run."""

    calls: list[tuple[str, ...]] = field(default_factory=list)
    tools: int = 1
    together: int = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    running: int = 0
    most: int = 0

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        return [packages[at :: self.tools] for at in range(self.tools)]

    async def build(
        self, packages: Sequence[Package], into: Callable[[Package], Path]
    ) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        self.calls.append(tuple(each.id.name for each in packages))
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        if self.running >= self.together:
            self.begun.set()
        await self.begun.wait()
        self.running -= 1
        return await super().build(packages, into)


def alone(packages: Sequence[Package]) -> list[list[Package]]:
    return [[package] for package in packages]


def built(
    root: Path, made: Plan, workspace: Counting | None = None, **changes: object
) -> list[tuple[str, ...]]:
    """What each call got of the packages of `fake`."""
    workspace = workspace or Counting()

    async def main() -> None:
        settings = config(root, **changes)
        make_state_directory(settings.state_directory)
        journal = Journal.open(settings.state_directory, run_id="run")
        journal.run_started(
            plan_digest=made.digest, commit="", tool="", started_at="", ecosystems=["fake"]
        )
        targets = {
            "fake": FakeTarget(workspace, FakeRegistry(), split_singly=alone),
            "other": FakeTarget(FakeWorkspace(), FakeRegistry()),
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


def test_what_one_tool_has_built_waits_for_no_slot(tmp_path: Path) -> None:
    """R2: it is taken, and published, while the tool builds the others."""
    made = plan(*map(package, "abcdefgh"))
    workspace = Counting(together=8)
    built(tmp_path, made, workspace, build_concurrency=2)
    assert workspace.most == 8


def test_several_tools_take_slots_from_each_other(tmp_path: Path) -> None:
    made = plan(*map(package, "abcdefgh"))
    workspace = Counting(tools=2, together=2)
    built(tmp_path, made, workspace, build_concurrency=2)
    assert workspace.most == 2
