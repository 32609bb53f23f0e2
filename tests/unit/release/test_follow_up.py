"""What packages do by themselves once they are published, over a registry in memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fakes import FakeRegistry, FakeTarget, FakeWorkspace, package, plan, released
from releasekit import report
from releasekit.errors import BuildFailed, Denied, Transient
from releasekit.model import Action, Outcome, Package, Plan, Report, Result
from releasekit.release.polling import BY_HAND
from releasekit.scheduler.controls import CANCEL_GRACE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from releasekit.release.release import ReleaseRun

CORE = package("core")
APP = package("app", "core")


@dataclass
class Scripts:
    """Those of the packages in `declared`; `until` is what each waits for."""

    registry: FakeRegistry
    declared: tuple[str, ...] = ("core", "app")
    trouble: BuildFailed | None = None
    until: Callable[[], bool] = lambda: True
    on_start: Callable[[], None] = lambda: None
    ran: list[str] = field(default_factory=list)
    running: int = 0
    peak: int = 0

    def due(self, package: Package) -> str:
        return "its postpublish script" if package.id.name in self.declared else ""

    async def follow_up(self, package: Package) -> None:
        assert package.id.name in self.registry.files, "not on the registry yet"
        self.running += 1
        self.peak = max(self.peak, self.running)
        self.on_start()
        try:
            while not self.until():  # noqa: ASYNC110
                await asyncio.sleep(1)
            await asyncio.sleep(0)
        finally:
            self.running -= 1
        self.ran.append(package.id.name)
        if self.trouble is not None:
            raise self.trouble


def run(
    root: Path, scripts: Scripts, made: Plan, *, stop: bool = False, **changes: object
) -> dict[str, Result]:
    target = FakeTarget(
        FakeWorkspace(), scripts.registry, due=scripts.due, follow_up=scripts.follow_up
    )

    def during(release: ReleaseRun) -> None:
        if stop:
            scripts.on_start = lambda: release.stop("cancelled", grace_s=CANCEL_GRACE_S)

    return released(root, target, made, during, **changes)


def outcomes(results: dict[str, Result]) -> dict[str, Outcome]:
    return {name: result.outcome for name, result in results.items()}


def test_each_follows_its_own_publication_once(tmp_path: Path) -> None:
    scripts = Scripts(FakeRegistry())
    results = run(tmp_path, scripts, plan(CORE, APP))
    assert set(outcomes(results).values()) == {Outcome.PUBLISHED}
    assert sorted(scripts.ran) == ["app", "core"]
    assert scripts.peak == 1
    assert {span.phase for span in results["core"].spans} == {
        "build", "upload", "confirm", "follow-up",
    }  # fmt: skip
    assert not any(result.hint for result in results.values())


def test_what_declares_nothing_has_nothing_to_follow(tmp_path: Path) -> None:
    scripts = Scripts(FakeRegistry(), declared=("app",))
    results = run(tmp_path, scripts, plan(CORE, APP))
    assert scripts.ran == ["app"]
    assert "follow-up" not in {span.phase for span in results["core"].spans}


def test_nobody_waits_for_it(tmp_path: Path) -> None:
    """R3: `app` is uploaded while what follows `core` still runs."""
    registry = FakeRegistry()
    scripts = Scripts(registry, declared=("core",), until=lambda: "app" in registry.files)
    results = run(tmp_path, scripts, plan(CORE, APP))
    assert set(outcomes(results).values()) == {Outcome.PUBLISHED}


def test_a_failure_leaves_the_package_published_and_is_told(tmp_path: Path) -> None:
    """R16"""
    trouble = BuildFailed(
        "but its postpublish script failed with exit code 3", log=("no",), hint="See log."
    )
    scripts = Scripts(FakeRegistry(), declared=("core",), trouble=trouble)
    results = run(tmp_path, scripts, plan(CORE, APP), failure_policy="stop")
    assert set(outcomes(results).values()) == {Outcome.PUBLISHED}
    core = results["core"]
    assert core.reason.endswith(
        "shows our bytes; but its postpublish script failed with exit code 3"
    )
    assert core.hint == f"{BY_HAND} See log."
    assert core.log == ("no",)
    told = report.summary(
        Report(run_id="r", plan_digest="", commit="", started_at="", duration_s=1.0,
               results=tuple(results.values()))
    )  # fmt: skip
    assert "postpublish script failed with exit code 3" in told
    assert "Last lines of" in told


def test_it_has_a_limit_of_time(tmp_path: Path) -> None:
    """R40"""
    scripts = Scripts(FakeRegistry(), declared=("core",), until=lambda: False)
    results = run(tmp_path, scripts, plan(CORE), task_timeout=60.0)
    assert outcomes(results) == {"core": Outcome.PUBLISHED}
    assert "its postpublish script did not end within 60 s" in results["core"].reason


def test_what_an_earlier_run_published_is_not_followed_again(tmp_path: Path) -> None:
    found = Scripts(FakeRegistry())
    results = run(tmp_path, found, plan(CORE, actions={"core": Action.KEEP}))
    assert outcomes(results) == {"core": Outcome.ALREADY_PUBLISHED}
    assert found.ran == []


def test_what_is_stored_and_refused_is_followed(tmp_path: Path) -> None:
    """R57"""
    refused = Scripts(FakeRegistry(lost={"core": Denied("403: the tag is not yours")}))
    results = run(tmp_path, refused, plan(CORE))
    assert outcomes(results) == {"core": Outcome.PUBLISHED}
    assert refused.ran == ["core"]


def test_what_is_not_published_is_not_followed(tmp_path: Path) -> None:
    registry = FakeRegistry(faults={"core": [Denied("403")]})
    scripts = Scripts(registry)
    results = run(tmp_path, scripts, plan(CORE, APP))
    assert outcomes(results) == {"core": Outcome.FAILED, "app": Outcome.BLOCKED}
    assert scripts.ran == []


def test_a_lost_answer_is_followed_all_the_same(tmp_path: Path) -> None:
    """R15: this run has published it, whoever said so."""
    registry = FakeRegistry(lost={"core": Transient("reset", ambiguous=True)})
    scripts = Scripts(registry)
    results = run(tmp_path, scripts, plan(CORE), max_retries=0)
    assert outcomes(results) == {"core": Outcome.PUBLISHED}
    assert scripts.ran == ["core"]


def test_a_run_that_is_stopped_says_what_it_owes(tmp_path: Path) -> None:
    """R28, R29: what runs is cut off, and what waits does not start."""
    both = (CORE, package("other"))
    scripts = Scripts(FakeRegistry(), declared=("core", "other"), until=lambda: False)
    results = run(tmp_path, scripts, plan(*both), stop=True)
    assert scripts.ran == []
    published = {n for n, it in outcomes(results).items() if it is Outcome.PUBLISHED}
    assert published
    for name in published:
        assert "its postpublish script did not run to the end" in results[name].reason
        assert BY_HAND in results[name].hint


def test_a_run_that_is_stopped_mildly_owes_nothing(tmp_path: Path) -> None:
    """R41: what was in flight is complete only with what follows it."""
    registry = FakeRegistry()
    scripts = Scripts(registry, declared=("core", "other"))
    target = FakeTarget(FakeWorkspace(), registry, due=scripts.due, follow_up=scripts.follow_up)

    def during(release: ReleaseRun) -> None:
        registry.on_upload = lambda _: release.stop("cancelled by the key q")

    made = plan(CORE, package("other"))
    results = released(tmp_path, target, made, during, concurrency=1)
    (sent,) = registry.uploads
    assert results.pop(sent).outcome is Outcome.PUBLISHED
    assert scripts.ran == [sent]
    assert set(outcomes(results).values()) == {Outcome.CANCELLED}


def test_a_dry_run_follows_nothing(tmp_path: Path) -> None:
    scripts = Scripts(FakeRegistry())
    run(tmp_path, scripts, plan(CORE), dry_run=True)
    assert scripts.ran == []
