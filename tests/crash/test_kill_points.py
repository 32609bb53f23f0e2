"""kill -9 before every system call that changes a file: of a release, and of the recovery after it.

`SOAK` multiplies the number of double kills.
"""

from __future__ import annotations

import os
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING

import pytest

from crash import strace, workspace
from effort import SEARCHING
from integration.tools import require_tool

if TYPE_CHECKING:
    from pathlib import Path

DOUBLE_KILLS = int(120 * float(os.environ.get("SOAK", "1" if SEARCHING else "0.05")))
# In a long search, before each call; else before every third.
STEP = 1 if SEARCHING else 3


@pytest.fixture(autouse=True)
def _strace() -> None:
    require_tool("strace")


def changing_calls(directory: Path, command: str) -> list[strace.Call]:
    """The calls of the workload that change something below `directory`, in order."""
    below = os.fsencode(directory)
    found, ours = [], set()
    for call in strace.run(directory, command):
        if call.name in {"openat", "openat2"}:
            ours.discard(call.result)
            if call.texts[0].startswith(below):
                ours.add(call.result)
                if "O_CREAT" in call.arguments or "O_TRUNC" in call.arguments:
                    found.append(call)
        elif call.name != "close" and (
            call.descriptor in ours or any(text.startswith(below) for text in call.texts)
        ):
            found.append(call)
    return found


def fresh(tmp_path: Path, name: str) -> Path:
    """Paths of one length, so that every run makes the same calls."""
    return workspace.create(tmp_path / f"workspace-{name}")


def test_release_killed_before_any_change_is_made_good_by_the_next_start(tmp_path: Path) -> None:
    """R14, R22, R23, R25, R32"""
    whole_run = fresh(tmp_path, "whole")
    calls = changing_calls(whole_run, "release")
    assert len(calls) > 80
    whole = workspace.journal_bytes(whole_run)

    def broken(numbered: tuple[int, strace.Call]) -> list[str]:
        number, call = numbered
        directory = fresh(tmp_path, f"{number:05}")
        said = strace.kill_before(call, directory, "release")
        if said is None:
            return [f"{call} was never reached"]
        history = workspace.start_again(directory)
        found = workspace.broken_promises(directory, said, history)
        if not _same_events(whole, workspace.journal_bytes(directory)):
            found.append("the journal is not a prefix of what was written")
        shutil.rmtree(directory)
        return [f"{call}: {promise}" for promise in found]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        assert list(chain.from_iterable(pool.map(broken, enumerate(calls[::STEP])))) == []


def test_recovery_killed_too_is_made_good_by_the_start_after(tmp_path: Path) -> None:
    """R22: also when recovery itself is killed."""
    release = changing_calls(fresh(tmp_path, "whole"), "release")

    def broken(number: int) -> list[str]:
        rng = random.Random(number)
        directory = fresh(tmp_path, f"{number:05}")
        said = strace.kill_before(rng.choice(release), directory, "release") or []
        twin = tmp_path / f"twinspace-{number:05}"
        shutil.copytree(directory, twin)
        second = rng.choice(changing_calls(twin, "recover"))
        if strace.kill_before(second, directory, "recover") is None:
            return [f"{number}: {second} was never reached"]
        history = workspace.start_again(directory)
        found = workspace.broken_promises(directory, said, history)
        shutil.rmtree(directory)
        shutil.rmtree(twin)
        return [f"{number}: {second}: {promise}" for promise in found]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        assert list(chain.from_iterable(pool.map(broken, range(DOUBLE_KILLS)))) == []


def test_versions_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    whole = fresh(tmp_path, "whole")
    calls = changing_calls(whole, "version")
    old, new = workspace.MANIFESTS, workspace.tree(whole)
    assert new.keys() == {"a.toml", "packages/b.toml", "packages/NEWS"}

    def find_left(numbered: tuple[int, strace.Call]) -> str:
        number, call = numbered
        directory = fresh(tmp_path, f"{number:05}")
        said = strace.kill_before(call, directory, "version")
        workspace.start_again(directory)
        found = workspace.tree(directory)
        shutil.rmtree(directory)
        if found == old:
            return "kept and lost" if said is None or "kept" in said else "old"
        written = {name: facts[:2] for name, facts in found.items()}  # whenever it was
        return "new" if written == {name: facts[:2] for name, facts in new.items()} else f"{call}"

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        assert set(pool.map(find_left, enumerate(calls[::STEP]))) == {"old", "new"}


def test_a_journal_is_shortened_whole_or_not_at_all(tmp_path: Path) -> None:
    """R32, R40"""
    template = workspace.with_long_journal(tmp_path / "template")
    whole = shutil.copytree(template, tmp_path / "workspace-whole")
    calls = changing_calls(whole, "shorten")
    long, short = workspace.journal_bytes(template), workspace.journal_bytes(whole)
    assert len(short) < len(long) / 2
    assert "renameat" in {call.name for call in calls}
    left = set()
    for number, call in enumerate(calls):
        directory = shutil.copytree(template, tmp_path / f"workspace-{number:05}")
        assert strace.kill_before(call, directory, "shorten") is not None
        left.add(workspace.journal_bytes(directory))
        versions = {version for _, version in workspace.start_again(directory).entries}
        assert {"2.0", "4.0"} <= versions
        shutil.rmtree(directory)
    assert left == {long, short}


def test_kill_comes_before_the_call_not_after(tmp_path: Path) -> None:
    directory = fresh(tmp_path, "first")
    [first, *_] = changing_calls(fresh(tmp_path, "whole"), "release")
    assert first.name == "mkdirat"
    assert strace.kill_before(first, directory, "release") == []
    assert not (directory / ".releasekit").exists()


def _same_events(whole: bytes, part: bytes) -> bool:
    """Times differ from run to run; what is said in which order does not."""
    events = [_event(line) for line in part.splitlines()]
    return events == [_event(line) for line in whole.splitlines()][: len(events)]


def _event(line: bytes) -> bytes:
    return line.partition(b'"event":')[2].partition(b',"durable":')[0].partition(b',"crc":')[0]
