"""A job that is cancelled by a runner's first signals, on the real entry point. How many seconds a
run takes from then on is checked on a virtual clock, in tests/simulation/publish_line.py.

https://github.com/actions/runner/blob/main/src/Runner.Sdk/ProcessInvoker.cs
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from integration import servers
from integration.recorder import Fault
from integration.tools import require_tool
from processes import PATIENCE_S, wait_until
from workspaces import ENTRYPOINT, Program, git, uv_workspace, wait_for_orphans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# Two leaves, and what waits for them.
PACKAGES = {"demo-a": (), "demo-b": (), "demo-c": ("demo-a", "demo-b")}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[servers.IndexServer]:
    require_tool("pypi-server")
    with servers.pypiserver(tmp_path / "server") as server:
        yield server


class Job:
    """A step of a composite action on a runner: bash, a script, and the files of the runner."""

    def __init__(self, home: Path, workspace: Path, server: servers.IndexServer) -> None:
        home.mkdir()
        self.output, self.summary = home / "output", home / "summary"
        self.results = workspace / ".releasekit" / "results.json"
        script = home / "script.sh"
        script.write_text(f"exec {shlex.quote(str(ENTRYPOINT))}\n")
        environment = {
            **Program(home, server.environment).full_environment,
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "RELEASEKIT_MODE": "publish",
            "RELEASEKIT_WORKING_DIRECTORY": str(workspace),
            "RELEASEKIT_PYPI_REGISTRY": server.upload_url,
        }
        self.log = home / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def until(self, happened: Callable[[], bool]) -> None:
        wait_until(happened, self.process, self.log.read_text)


def mentioning(text: str) -> list[str]:
    """The command lines of living processes whose environment holds `text`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if text.encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


@pytest.mark.parametrize("slow", [False, True], ids=["uploads that end", "an upload that hangs"])
def test_a_cancelled_job_accounts_for_everything(
    server: servers.IndexServer, tmp_path: Path, slow: bool
) -> None:
    """R27, R28, R29"""
    workspace = uv_workspace(tmp_path / "a workspace", PACKAGES)
    server.recorder.faults.append(Fault(kind="late"))
    job = Job(tmp_path / "a home", workspace, server)
    job.until(lambda: server.recorder.holding > 0)
    job.process.send_signal(signal.SIGINT)
    if not slow:
        server.recorder.let_go()

    status = job.process.wait(PATIENCE_S)
    log = job.log.read_text()
    assert status == 130, log
    assert (server.recorder.uploading > 0) is slow
    assert mentioning(str(tmp_path / "a home")) == []
    results = json.loads(job.results.read_text())
    assert {row["name"] for row in results["packages"]} == set(PACKAGES)
    outcomes = {row["outcome"] for row in results["packages"]}
    assert outcomes <= {"published", "unknown", "cancelled", "blocked"}
    assert ("unknown" in outcomes) is slow, results
    assert "result<<" in job.output.read_text()
    assert "cancelled" in job.output.read_text()
    assert all(name in job.summary.read_text() for name in PACKAGES)
    assert git(workspace, "status", "--porcelain") == ""

    if slow:  # and has gone through when the next run looks
        server.recorder.let_go()
        wait_until(lambda: server.recorder.uploading == 0)
        program = Program(tmp_path / "a home", server.environment)
        again = program.run("publish", workspace, "--pypi-registry", server.upload_url)
        assert again.code == 0, again.out + again.err


def test_a_second_signal_ends_the_run_at_once(server: servers.IndexServer, tmp_path: Path) -> None:
    """R28"""
    workspace = uv_workspace(tmp_path / "a workspace", PACKAGES)
    server.recorder.faults.append(Fault(kind="late"))
    job = Job(tmp_path / "a home", workspace, server)
    job.until(lambda: server.recorder.holding > 0)
    job.process.send_signal(signal.SIGINT)
    job.process.send_signal(signal.SIGTERM)
    assert job.process.wait(PATIENCE_S) == 130
    assert {row["outcome"] for row in json.loads(job.results.read_text())["packages"]} >= {
        "unknown"
    }


def test_check_sees_a_run_that_was_killed_in_a_pinned_build(
    server: servers.IndexServer, tmp_path: Path
) -> None:
    """R22, R30"""
    workspace = uv_workspace(tmp_path / "a workspace", {"demo-a": (), "demo-b": ("demo-a",)})
    manifest = workspace / "packages" / "demo-b" / "pyproject.toml"
    hook = manifest.with_name("hatch_build.py")
    hook.write_text(
        "import time\n"
        "from pathlib import Path\n"
        "from hatchling.builders.hooks.plugin.interface import BuildHookInterface\n"
        "class Slow(BuildHookInterface):\n"
        "    def initialize(self, version, build_data):\n"
        f"        flag = Path({str(tmp_path / 'flag')!r})\n"
        "        if not flag.exists():\n"
        "            flag.touch()\n"
        "            time.sleep(600)\n"
    )
    manifest.write_text(manifest.read_text() + "[tool.hatch.build.hooks.custom]\n")
    git(workspace, "add", "--all")
    git(workspace, "commit", "--quiet", "--message", "Build slowly")
    original = manifest.read_bytes()
    job = Job(tmp_path / "a home", workspace, server)
    job.until((tmp_path / "flag").exists)
    assert b"demo-a==1.0.0" in manifest.read_bytes()
    job.process.kill()
    job.process.wait()

    program = Program(tmp_path / "a home", server.environment)
    pinned = manifest.read_bytes()
    seen = program.run("check", workspace, "--pypi-registry", server.upload_url)
    assert seen.code == 1
    assert "pyproject.toml" in seen.out
    assert manifest.read_bytes() == pinned
    wait_for_orphans(workspace)
    done = program.run("publish", workspace, "--pypi-registry", server.upload_url)
    assert done.code == 0, done.out + done.err
    assert manifest.read_bytes() == original
    assert git(workspace, "status", "--porcelain") == ""
    well = program.run("check", workspace, "--pypi-registry", server.upload_url)
    assert well.code == 0, well.out
