"""One release by four jobs: separate checkouts and states, one registry, real builds."""

from __future__ import annotations

import json
import random
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from effort import SEARCHING
from integration.servers import pypiserver
from integration.test_publish import assert_in_order
from integration.tools import require_tool
from workspaces import TWELVE, Program, kill, uv_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from integration.servers import IndexServer

ROWS = 4


@dataclass
class Job:
    """One row of the matrix, on a machine of its own."""

    shard: str
    checkout: Path
    program: Program
    arguments: tuple[str, ...]
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> subprocess.Popen[bytes]:
        self.process = self.program.start(
            "publish", self.checkout, "--shard", self.shard, *self.arguments
        )
        return self.process

    def kill(self) -> None:
        if self.process is not None:
            kill(self.process, self.checkout)

    def outcomes(self) -> dict[str, str]:
        results = json.loads((self.program.home / "results.json").read_text())
        return {row["name"]: row["outcome"] for row in results["packages"]}


@dataclass
class Release:
    """A plan in four parts, and a job for each of them."""

    directory: Path
    server: IndexServer
    jobs: list[Job] = field(default_factory=list)

    def plan(self) -> None:
        source = uv_workspace(self.directory / "source")
        plan = self.directory / "plan.json"
        registry = (
            f"--pypi-registry={self.server.upload_url}",
            f"--pypi-index={self.server.index_url}",
        )
        home = self.directory / "planning"
        home.mkdir()
        made = Program(home, self.server.environment).run(
            "plan", source, *registry, f"--shards={ROWS}", "--wait=10m", f"--plan-file={plan}"
        )
        assert made.code == 0, made.out + made.err
        rows = [package["shard"] for package in json.loads(plan.read_text())["packages"]]
        assert set(rows) == {f"{number}/{ROWS}" for number in range(1, ROWS + 1)}
        arguments = (*registry, f"--plan-file={plan}", "--wait=10m", "--retry-base-delay=0.05s")
        for number in range(1, ROWS + 1):
            place = self.directory / f"job {number}"
            place.mkdir()
            clone = ["git", "clone", "--quiet", str(source), str(place / "checkout")]
            subprocess.run(clone, check=True, capture_output=True)
            self.jobs.append(
                Job(
                    f"{number}/{ROWS}",
                    place / "checkout",
                    Program(place, self.server.environment),
                    arguments,
                )
            )

    def until_uploads(self, count: int) -> None:
        """Until so many uploads have begun, or nobody is at work any more."""
        while len(self.server.recorder.uploads) < count and any(
            job.process is not None and job.process.poll() is None for job in self.jobs
        ):
            time.sleep(0.02)

    def said(self) -> str:
        logs = ((job.shard, job.program.log) for job in self.jobs)
        return "\n".join(f"{shard}\n{log.read_text()}" for shard, log in logs if log.exists())


@pytest.fixture(name="release")
def _release(tmp_path: Path) -> Iterator[Release]:
    require_tool("pypi-server")
    with pypiserver(tmp_path / "server") as server:
        made = Release(tmp_path, server)
        made.plan()
        yield made
        for job in made.jobs:
            job.kill()


def assert_published(release: Release) -> None:
    """By the server's own account: each file was taken once, and in order."""
    taken = [u.filename for u in release.server.recorder.uploads if u.status == 200]
    assert len(taken) == len(set(taken)) == 2 * len(TWELVE), sorted(taken)
    assert_in_order(release.server.recorder)
    accounted = [name for job in release.jobs for name in job.outcomes()]
    assert sorted(accounted) == sorted(TWELVE)


@pytest.mark.parametrize("seed", [1, 2] if SEARCHING else [1])
def test_four_jobs_publish_all_once_and_in_order_whoever_is_killed_and_run_again(
    release: Release, seed: int
) -> None:
    """R1, R4, R16, R18: those that wait for them notice nothing."""
    rng = random.Random(seed)
    for job in release.jobs:
        job.start()
    for uploads in sorted(rng.sample(range(1, 2 * len(TWELVE) - 2), 4 if SEARCHING else 2)):
        release.until_uploads(uploads)
        victim = rng.choice(release.jobs)
        victim.kill()
        victim.start()
    for job in release.jobs:
        assert job.process is not None
        assert job.process.wait() == 0, release.said()
    assert_published(release)
    assert "another job publishes it" in release.said()


def test_one_job_that_failed_is_run_again_alone(release: Release) -> None:
    """R6: what needs its packages is blocked, the rest is published, and a second run finishes."""
    broken, *others = release.jobs
    for job in others:
        job.arguments = (*job.arguments, "--wait=2s")
    for process in [job.start() for job in others]:
        process.wait()
    blocked = {o for job in others for o in job.outcomes().values()}
    assert blocked == {"blocked", "published"}, release.said()
    assert "which is not on its registry after 2.0 s" in release.said()
    for job in (broken, *others):
        job.arguments = (*job.arguments, "--wait=10m")
    for process in [job.start() for job in release.jobs]:
        assert process.wait() == 0, release.said()
    assert_published(release)
