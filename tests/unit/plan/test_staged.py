"""What a plan makes of what earlier runs have staged."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from fakes import (
    SEAL,
    URL,
    FakeRegistry,
    FakeStaging,
    FakeTarget,
    FakeWorkspace,
    artifact,
    config,
    package,
    where_staged,
)
from releasekit.errors import Denied, DigestMismatch, Rejected, Transient
from releasekit.fields import replace
from releasekit.model import Action, Outcome, Package, Plan, PlannedPackage
from releasekit.plan.make import make_plan
from releasekit.plan.registries import DROPPED
from releasekit.report import plan_headline, plan_outputs
from releasekit.state.directory import built_directory, make_state_directory
from releasekit.state.history import encode, fold
from releasekit.state.journal import Journal

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.state.history import History

CORE, APP, CLI = package("core"), package("app", "core"), package("cli", "app")
ALL = (CORE, APP, CLI)


class Bench:
    """A workspace of which an earlier run has staged some packages, with or without our key."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.registry = FakeRegistry()
        self.staging: FakeStaging | None = FakeStaging(self.registry)

    def stage(self, *packages: Package, sealed: bool = True) -> History:
        state = self.root / ".releasekit"
        make_state_directory(state)

        async def main() -> None:
            journal = Journal.open(state, run_id="first", seal=SEAL if sealed else None)
            journal.run_started(
                plan_digest="", commit="c0ffee", tool="", started_at="", ecosystems=["fake"]
            )
            for each in packages:
                path = built_directory(each, state_directory=state) / f"{each.id.name}-1.0.pkg"
                path.parent.mkdir(parents=True)
                path.write_bytes(b"built")
                built = artifact(path, b"built")
                await journal.built(each, [built])
                digests = {path.name: built.sha256}
                await journal.intent(each, registry=URL, digests=digests)
                name = each.id.name
                journal.outcome(each, Outcome.STAGED, "", staged=where_staged(name))
                if self.staging is not None:
                    self.staging.waiting[name] = (built,)
            journal.close()

        asyncio.run(main())
        journal = Journal.open(state, run_id="second", seal=SEAL)
        journal.close()
        return journal.history

    def plan(self, history: History) -> Plan:
        placed = [replace(p, manifest=self.root / p.id.name, directory=self.root) for p in ALL]
        for each in placed:
            each.manifest.write_text("")
        workspace = FakeWorkspace(packages=placed)
        targets = {"fake": FakeTarget(workspace, self.registry, staging=self.staging)}
        settings = config(self.root, ecosystem=("fake",))
        return asyncio.run(make_plan(settings, targets, history, commit="c0ffee"))

    def planned(self, history: History) -> PlannedPackage:
        """The first one."""
        return self.plan(history).packages[0]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def staging_of(bench: Bench) -> FakeStaging:
    assert bench.staging is not None
    return bench.staging


def test_what_waits_is_awaited(bench: Bench) -> None:
    """R17, R18"""
    plan = bench.plan(bench.stage(CORE))
    core = plan.packages[0]
    assert (core.action, core.reason) == (
        Action.AWAIT,
        "staged by an earlier run; waits for approval",
    )
    assert core.staged == where_staged("core")
    assert [each.filename for each in core.artifacts] == ["core-1.0.pkg"]
    assert plan_headline(plan) == "3 packages: 2 to build and publish, 1 waiting for approval"
    assert plan_outputs(plan)["has-work"] == "true"


def test_the_files_of_what_waits_need_not_be_there(bench: Bench) -> None:
    history = bench.stage(CORE)
    (bench.root / ".releasekit/dist/fake/core/1.0/core-1.0.pkg").unlink()
    assert bench.planned(history).action is Action.AWAIT


def test_what_was_approved_is_kept(bench: Bench) -> None:
    """R19"""
    history = bench.stage(CORE)
    staging_of(bench).approve("core")
    core = bench.planned(history)
    assert (core.action, core.staged) == (Action.KEEP, None)


def test_other_bytes_that_were_approved_are_refused(bench: Bench) -> None:
    """R21"""
    history = bench.stage(CORE)
    bench.registry.files["core"] = {"core-1.0.pkg": "sha256:00"}
    core = bench.planned(history)
    assert core.action is Action.REFUSE
    assert "the registry holds core-1.0.pkg with sha256:00, ours has sha256:" in core.reason


def test_what_was_rejected_is_refused_and_says_who_has_to_bump(bench: Bench) -> None:
    history = bench.stage(CORE)
    staging_of(bench).waiting.clear()
    core = bench.planned(history)
    assert (core.action, core.reason, core.staged) == (Action.REFUSE, DROPPED, None)


