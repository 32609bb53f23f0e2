"""Power is cut at any instant: of the writes that were not durable yet, any part may be missing.

`SOAK` multiplies the number of cuts.
"""

from __future__ import annotations

import os
import random
import shutil
from typing import TYPE_CHECKING

import pytest

from crash import strace, workspace
from crash.disk import Disk
from integration.tools import require_tool

if TYPE_CHECKING:
    from pathlib import Path

CUTS = int(1_000 * float(os.environ.get("SOAK", "1")))


@pytest.fixture(autouse=True)
def _strace() -> None:
    require_tool("strace")


def campaign(directory: Path, cuts: int) -> list[str]:
    """Every promise that some cut breaks, with the seed that shows it."""
    home = workspace.create(directory / "home")
    disk = Disk(home)
    disk.replay(strace.run(home, "release"))
    whole = workspace.journal_bytes(home)
    broken = []
    for number in range(cuts):
        rng = random.Random(number)
        cut = directory / f"cut-{number}"
        said = disk.crash(rng.randrange(len(disk.changes) + 1), rng, cut)
        history = workspace.start_again(cut)
        found = workspace.broken_promises(cut, said, history)
        if not whole.startswith(workspace.journal_bytes(cut)):
            found.append("the journal is not a prefix of what was written")
        broken += [f"seed {number}: {promise}" for promise in found]
        shutil.rmtree(cut)
    return broken


def test_power_loss_at_any_instant_breaks_no_promise(tmp_path: Path) -> None:
    """R14, R22, R23, R25, R32"""
    assert campaign(tmp_path, CUTS) == []


def test_power_loss_leaves_the_long_journal_or_the_short_one(tmp_path: Path) -> None:
    """R32, R40"""
    home = workspace.with_long_journal(tmp_path / "home")
    disk = Disk(home)
    long = workspace.journal_bytes(home)
    disk.replay(strace.run(home, "shorten"))
    short = workspace.journal_bytes(home)
    seen = set()
    for number in range(CUTS // 5):
        rng = random.Random(number)
        cut = tmp_path / f"cut-{number}"
        disk.crash(rng.randrange(len(disk.changes) + 1), rng, cut)
        workspace.start_again(cut)
        seen.add(workspace.journal_bytes(cut))
        shutil.rmtree(cut)
    assert seen == {long, short}


def test_a_disk_that_keeps_everything_holds_what_the_process_wrote(tmp_path: Path) -> None:
    """The model itself: with nothing lost it rebuilds the very tree."""
    home = workspace.create(tmp_path / "home")
    disk = Disk(home)
    disk.replay(strace.run(home, "release"))
    keeps = random.Random()
    keeps.random = lambda: 0.0  # type: ignore[method-assign]
    keeps.choice = lambda options: options[0]  # type: ignore[method-assign,assignment]
    disk.crash(len(disk.changes), keeps, tmp_path / "copy")
    assert workspace.tree(tmp_path / "copy") == workspace.tree(home) == workspace.MANIFESTS
    assert workspace.journal_bytes(tmp_path / "copy") == workspace.journal_bytes(home)
