"""Releases in bad weather; `make search` runs more of them. A seed that fails is
replayed by `python tests/simulation/publish_line.py SEED`.
"""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from effort import tries
from simulation import publish_line, simulate, staged_line
from simulation.world import Weather

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

RUNS = tries("RELEASES", sample=100, all_of_them=10_000)
FIRST = int(os.environ.get("FIRST_RELEASE", "0"))
CHUNKS = 4

# Seeds that once found something.
FOUND = (35, 325, 861, 3747, 6638)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)  # asyncio reports what a killed process left undone
    yield
    gc.collect()  # here, where its warnings are expected, and not in the middle of another test
    logging.disable(logging.NOTSET)


@pytest.fixture
def root() -> Iterator[Path]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        yield Path(directory)


def simulated(root: Path, seed: int) -> dict[str, int]:
    place = root / str(seed)
    place.mkdir(parents=True)
    return publish_line.simulate(seed, place).faults


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_release_breaks_a_promise(chunk: int, root: Path) -> None:
    """R1, R2, R4, R5, R6, R14, R15, R16, R17, R18, R19, R21, R28, R29"""
    for seed in range(FIRST + chunk, FIRST + RUNS, CHUNKS):
        simulated(root, seed)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_once_stays_mended(seed: int, root: Path) -> None:
    """R16"""
    simulated(root, seed)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_the_releases_see_everything_that_may_happen(root: Path) -> None:
    struck = set().union(*(simulated(root, seed) for seed in range(25)))
    assert struck == set(Weather.__dataclass_fields__)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_a_seed_is_a_release(root: Path) -> None:
    """R13"""
    for seed in range(6):
        assert simulated(root / "one", seed) == simulated(root / "two", seed)


@pytest.mark.parametrize("script", [publish_line, staged_line, simulate])
def test_a_seed_is_replayed_by_a_command(script: ModuleType, tmp_path: Path) -> None:
    """As docs/ say, from anywhere and without any setting."""
    argv = [sys.executable, str(script.__file__), "7"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stdout) == (0, False), done.stderr
    assert done.stdout.strip()
