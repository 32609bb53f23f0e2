"""The real program against a real registry over TCP, ended at random instants and run again."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from effort import SEARCHING, tries
from integration import servers
from integration.tools import require_tool
from processes import PATIENCE_S
from workspaces import Program, Run, git, uv_workspace, wait_for_orphans

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUNS = tries("REAL_RUNS", sample=2, all_of_them=30)
FIRST = int(os.environ.get("FIRST_REAL_RUN", "0"))
CHUNKS = 5 if SEARCHING else 1

PACKAGES = {"demo-a": (), "demo-b": ("demo-a",), "demo-c": ("demo-a",), "demo-d": ("demo-b",)}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@dataclass
class Scene:
    """A workspace, a registry, and the program that leads from one to the other."""

    workspace: Path
    server: servers.IndexServer
    packages: Path
    program: Program
    usual_s: float = 0.0

    @property
    def log(self) -> Path:
        """Of the last run that was to be ended."""
        return self.program.home / "log"

    def argv(self) -> list[str]:
        registry = ["--pypi-registry", self.server.upload_url]
        more = ["--retry-base-delay", "0.05s", "--max-retries", "5"]
        return self.program.argv("publish", self.workspace, *registry, *more)

    def run(self) -> Run:
        return self.program.run(*self.argv()[1:-2])

    def afresh(self) -> None:
        """Nothing published, nothing remembered."""
        for path in self.packages.iterdir():
            path.unlink()
        self.forget()
        self.server.recorder.forget()

    def forget(self) -> None:
        shutil.rmtree(self.workspace / ".releasekit", ignore_errors=True)

    def ended(self, number: signal.Signals, after_s: float) -> int:
        """The exit status of a run that got this signal, as a runner sends it: to one process."""
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                self.argv(),
                env=self.program.full_environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                process.wait(after_s)
            except subprocess.TimeoutExpired:
                process.send_signal(number)
            status = process.wait(PATIENCE_S)
            wait_for_orphans(self.workspace)
            return status

    def python_was_starting(self) -> bool:
        """Whether the last run ended before a line of ours ran, which no handler can prevent."""
        log = self.log.read_text()
        ours = "ReleaseKit" in log or "src/releasekit" in log
        return not ours and not (self.workspace / ".releasekit").exists()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """With the time that a run takes which nobody ends."""
    require_tool("pypi-server")
    tmp_path = tmp_path_factory.mktemp("scene")
    (tmp_path / "home").mkdir()
    workspace = uv_workspace(tmp_path / "a workspace", PACKAGES)
    with servers.pypiserver(tmp_path / "server") as server:
        server.recorder.lag_s = 0.05
        # Its own environments for builds are made ten times as fast by uv as by pip.
        path = f"{require_tool('uv').parent}{os.pathsep}{os.environ['PATH']}"
        program = Program(tmp_path / "home", {**server.environment, "PATH": path})
        scene = Scene(workspace, server, tmp_path / "server" / "packages", program)
        began = time.monotonic()
        assert scene.run().code == 0
        scene.usual_s = time.monotonic() - began
        yield scene


def assert_all_is_well(scene: Scene, run: Run) -> None:
    """Registry, report and working tree, each looked at for itself."""
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes) == set(PACKAGES)
    assert set(run.outcomes.values()) <= {"published", "already-published"}
    there = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in scene.packages.iterdir()
    }
    assert len(there) == 2 * len(PACKAGES), sorted(there)
    for row in run.results["packages"]:
        for artifact in row["artifacts"]:
            assert there[artifact["filename"]] == artifact["sha256"], artifact
    stored = [u.filename for u in scene.server.recorder.uploads if u.status == 200]
    assert len(stored) == len(set(stored)), stored
    assert git(scene.workspace, "status", "--porcelain") == ""


def seeds(chunk: int) -> range:
    return range(FIRST + chunk, FIRST + RUNS, CHUNKS)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_an_ended_run_is_finished_by_running_it_again(scene: Scene, chunk: int) -> None:
    """R16, R18, R22, R27, R28"""
    for seed in seeds(chunk):
        rng = random.Random(seed)
        scene.afresh()
        number = rng.choice(SIGNALS)
        status = scene.ended(number, rng.uniform(0, scene.usual_s))
        if number is not signal.SIGKILL:
            unbegun = number is signal.SIGINT and status == 1 and scene.python_was_starting()
            assert status in {0, 130, -number} or unbegun, (seed, status, scene.log.read_text())
        assert_all_is_well(scene, scene.run())


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_another_machine_finishes_it_from_the_registry_alone(scene: Scene, chunk: int) -> None:
    """R19, R21: the state directory is lost; these builds are reproducible."""
    for seed in seeds(chunk):
        scene.afresh()
        after_s = random.Random(seed).uniform(0.3, 1.0) * scene.usual_s
        scene.ended(signal.SIGKILL, after_s)
        git(scene.workspace, "checkout", "--quiet", ".")
        scene.forget()
        assert_all_is_well(scene, scene.run())