def test_what_is_approved_while_the_plan_is_made_is_not_called_rejected(bench: Bench) -> None:
    history = bench.stage(CORE)
    looks = 0

    def look(name: str) -> None:
        nonlocal looks
        looks += name == "core"
        if looks == 2:
            bench.registry.files["core"] = {"core-1.0.pkg": "sha256:00"}

    bench.registry.on_lookup = look
    staging_of(bench).waiting.clear()
    core = bench.planned(history)
    assert (core.action, core.staged) == (Action.AWAIT, where_staged("core"))


def test_other_bytes_on_the_stage_are_refused(bench: Bench) -> None:
    """R21"""
    history = bench.stage(CORE)
    staging_of(bench).faults["core"] = [DigestMismatch("sha256:00 waits there, ours is sha256:01")]
    core = bench.planned(history)
    assert (core.action, core.reason) == (
        Action.REFUSE,
        "sha256:00 waits there, ours is sha256:01",
    )


@pytest.mark.parametrize("trouble", [Transient("503"), Rejected("400")])
def test_a_registry_without_an_answer_tells_nothing_new(bench: Bench, trouble: Exception) -> None:
    history = bench.stage(CORE)
    staging_of(bench).faults["core"] = [trouble]
    assert bench.planned(history).action is Action.AWAIT


def test_who_may_not_look_asks_once(bench: Bench) -> None:
    history = bench.stage(*ALL)
    staging_of(bench).blind = True
    staging_of(bench).waiting.clear()
    assert {each.action for each in bench.plan(history).packages} == {Action.AWAIT}
    assert staging_of(bench).looks == ["core"]


def test_who_may_look_at_some_is_told_of_those(bench: Bench) -> None:
    history = bench.stage(*ALL)
    staging_of(bench).waiting.clear()
    staging_of(bench).faults["app"] = [Denied("not yours")]
    actions = {each.package.id.name: each.action for each in bench.plan(history).packages}
    assert actions == {"core": Action.REFUSE, "app": Action.AWAIT, "cli": Action.REFUSE}


def test_what_has_no_id_now_keeps_that_of_the_journal(bench: Bench) -> None:
    """Of what was approved and is still looked through, a registry may tell no more than that."""
    history = bench.stage(CORE)
    staging_of(bench).nameless = True
    core = bench.planned(history)
    assert (core.action, core.staged) == (Action.AWAIT, where_staged("core"))


def test_where_nothing_stages_any_more_what_waits_is_awaited(bench: Bench) -> None:
    history = bench.stage(CORE)
    bench.staging = None
    assert bench.planned(history).action is Action.AWAIT


@pytest.mark.parametrize("trouble", [None, Denied("not yours"), Transient("503")])
@pytest.mark.parametrize("stages", [True, False])
def test_what_is_only_claimed_to_wait_and_is_not_seen_is_published(
    bench: Bench, trouble: Exception | None, stages: bool
) -> None:
    """R17, R52: anybody may have written it."""
    history = bench.stage(CORE, sealed=False)
    staging_of(bench).waiting.clear()
    staging_of(bench).faults["core"] = [trouble] if trouble else []
    bench.staging = bench.staging if stages else None
    core = bench.planned(history)
    assert (core.action, core.staged) == (Action.PUBLISH, None)


@pytest.mark.parametrize(
    ("event", "changed"),
    [
        ("outcome", {"seal": None}),
        ("outcome", {"package": "fake:app"}),
        ("outcome", {"version": "1.1"}),
        ("outcome", {"staged": {"id": "1", "url": "https://other.example/", "tag": ""}}),
        ("intent", {"registry": "https://other.example/"}),
    ],
)
def test_a_record_of_what_is_staged_is_sealed(
    bench: Bench, event: str, changed: dict[str, object]
) -> None:
    """R52: wherever it was staged, and whatever is sealed besides."""
    assert bench.stage(CORE).entries[CORE.id, CORE.version].staged_sealed
    path = bench.root / ".releasekit/journal.jsonl"
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    lines = []
    for each in records:
        del each["crc"]
        lines.append(encode({**each, **(changed if each["event"] == event else {})}))
    history = fold(b"".join(lines), state_directory=path.parent, seal=SEAL)
    assert history.entries[CORE.id, CORE.version].sealed
    assert not any(each.staged_sealed for each in history.entries.values())


def test_on_another_registry_nothing_waits(bench: Bench) -> None:
    history = bench.stage(CORE)
    bench.registry.url = "https://other.example/"
    core = bench.planned(history)
    assert (core.action, core.staged) == (Action.UPLOAD, None)


def test_what_nobody_vouches_for_waits_without_files(bench: Bench) -> None:
    """R21"""
    core = bench.planned(bench.stage(CORE, sealed=False))
    assert (core.action, core.artifacts) == (Action.AWAIT, ())
