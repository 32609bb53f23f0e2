"""Releases that wait for a person, in bad weather; `make search` runs more of them. A seed that
fails is replayed by `python tests/simulation/staged_line.py SEED`.
"""

from __future__ import annotations

import gc
import logging
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from effort import tries
from simulation import staged_line

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = tries("RELEASES", sample=300, all_of_them=10_000) // 5
FIRST = int(os.environ.get("FIRST_RELEASE", "0"))
CHUNKS = 5


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


def simulated(root: Path, seed: int) -> staged_line.StagingWorld:
    place = root / str(seed)
    place.mkdir(parents=True)
    return staged_line.simulate(seed, place)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_staged_release_breaks_a_promise(chunk: int, root: Path) -> None:
    """R1, R2, R4, R5, R6, R14, R16, R17, R18, R19, R21, R28: each package is staged once, nothing
    is published before what it needs, and in the end all of it is.
    """
    for seed in range(FIRST + chunk, FIRST + RUNS, CHUNKS):
        simulated(root, seed)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_they_see_what_may_happen_to_what_waits(root: Path) -> None:
    worlds = [simulated(root, seed) for seed in range(20)]
    assert any(world.rejected for world in worlds)
    assert sum(map(bool, (world.staged for world in worlds))) > len(worlds) // 2
    assert {(world.mode, world.blind) for world in worlds} == {
        (mode, blind) for mode in ("auto", "always") for blind in (True, False)
    }
