"""Nobody reads what a run prints any more, or it cannot be written: the release goes on."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from releasekit import __version__
from workspaces import Program, uv_workspace

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = {"demo-a": (), "demo-b": ("demo-a",)}


@pytest.mark.parametrize("lost", ["a closed pipe", "a full disk", "no descriptor"])
def test_a_release_goes_on_when_its_output_is_lost(tmp_path: Path, lost: str) -> None:
    """R4"""
    workspace = uv_workspace(tmp_path / "a workspace", PACKAGES)
    home = tmp_path / "a home"
    home.mkdir()
    program = Program(home)
    argv = program.argv("publish", workspace, "--registry", f"dir:{tmp_path / 'registry'}")
    command = {"no descriptor": 'exec "$@" >&- 2>&-', "a full disk": 'exec "$@" >/dev/full 2>&1'}
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        ["bash", "-c", command.get(lost, 'exec "$@"'), "bash", *argv],
        env=program.full_environment,
        stdout=write_end,
        stderr=write_end,
        timeout=120,
        check=False,
    )
    os.close(write_end)
    assert done.returncode == 0
    published = sorted(path.name for path in (tmp_path / "registry/pypi/simple").iterdir())
    assert published == ["demo-a", "demo-b", "index.html", "index.json"]
    assert '"published"' in (home / "results.json").read_text()


def test_a_plan_that_nobody_reads_prints_no_traceback(tmp_path: Path) -> None:
    workspace = uv_workspace(tmp_path / "w", PACKAGES)
    program = Program(tmp_path)
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        program.argv("plan", workspace, "--registry", f"dir:{tmp_path / 'registry'}"),
        env=program.full_environment,
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    os.close(write_end)
    assert done.returncode == 0
    said = [line for line in done.stderr.splitlines() if "making its environment" not in line]
    assert said == [f"ReleaseKit {__version__}: plan {workspace}"]
