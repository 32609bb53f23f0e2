"""Registries that take a whole release at once, over ones in memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from fakes import FakeRegistry, FakeTarget, FakeWorkspace, package, plan, released
from releasekit.errors import Denied, Rejected, Transient
from releasekit.fields import replace
from releasekit.model import Action, Dependency, Outcome, Package, Plan, Result
from releasekit.state.journal import read_history

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.model import Artifact
    from releasekit.state.journal import HistoryEntry

CORE = package("core")
APP = package("app", "core")
CLI = package("cli", "app")


@dataclass
class Shelf(FakeRegistry):
    """`troubles` are what its next deployments raise; before that they store if `stores`."""

    troubles: list[Exception] = field(default_factory=list)
    stores: bool = False
    whole: bool = True
    hangs: bool = False
    refused: str = ""
    deployed: list[list[str]] = field(default_factory=list)

    async def deploy(self, release: Mapping[Package, Sequence[Artifact]]) -> None:
        self.deployed.append([package.id.name for package in release])
        if self.hangs:
            await asyncio.Event().wait()
        if self.troubles:
            trouble = self.troubles.pop(0)
            if self.stores:
                self._take(release)
            raise trouble
        if self.refused in self.deployed[-1]:
            raise Rejected(f"{self.refused} is protected")
        self._take(release)

    def _take(self, release: Mapping[Package, Sequence[Artifact]]) -> None:
        for each, artifacts in release.items():
            self.store(each.id.name, artifacts)


def run(
    root: Path,
    shelf: Shelf,
    made: Plan,
    ecosystem: FakeWorkspace | None = None,
    **changes: object,
) -> dict[str, Result]:
    target = FakeTarget(ecosystem or FakeWorkspace(), shelf, deployment=shelf)
    return released(root, target, made, **changes)


def outcomes(results: dict[str, Result]) -> dict[str, Outcome]:
    return {name: result.outcome for name, result in results.items()}


def test_all_packages_go_out_at_once(tmp_path: Path) -> None:
    shelf = Shelf()
    results = run(tmp_path, shelf, plan(CORE, APP, CLI))
    assert set(outcomes(results).values()) == {Outcome.PUBLISHED}
    assert shelf.deployed == [["core", "app", "cli"]]
    assert shelf.uploads == []


def test_what_is_there_is_left_out(tmp_path: Path) -> None:
    shelf = Shelf()
    results = run(tmp_path, shelf, plan(CORE, APP, actions={"core": Action.KEEP}))
    assert outcomes(results) == {"core": Outcome.ALREADY_PUBLISHED, "app": Outcome.PUBLISHED}
    assert shelf.deployed == [["app"]]


def test_a_passing_trouble_is_tried_again(tmp_path: Path) -> None:
    """R12"""
    shelf = Shelf(troubles=[Transient("503"), Transient("429", retry_after=0.0)])
    results = run(tmp_path, shelf, plan(CORE, APP))
    assert set(outcomes(results).values()) == {Outcome.PUBLISHED}
    assert len(shelf.deployed) == 3


def test_an_answer_that_is_lost_deploys_nothing_twice(tmp_path: Path) -> None:
    """R15"""
    shelf = Shelf(troubles=[Transient("reset", ambiguous=True)], stores=True)
    results = run(tmp_path, shelf, plan(CORE, APP))
    assert set(outcomes(results).values()) == {Outcome.PUBLISHED}
    assert len(shelf.deployed) == 1


@pytest.mark.parametrize("gate", ["visible", "accepted"])
def test_the_last_answer_that_is_lost_is_looked_after(tmp_path: Path, gate: str) -> None:
    """R16"""
    shelf = Shelf(troubles=[Transient("reset", ambiguous=True)], stores=True)
    results = run(tmp_path, shelf, plan(CORE, APP), max_retries=0, gate=gate)
    assert set(outcomes(results).values()) == {Outcome.PUBLISHED}


@pytest.mark.parametrize("gate", ["visible", "accepted"])
def test_what_nobody_can_tell_is_unknown(tmp_path: Path, gate: str) -> None:
    """R16"""
    shelf = Shelf(troubles=[Transient("reset", ambiguous=True)])
    results = run(tmp_path, shelf, plan(CORE, APP), max_retries=0, gate=gate)
    assert set(outcomes(results).values()) == {Outcome.UNKNOWN}


def test_a_deployment_that_hangs_ends_in_time(tmp_path: Path) -> None:
    results = run(tmp_path, Shelf(hangs=True), plan(CORE), max_retries=0, task_timeout=60.0)
    assert outcomes(results) == {"core": Outcome.UNKNOWN}


def test_what_is_refused_is_refused_for_all(tmp_path: Path) -> None:
    results = run(tmp_path, Shelf(troubles=[Denied("403")]), plan(CORE, APP))
    assert set(outcomes(results).values()) == {Outcome.FAILED}
    assert results["app"].reason == "403"


def test_what_cannot_be_built_keeps_all_of_it_back(tmp_path: Path) -> None:
    """R6"""
    shelf = Shelf()
    ecosystem = FakeWorkspace(broken=["core"], batch=True)
    results = run(tmp_path, shelf, plan(CORE, APP), ecosystem)
    assert set(outcomes(results).values()) == {Outcome.FAILED}
    assert "does not build" in results["core"].reason
    assert "fake:core" in results["app"].reason
    assert shelf.deployed == []


def test_a_conflict_keeps_all_of_it_back(tmp_path: Path) -> None:
    shelf = Shelf()
    results = run(tmp_path, shelf, plan(CORE, APP, actions={"core": Action.REFUSE}))
    assert set(outcomes(results).values()) == {Outcome.FAILED}
    assert results["core"].reason == "because"
    assert shelf.deployed == []


def parts(
    root: Path, shelf: Shelf, made: Plan, ecosystem: FakeWorkspace | None = None, **changes: object
) -> dict[str, Result]:
    """Each in its turn, with all that can go companions; one upload at a time, by name."""
    settings = {"concurrency": 1, **changes}
    shelf.whole = False
    return run(root, shelf, made, ecosystem or FakeWorkspace(batch=True), **settings)


def test_the_first_takes_along_what_needs_nothing_else(tmp_path: Path) -> None:
    """R1, R14: each has an intent of its own before the one upload, and its own outcome after."""
    shelf = Shelf()
    kept = package("kept")
    made = plan(CORE, APP, CLI, kept, package("new", "kept"), actions={"kept": Action.KEEP})
    results = parts(tmp_path, shelf, made)
    assert outcomes(results).pop("kept") is Outcome.ALREADY_PUBLISHED
    assert set(outcomes(results).values()) == {Outcome.PUBLISHED, Outcome.ALREADY_PUBLISHED}
    assert shelf.deployed == [["core", "app", "cli", "new"]]
    entries = {
        key[0].name: entry for key, entry in read_history(tmp_path / ".releasekit").entries.items()
    }
    for name in shelf.deployed[0]:
        intent = entries[name].intent
        assert intent is not None
        assert intent.digests == {it.filename: it.sha256 for it in entries[name].artifacts}
        assert entries[name].outcome is Outcome.PUBLISHED


def test_what_does_not_build_stays_with_what_needs_it(tmp_path: Path) -> None:
    """R6"""
    shelf = Shelf()
    results = parts(
        tmp_path,
        shelf,
        plan(CORE, APP, CLI, package("lone")),
        FakeWorkspace(broken=["app"], batch=True),
    )
    assert outcomes(results) == {
        "core": Outcome.PUBLISHED,
        "app": Outcome.FAILED,
        "cli": Outcome.BLOCKED,
        "lone": Outcome.PUBLISHED,
    }
    assert shelf.deployed == [["core", "lone"]]


RING = replace(CORE, set_aside=(Dependency(on=APP.id),))


def test_what_is_of_no_use_alone_goes_out_with_the_rest_or_not_at_all(tmp_path: Path) -> None:
    """R6: core needs app too, though it goes first."""
    shelf = Shelf(refused="app")
    results = parts(tmp_path, shelf, plan(RING, APP, CLI, package("lone")))
    assert outcomes(results) == {
        "core": Outcome.FAILED,
        "app": Outcome.BLOCKED,
        "cli": Outcome.BLOCKED,
        "lone": Outcome.PUBLISHED,
    }
    assert shelf.deployed == [["core", "app", "cli", "lone"], ["core", "app"], ["lone"]]


def test_what_is_of_no_use_alone_is_not_sent_without_the_rest(tmp_path: Path) -> None:
    """R6"""
    shelf = Shelf()
    broken = FakeWorkspace(broken=["app"], batch=True)
    results = parts(tmp_path, shelf, plan(RING, APP, package("lone")), broken)
    assert outcomes(results)["core"] is Outcome.FAILED
    assert results["core"].reason == "it needs fake:app, which failed; nothing of it was sent"
    assert results["core"].hint == "Fix app, then run the same command again."
    assert shelf.deployed == [["lone"]]


def test_what_is_of_no_use_alone_is_not_sent_where_sources_of_the_rest_changed(
    tmp_path: Path,
) -> None:
    """R6"""
    shelf = Shelf()
    careless = FakeWorkspace(touching={"lone": tmp_path / "app.toml"}, batch=True)
    results = parts(tmp_path, shelf, plan(RING, APP, package("lone")), careless)
    assert outcomes(results) == {
        "core": Outcome.FAILED,
        "app": Outcome.FAILED,
        "lone": Outcome.PUBLISHED,
    }
    assert results["core"].reason == "it needs fake:app, which failed; nothing of it was sent"
    assert shelf.deployed == [["lone"]]


def test_only_what_is_refused_fails(tmp_path: Path) -> None:
    """R6: all or none went out, and what is wrong is wrong with one of them."""
    shelf = Shelf(refused="app")
    results = parts(tmp_path, shelf, plan(CORE, APP, CLI, package("lone")))
    assert outcomes(results) == {
        "core": Outcome.PUBLISHED,
        "app": Outcome.FAILED,
        "cli": Outcome.BLOCKED,
        "lone": Outcome.PUBLISHED,
    }
    assert results["app"].reason == "app is protected"


def test_what_was_refused_along_with_another_binds_nobody(tmp_path: Path) -> None:
    """R14: of what never had a turn of its own the journal knows that nothing was sent."""
    shelf = Shelf(troubles=[Denied("403")] * 5)
    results = parts(tmp_path, shelf, plan(CORE, APP), failure_policy="stop")
    assert outcomes(results) == {"core": Outcome.FAILED, "app": Outcome.BLOCKED}
    entries = read_history(tmp_path / ".releasekit").entries
    assert {key[0].name for key, entry in entries.items() if entry.intent} == {"core", "app"}
    assert not any(entry.uncertain for entry in entries.values())


@pytest.mark.parametrize("stores", [True, False])
def test_an_answer_that_is_lost_is_lost_for_all_who_went_along(
    tmp_path: Path, stores: bool
) -> None:
    """R15, R16"""
    shelf = Shelf(troubles=[Transient("reset", ambiguous=True)], stores=stores)
    results = parts(tmp_path, shelf, plan(CORE, APP, package("lone")), max_retries=0)
    if stores:
        assert set(outcomes(results).values()) == {Outcome.PUBLISHED}
        assert len(shelf.deployed) == 1
    else:
        assert outcomes(results)["core"] is Outcome.UNKNOWN
        assert outcomes(results)["app"] is Outcome.UNKNOWN
        assert all(entry.uncertain for entry in doubtful(tmp_path, "core", "app"))


def doubtful(root: Path, *names: str) -> list[HistoryEntry]:
    entries = read_history(root / ".releasekit").entries
    return [entry for key, entry in entries.items() if key[0].name in names]


def test_two_at_once_do_not_send_anything_twice(tmp_path: Path) -> None:
    shelf = Shelf()
    names = [f"root{number}" for number in range(8)]
    results = parts(tmp_path, shelf, plan(*map(package, names)), concurrency=4)
    assert set(outcomes(results).values()) == {Outcome.PUBLISHED}
    assert shelf.deployed == [names]
    assert {result.attempts for result in results.values()} == {1}


def test_a_passing_trouble_sends_all_of_them_again(tmp_path: Path) -> None:
    """R12"""
    shelf = Shelf(troubles=[Transient("503"), Transient("429", retry_after=0.0)])
    results = parts(tmp_path, shelf, plan(CORE, APP))
    assert set(outcomes(results).values()) == {Outcome.PUBLISHED}
    assert shelf.deployed == [["core", "app"]] * 3


def test_what_changed_since_the_plan_keeps_all_of_it_back(tmp_path: Path) -> None:
    """R45"""
    shelf = Shelf()
    ecosystem = FakeWorkspace(touching={"app": tmp_path / "app.toml"})
    results = run(tmp_path, shelf, plan(CORE, APP), ecosystem)
    assert set(outcomes(results).values()) == {Outcome.FAILED}
    assert "app.toml is not what it was" in results["app"].reason
    assert "goes out in one deployment with fake:app" in results["core"].reason
    assert shelf.deployed == []


def test_what_changed_since_the_plan_is_not_taken_along(tmp_path: Path) -> None:
    """R45: nor is what needs it, and the others are."""
    shelf = Shelf(whole=False)
    ecosystem = FakeWorkspace(touching={"app": tmp_path / "app.toml"}, batch=True)
    lone = package("lone")
    results = run(tmp_path, shelf, plan(CORE, APP, CLI, lone), ecosystem)
    assert outcomes(results) == {
        "core": Outcome.PUBLISHED,
        "app": Outcome.FAILED,
        "cli": Outcome.BLOCKED,
        "lone": Outcome.PUBLISHED,
    }
    assert shelf.deployed == [["core", "lone"]]
    assert "app.toml is not what it was" in results["app"].reason
