"""A job of the component that GitLab cancels, and a person retries: a run over real builds and a
real index, as the runner ends it and gives the next attempt what it kept.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from documents import ROOT, blocks
from harness.gitlab_pipeline import SERVER, Project
from harness.gitlab_runner import RunnerJob
from integration import servers
from integration.recorder import Fault
from integration.tools import require_tool
from workspaces import git, uv_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.gitlab_runner import Executor

# Two leaves, and what waits for them.
PACKAGES: Mapping[str, tuple[str, ...]] = {
    "demo-a": (), "demo-b": (), "demo-c": ("demo-a", "demo-b")
}  # fmt: skip
ONE_JOB = next(block.text for block in blocks(ROOT / "docs/gitlab.md") if block.file)
OF_TAG = {"CI_COMMIT_TAG": "v1.0.0", "CI_COMMIT_REF_PROTECTED": "true"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[servers.IndexServer]:
    require_tool("pypi-server")
    with servers.pypiserver(tmp_path / "server") as server:
        yield server


class Site:
    """A project, whose job `publish` is defined once and attempted any number of times."""

    def __init__(self, place: Path, server: servers.IndexServer) -> None:
        (place / "beside it").mkdir()
        self.project = Project(
            uv_workspace(place / "checkout", PACKAGES), beside=place / "beside it"
        )
        self.project.configure(ONE_JOB)
        self._job = self.project.job("publish", OF_TAG)
        self.state = self.project.root / ".releasekit"
        self._variables = {
            **self.project.environment,
            **server.environment,
            **OF_TAG,
            "CI": "true",
            "GITLAB_CI": "true",
            "CI_SERVER_URL": SERVER,
            "CI_PROJECT_DIR": str(self.project.root),
            "CI_PROJECT_PATH": "acme/mono",
            "CI_BUILDS_DIR": str(self.project.beside / "builds"),
            "CI_PIPELINE_ID": "17",
            "CI_JOB_NAME_SLUG": "publish",
            "RELEASEKIT_STATE_KEY": "0123456789abcdef" * 2,
            "RELEASEKIT_PYPI_REGISTRY": server.upload_url,
        }
        self._attempts = 0

    def attempt(self) -> RunnerJob:
        self._attempts += 1
        number = str(1000 + self._attempts)
        told = {"CI_JOB_ID": number, "CI_JOB_URL": f"{SERVER}/acme/mono/-/jobs/{number}"}
        kept = self.project.beside / "runner"
        return RunnerJob(self._job, {**self._variables, **told}, self.project.root, kept)

    @property
    def components(self) -> Path:
        return self.project.beside / "the components"

    def results(self) -> dict[str, Any]:
        return dict(json.loads((self.state / "results.json").read_text()))


@pytest.fixture
def site(server: servers.IndexServer, tmp_path: Path) -> Iterator[Site]:
    with TemporaryDirectory(prefix="releasekit-gitlab-", dir="/var/tmp") as place:
        yield Site(Path(place), server)


def test_no_program_is_run_that_another_job_has_left(site: Site) -> None:
    """R52: its disk outlives a job, also of a branch that nobody has reviewed.

    https://gitlab.com/gitlab-org/gitlab-runner/-/blob/v18.6.0/executors/docker/docker.go
    (createBuildVolume)
    """
    builds = site.project.beside / "builds"
    old, own = builds / ".releasekit.7", builds / ".releasekit.1001"
    for home in (old, builds / ".releasekit" / git(site.components, "rev-parse", "HEAD").strip()):
        (home / ".git/hooks").mkdir(parents=True)
        for program in ("entrypoint.sh", ".git/hooks/post-checkout"):
            (home / program).write_text('#!/bin/sh\necho "evil ran"\n')
            (home / program).chmod(0o755)
    own.symlink_to(shutil.copytree(old, site.project.beside / "elsewhere"))
    os.utime(old, (0, 0))
    job = site.attempt()
    assert job.end() == 0, job.log.read_text()
    assert "evil ran" not in job.log.read_text()
    assert job.dotenv()["RK_RESULT"] == "success"
    assert not old.exists()
    assert not own.is_symlink()


@pytest.mark.parametrize(
    ("executor", "hangs", "result", "resumed"),
    [("shell", False, "cancelled", "as built before"), ("docker", True, "partial", "earlier run")],
)
def test_a_job_that_is_cancelled_and_retried_publishes_each_file_once(
    site: Site,
    server: servers.IndexServer,
    executor: Executor,
    hangs: bool,
    result: str,
    resumed: str,
) -> None:
    """R16, R27"""
    server.recorder.faults.append(Fault(kind="late"))
    first = site.attempt()
    first.until(lambda: server.recorder.holding > 0)
    if hangs:  # the other leaf is there, and no package is cancelled before it was its turn
        first.until(lambda: len(_accepted(server)) == 3)
    first.cancel(executor)
    if not hangs:
        server.recorder.let_go()
    assert first.end() != 0
    assert first.dotenv()["RK_RESULT"] == result
    outcomes = {row["name"]: row["outcome"] for row in site.results()["packages"]}
    assert set(outcomes) == set(PACKAGES)
    assert outcomes["demo-c"] in {"cancelled", "blocked"}

    second = site.attempt()
    assert second.end() == 0, second.log.read_text()
    following = second.dotenv()
    assert following["RK_RESULT"] == "success"
    assert following["RK_REPORT_URL"].endswith(
        "/-/jobs/1002/artifacts/file/.releasekit/report.html"
    )
    accepted = _accepted(server)
    assert sorted(accepted) == sorted(set(accepted))
    assert len(accepted) == 2 * len(PACKAGES)
    log = second.log.read_text()
    assert resumed in log.rpartition("Plan:")[2]


def _accepted(server: servers.IndexServer) -> list[str]:
    uploads = [each for each in server.recorder.exchanges if each.filename]
    return [each.filename for each in uploads if each.status == 200]
