"""The file under the journal, between processes that know nothing of each other."""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
from typing import TYPE_CHECKING

import pytest

from releasekit.errors import JournalUnwritable
from releasekit.host import durable, flock
from releasekit.state.journal import LogFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def opened(path: Path) -> LogFile:
    return LogFile(path, max_bytes=1000)


def locked(path: Path) -> bool:
    with path.open("rb") as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_a_line_goes_into_the_shorter_file_that_another_process_put_in_place(path: Path) -> None:
    """R31"""
    ours, theirs = opened(path), opened(path)
    ours.append(lambda _: b"one\n")
    theirs.rewrite(lambda data: data[:2] + b"\n")
    ours.append(lambda durable_size: b"two, after %d\n" % durable_size)
    theirs.append(lambda _: b"three\n")
    assert path.read_bytes() == b"on\ntwo, after 0\nthree\n"


def test_the_second_who_makes_it_shorter_keeps_what_came_since_the_first(path: Path) -> None:
    """R31"""
    ours, theirs = opened(path), opened(path)
    theirs.append(lambda _: b"long line\n")
    theirs.rewrite(lambda _: b"short\n")
    theirs.append(lambda _: b"new\n")
    ours.rewrite(lambda data: data.replace(b"short", b"s"))
    assert path.read_bytes() == b"s\nnew\n"


def test_who_locks_it_again_and_again_uses_up_one_allowance(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R51: each write had ten seconds of its own, in which nothing else went on. Of the pauses of
    all of them, each one that succeeds gives one back.
    """
    monkeypatch.setattr(flock, "PAUSES", 5)
    ours = opened(path)
    waited: list[float] = []
    with path.open("rb") as theirs:

        def give_back_every_third_time(pause_s: float) -> None:
            waited.append(pause_s)
            if len(waited) % 3 == 0:
                fcntl.flock(theirs, fcntl.LOCK_UN)

        monkeypatch.setattr("releasekit.host.flock.time.sleep", give_back_every_third_time)
        for _ in range(2):
            fcntl.flock(theirs, fcntl.LOCK_SH)
            ours.append(lambda _: b"line\n")
        fcntl.flock(theirs, fcntl.LOCK_SH)
        with pytest.raises(JournalUnwritable, match="another process keeps it locked"):
            ours.append(lambda _: b"line\n")
    assert len(waited) == 5 + 2
    assert path.read_bytes() == b"line\nline\n"


def test_an_fsync_of_the_longer_file_says_nothing_of_the_shorter(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R32"""
    ours, theirs = opened(path), opened(path)
    ours.append(lambda _: b"a rather long line\n")
    fsync = os.fsync
    begun, go_on = threading.Event(), threading.Event()

    def slow(descriptor: int) -> None:
        monkeypatch.setattr(os, "fsync", fsync)
        begun.set()
        go_on.wait()
        fsync(descriptor)

    async def replaced_during_the_fsync() -> None:
        waiting = asyncio.create_task(ours.sync())
        await asyncio.to_thread(begun.wait)
        theirs.rewrite(lambda _: b"short\n")
        go_on.set()
        ours.append(lambda _: b"next\n")
        await waiting

    monkeypatch.setattr(os, "fsync", slow)
    asyncio.run(replaced_during_the_fsync())
    ours.append(lambda durable_size: b"last, after %d\n" % durable_size)
    assert path.read_bytes().endswith(b"last, after 0\n")


def test_what_would_not_get_shorter_stays_as_it_is(path: Path) -> None:
    log = opened(path)
    log.append(lambda _: b"line\n")
    before = path.stat().st_ino
    log.rewrite(lambda data: data)
    assert path.stat().st_ino == before


def test_a_file_that_was_taken_away_is_written_on(path: Path) -> None:
    log = opened(path)
    path.unlink()
    log.append(lambda _: b"line\n")
    assert not path.exists()


@pytest.mark.parametrize(
    ("change", "call"),
    [
        (lambda log: log.append(lambda _: b"line\n"), "write"),
        (lambda log: log.heal(lambda _: 0), "ftruncate"),
        (lambda log: log.rewrite(lambda _: b""), "replace"),
    ],
    ids=["append", "heal", "rewrite"],
)
def test_nobody_else_has_the_lock_when_something_changes(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[LogFile], None],
    call: str,
) -> None:
    """R26, R31"""
    log = opened(path)
    log.append(lambda _: b"before\n")
    seen: list[bool] = []
    module = durable if call == "replace" else os
    original = getattr(module, call)

    def watched(*arguments: object, **more: object) -> object:
        seen.append(locked(path))
        return original(*arguments, **more)

    monkeypatch.setattr(module, call, watched)
    change(log)
    assert seen == [True]
    assert not locked(path)
