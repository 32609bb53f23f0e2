"""Registries that mean harm, over real connections: what they cost in memory, in time, and in turns
of the loop.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from effort import SEARCHING
from integration import hostile_server
from processes import PATIENCE_S
from watchdog import LONGEST_STALL_S
from workspaces import uv_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
MOST_MB = 300


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with hostile_server.serving() as url:
        yield url


@pytest.mark.parametrize("ecosystem", hostile_server.CASES)
def test_no_answer_exhausts_memory_or_keeps_the_loop(server: str, ecosystem: str) -> None:
    """R40, R51: each of them is an error in a sentence, or means nothing."""
    cases = hostile_server.CASES[ecosystem]
    done = subprocess.run(
        [sys.executable, HERE / "hostile_reader.py", ecosystem, server, *cases],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["case"] for each in found] == list(cases)
    assert max(each["mb"] for each in found) < MOST_MB, done.stdout
    assert max(each["stall_s"] for each in found) < LONGEST_STALL_S, done.stdout
    assert max(len(each["said"]) for each in found) < 1000, done.stdout
    assert all(each["said"].isprintable() for each in found), done.stdout


_DEADLINE = ("--deadline=2s", 130, "the deadline of 2 s passed while the plan was made; nothing")
_TIMEOUT = ("--task-timeout=2s", 1, "no answer within 2 s")
# Both commands make their plan alike, but `plan` goes on after a time-out.
_CROSSED = [("publish", *_DEADLINE)] if SEARCHING else []


@pytest.mark.parametrize(
    ("command", "option", "code", "words"),
    [("plan", *_DEADLINE), ("publish", *_TIMEOUT), *_CROSSED],
)
def test_an_index_that_drips_ends_with_the_deadline(
    server: str, tmp_path: Path, command: str, option: str, code: int, words: str
) -> None:
    """R51: it took 307 s with a deadline of 12 s, as no pause was longer than a time-out."""
    workspace = uv_workspace(tmp_path / "w", {"demo-a": ()})
    kept = {name: value for name, value in os.environ.items() if "RELEASEKIT" not in name}
    environment = {
        **{name: value for name, value in kept.items() if not name.startswith(("GITHUB_", "CI"))},
        "RELEASEKIT_PYPI_TOKEN": "pypi-hunter2",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [
            *(sys.executable, "-m", "releasekit", command, workspace, "--max-retries=0"),
            *(f"--pypi-registry={server}/slow/legacy/", f"--pypi-index={server}/slow/", option),
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (workspace / ".releasekit" / "results.json").exists()
