"""What may not be sent twice, as a step: its registry is believed once it has had its time."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

import pytest

from fakes import FakeRegistry, FakeTarget, FakeWorkspace, package, package_id, plan, released
from releasekit.errors import BuildFailed, Transient
from releasekit.fields import replace
from releasekit.model import Outcome, WarningName
from releasekit.release.polling import POLLING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.model import Artifact, Package, Plan, Published, Result

CORE, APP, BESIDE = package("core"), package("app", "core"), package("beside")
ALL = plan(CORE, APP, BESIDE)
SHOWN = {"core-1.0.pkg": f"sha256:{hashlib.sha256(b'core 1.0 build 1').hexdigest()}"}
BROKEN = BuildFailed("its command failed with exit code 1")
SILENCE = Transient("its check crashed")


class Service(FakeRegistry):
    """Takes each version as often as it is sent; `silent` counts the questions it does not answer,
    and what was sent of `late` is there only so many seconds later.
    """

    def __init__(self) -> None:
        super().__init__()
        self.silent: dict[str, int] = {}
        self.late: dict[str, float] = {}
        self.asked: list[tuple[str, float]] = []

    async def lookup(self, package: Package) -> Published | None:
        name = package.id.name
        self.asked.append((name, asyncio.get_running_loop().time()))
        if self.silent.get(name, 0) > 0:
            self.silent[name] -= 1
            raise SILENCE
        return await super().lookup(package)

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        loop, late = asyncio.get_running_loop(), self.late.get(package.id.name, 0.0)
        if late:
            loop.call_later(late, self.store, package.id.name, artifacts)
            self.uploads.append(package.id.name)
            raise BROKEN
        await super().upload(package, artifacts)


def run(root: Path, service: Service, made: Plan = ALL, **changes: object) -> dict[str, Result]:
    target = FakeTarget(FakeWorkspace(), service, is_repeatable=False)
    return released(root, target, made, **changes)


def outcomes(results: dict[str, Result]) -> list[str]:
    return [str(results[name].outcome) for name in ("core", "app", "beside")]


def test_each_is_asked_for_and_then_sent_once(tmp_path: Path) -> None:
    service, done = Service(), list[str]()
    service.on_lookup = lambda name: done.append(f"ask {name}")
    service.on_upload = lambda name: done.append(f"send {name}")
    assert outcomes(run(tmp_path, service)) == ["published"] * 3
    for name in ("core", "beside", "app"):
        assert done.index(f"ask {name}") < done.index(f"send {name}")
    assert sorted(service.uploads) == ["app", "beside", "core"]


def test_what_is_there_by_then_is_not_sent(tmp_path: Path) -> None:
    """Whoever has sent it since the plan was made."""
    service = Service()
    service.files["core"] = SHOWN
    results = run(tmp_path, service, plan(CORE, APP))
    assert results["core"].outcome is Outcome.ALREADY_PUBLISHED
    assert results["core"].reason == "its check finds it"
    assert service.uploads == ["app"]


def test_one_that_fails_blocks_what_needs_it_and_nothing_else(tmp_path: Path) -> None:
    """Only at the end of its time is what is not there a failure."""
    service = Service()
    service.faults["core"] = [BROKEN]
    results = run(tmp_path, service)
    assert outcomes(results) == ["failed", "blocked", "published"]
    assert results["core"].reason == str(BROKEN)
    times = [at for name, at in service.asked if name == "core"]
    assert times[-1] - times[0] > POLLING.ambiguity_window_s - POLLING.longest_pause_s
    assert service.uploads.count("core") == 1


def test_what_shows_late_is_published_with_a_warning(tmp_path: Path) -> None:
    service = Service()
    service.late["core"] = 8.0
    results = run(tmp_path, service)
    assert outcomes(results) == ["published"] * 3
    (warning,) = results["core"].warnings
    assert (warning.name, warning.message) == (WarningName.REFUSED_BUT_THERE, str(BROKEN))
    assert service.uploads.count("core") == 1


def test_where_nobody_tells_nothing_is_sent(tmp_path: Path) -> None:
    service = Service()
    service.silent["core"] = 1_000
    results = run(tmp_path, service)
    assert outcomes(results) == ["unknown", "blocked", "published"]
    assert results["core"].reason == str(SILENCE)
    assert "core" not in service.uploads


def test_where_nobody_tells_afterwards_it_stays_unknown(tmp_path: Path) -> None:
    service = Service()
    service.faults["core"] = [BROKEN]
    service.on_upload = lambda name: service.silent.update({name: 1_000})
    results = run(tmp_path, service, ALL, failure_policy="stop", concurrency=1)
    assert outcomes(results) == ["unknown", "blocked", "cancelled"]
    assert results["core"].reason == f"{BROKEN}; and {SILENCE}"
    assert service.uploads == ["core"]


def test_a_question_without_an_answer_is_asked_again(tmp_path: Path) -> None:
    service = Service()
    service.silent["core"] = 3
    assert outcomes(run(tmp_path, service)) == ["published"] * 3


def test_another_attempt_waits_until_the_last_one_must_show(tmp_path: Path) -> None:
    """Exit status 75: only `max-retries` times, and never before its time is over."""
    service = Service()
    service.faults["core"] = [Transient("try again")] * 2
    results = run(tmp_path, service, plan(CORE), max_retries=2)
    assert results["core"].outcome is Outcome.PUBLISHED
    assert service.uploads == ["core"] * 3
    times = [at for _, at in service.asked]
    assert times[-1] - times[0] > 2 * (POLLING.ambiguity_window_s - POLLING.longest_pause_s)
    service = Service()
    service.faults["core"] = [Transient("try again")] * 9
    (tmp_path / "again").mkdir()
    results = run(tmp_path / "again", service, plan(CORE), max_retries=1)
    assert results["core"].outcome is Outcome.FAILED
    assert service.uploads == ["core"] * 2


def test_one_that_takes_too_long_is_not_sent_again(tmp_path: Path) -> None:
    service = Service()
    service.hang.add("core")
    results = run(tmp_path, service, plan(CORE), task_timeout=5.0)
    assert results["core"].outcome is Outcome.FAILED
    assert results["core"].reason == "its `publish` did not end within 5 s"
    assert service.uploads == ["core"]


@pytest.mark.parametrize("shows_late", [False, True])
def test_what_an_earlier_run_had_begun_may_still_show(tmp_path: Path, *, shows_late: bool) -> None:
    """R71: after SIGKILL, that it is not there counts only in time."""
    made = plan(CORE)
    begun = tuple(replace(each, begun=True) for each in made.packages)
    service = Service()
    target = FakeTarget(FakeWorkspace(), service, is_repeatable=False)

    def during(_: object) -> None:
        if shows_late:  # what outlived that run has sent it
            loop = asyncio.get_running_loop()
            loop.call_later(4.0, service.files.update, {"core": SHOWN})

    results = released(tmp_path, target, replace(made, packages=begun), during)
    ended = Outcome.ALREADY_PUBLISHED if shows_late else Outcome.PUBLISHED
    assert results["core"].outcome is ended
    assert service.uploads == ([] if shows_late else ["core"])
    times = [at for _, at in service.asked]
    assert times[-1] - times[0] > (3.0 if shows_late else 15.0)


def test_what_comes_behind_the_release_goes_last(tmp_path: Path) -> None:
    service = Service()
    target = FakeTarget(
        FakeWorkspace(), service, is_repeatable=False, after_release={CORE.id, APP.id}
    )
    assert outcomes(released(tmp_path, target, ALL)) == ["published"] * 3
    assert service.uploads == ["beside", "core", "app"]


def test_nothing_comes_behind_a_release_that_is_not_made(tmp_path: Path) -> None:
    service = Service()
    target = FakeTarget(
        FakeWorkspace(), service, is_repeatable=False, after_release={package_id("app")}
    )
    results = released(tmp_path, target, ALL, lambda _: None, None, "the push failed")
    assert outcomes(results) == ["published", "blocked", "published"]
    assert "it comes after the release: the push failed" in results["app"].reason
    assert sorted(service.uploads) == ["beside", "core"]


def test_nothing_comes_behind_what_failed(tmp_path: Path) -> None:
    service = Service()
    service.faults["core"] = [BROKEN]
    target = FakeTarget(
        FakeWorkspace(), service, is_repeatable=False, after_release={package_id("app")}
    )
    results = released(tmp_path, target, ALL)
    assert outcomes(results) == ["failed", "blocked", "published"]


def test_what_comes_behind_needs_all_of_the_release(tmp_path: Path) -> None:
    """Also what it does not wait for by itself."""
    service = Service()
    service.faults["beside"] = [BROKEN]
    target = FakeTarget(
        FakeWorkspace(), service, is_repeatable=False, after_release={CORE.id, APP.id}
    )
    results = released(tmp_path, target, ALL)
    assert outcomes(results) == ["blocked", "blocked", "failed"]
    assert "it comes after the release: fake:beside failed" in results["core"].reason
