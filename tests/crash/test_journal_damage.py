"""Every truncation and every bit flip of a journal: an exact prefix, or an error; never a guess."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from releasekit.errors import JournalError
from releasekit.fields import replace
from releasekit.model import Artifact, Outcome, Package, PackageId
from releasekit.state.history import History, fold
from releasekit.state.journal import Journal, read_history

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST = Package(
    id=PackageId("pypi", "acme-core"),
    version="1.2.0",
    directory=Path("/workspace/core"),
    manifest=Path("/workspace/core/pyproject.toml"),
)


async def _write(state: Path) -> None:
    for run_id, result in (("first", "partial"), ("second", "success")):
        journal = Journal.open(state, run_id=run_id)
        journal.run_started(
            plan_digest="p", commit="c", tool="1.0.0", started_at="2026", ecosystems=["pypi"]
        )
        wheel = state / "dist" / "acme_core-1.2.0.whl"
        wheel.parent.mkdir(exist_ok=True)
        wheel.write_bytes(b"wheel")
        await journal.built(FIRST, [Artifact(path=wheel, size=5, digests={"sha256": "5" * 64})])
        await journal.intent(FIRST, registry="https://r.test/", digests={wheel.name: "5" * 64})
        journal.outcome(FIRST, Outcome.UNKNOWN, "the answer got lost")
        await journal.run_ended(result)
        journal.close()


@pytest.fixture(name="journal")
def _journal(tmp_path: Path) -> tuple[bytes, Path]:
    asyncio.run(_write(tmp_path))
    return (tmp_path / "journal.jsonl").read_bytes(), tmp_path


def prefixes(data: bytes, state: Path) -> list[History]:
    """The history after each record, the empty one first."""
    ends = [0, *(index + 1 for index, byte in enumerate(data) if byte == ord("\n"))]
    return [fold(data[:end], state_directory=state) for end in ends]


def undamaged(history: History) -> History:
    return replace(history, torn=0)


def test_every_truncation_yields_an_exact_prefix(journal: tuple[bytes, Path]) -> None:
    """R32"""
    data, state = journal
    whole = prefixes(data, state)
    for size in range(len(data)):
        history = fold(data[:size], state_directory=state)
        complete = data[:size].count(b"\n")
        assert undamaged(history) == whole[complete]
        assert history.intact + history.torn == size


def test_every_bit_flip_is_an_error_or_leaves_an_exact_prefix(journal: tuple[bytes, Path]) -> None:
    """R32: and what had been promised before the last fsync is never dropped."""
    data, state = journal
    whole = prefixes(data, state)
    errors = 0
    for position, flipped in _flips(data):
        start = data.rfind(b"\n", 0, position) + 1
        # What the records that are still whole had been promised when they were written.
        promised = max(_promise(line) for line in data.splitlines() if line + b"\n" in flipped)
        try:
            history = fold(flipped, state_directory=state)
        except JournalError:
            errors += 1
            assert promised > start
        else:
            assert promised <= history.intact == start
            assert undamaged(history) in whole
    assert errors > 4 * len(data)


def _promise(line: bytes) -> int:
    return int(json.loads(line)["durable"])


def _flips(data: bytes) -> Iterator[tuple[int, bytes]]:
    for position in range(len(data)):
        for bit in range(8):
            changed = bytes([data[position] ^ 1 << bit])
            yield position, data[:position] + changed + data[position + 1 :]


@pytest.mark.parametrize("garbage", [b"\0" * 4096, b"\xff" * 3, b"{}\n", b"\n", b'{"v":1}\n\0'])
def test_garbage_behind_the_last_record_is_dropped(
    journal: tuple[bytes, Path], garbage: bytes
) -> None:
    """R32: what a file system may put there when the power fails."""
    data, state = journal
    history = fold(data + garbage, state_directory=state)
    assert undamaged(history) == fold(data, state_directory=state)
    assert history.torn == len(garbage)


def test_lines_lost_doubled_or_swapped_are_errors(journal: tuple[bytes, Path]) -> None:
    """R31, R32: every line is sound by itself, the sequence is not."""
    data, state = journal
    lines = data.splitlines(keepends=True)
    for number in range(1, len(lines)):
        if b'"seq":0,' in lines[number]:
            continue  # the next run: the end of a run may be missing, and runs may overlap
        lost = b"".join([*lines[: number - 1], *lines[number:]])
        doubled = b"".join([*lines[:number], lines[number - 1], *lines[number:]])
        swapped = b"".join([*lines[: number - 1], lines[number], lines[number - 1]])
        for damaged in (lost, doubled, swapped):
            with pytest.raises(JournalError):
                fold(damaged, state_directory=state)


def test_opening_drops_the_torn_tail_for_good(journal: tuple[bytes, Path]) -> None:
    data, state = journal
    (state / "journal.jsonl").write_bytes(data + b'{"v":1,"run":"thi')
    assert read_history(state).torn == 17
    assert (state / "journal.jsonl").stat().st_size > len(data)
    Journal.open(state, run_id="third").close()
    assert (state / "journal.jsonl").read_bytes() == data
