"""R44: one order of all locks, refused at run time, and the list that the proof is about."""

from __future__ import annotations

import asyncio
import itertools
import re
import threading
from contextvars import Context
from pathlib import Path

import pytest

import distributions
from releasekit.ecosystems.directory import DirectoryRegistry
from releasekit.ecosystems.pypi.directory_layout import SimpleDirectory
from releasekit.state import lock_order
from releasekit.state.journal import Journal, LogFile
from releasekit.state.lock_order import Kind
from releasekit.state.locks import acquire
from releasekit.state.pins import EphemeralPin

PROOF = Path(__file__).parents[3] / "proofs" / "LockOrder.v"


@pytest.mark.parametrize(("first", "second"), [*itertools.product(Kind, Kind)])
def test_every_pair_is_taken_in_the_order_only(first: Kind, second: Kind) -> None:
    """R44"""
    with lock_order.taking(first, "m"):
        if first < second:
            with lock_order.taking(second, "a"):
                pass
        else:
            with (
                pytest.raises(RuntimeError, match=f"lock {second} a asked for after {first} m"),
                lock_order.taking(second, "a"),
            ):
                pass


@pytest.mark.parametrize("kind", [*Kind])
def test_within_one_kind_names_decide_and_nothing_is_taken_twice(kind: Kind) -> None:
    """R26, R44"""
    with lock_order.taking(kind, "a"), lock_order.taking(kind, "b"):
        for name in ("", "a", "ab", "b"):
            with pytest.raises(RuntimeError, match="asked for after"):
                lock_order.take(kind, name)
        with lock_order.taking(kind, "c"):
            pass


def test_the_proof_is_about_this_list() -> None:
    """R44"""
    (names,) = re.findall(r"Definition order :=\s*\[([^]]*)\]", PROOF.read_text())
    assert [name.strip() for name in names.split(";")] == [kind.name.lower() for kind in Kind]
    (members,) = re.findall(r"Inductive kind :=([^.]*)\.", PROOF.read_text())
    assert [name.strip() for name in members.split("|")] == [kind.name.lower() for kind in Kind]


def test_what_is_released_or_forgotten_is_not_held() -> None:
    hold = lock_order.take(Kind.JOURNAL)
    hold.release()
    hold.release()
    later = lock_order.take(Kind.PINS)
    assert str(later) == "pins "
    del later
    lock_order.take(Kind.ECOSYSTEM, "pypi").release()


def test_children_are_held_to_what_their_parent_has_and_others_are_not() -> None:
    """A thread that is waited for, or a task, acts for whoever started it."""

    async def main() -> None:
        async def child() -> None:
            with pytest.raises(RuntimeError, match="lock directory d asked for after pins p"):
                lock_order.take(Kind.DIRECTORY, "d")
            await asyncio.to_thread(in_thread)

        def in_thread() -> None:
            with pytest.raises(RuntimeError, match="lock directory d asked for after pins p"):
                lock_order.take(Kind.DIRECTORY, "d")

        async def sibling() -> None:
            with lock_order.taking(Kind.DIRECTORY, "d"):
                go_on.set()
                await done.wait()

        go_on, done = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(sibling())
            await go_on.wait()
            with lock_order.taking(Kind.PINS, "p"):
                await asyncio.create_task(child())
            done.set()

    asyncio.run(main())


def test_a_task_that_outlives_the_lock_of_its_parent_is_free() -> None:
    async def main() -> None:
        async def late() -> None:
            await released.wait()
            with lock_order.taking(Kind.DIRECTORY, "d"):
                pass

        released = asyncio.Event()
        with lock_order.taking(Kind.JOURNAL, "j"):
            task = asyncio.create_task(late())
            await asyncio.sleep(0)
        released.set()
        await task

    asyncio.run(main())


def test_a_turn_is_released_also_when_waiting_for_it_is_cancelled() -> None:
    async def main() -> None:
        lock = asyncio.Lock()
        await lock.acquire()

        async def waiting() -> None:
            try:
                async with lock_order.turn(Kind.WHEEL, "w", lock):
                    raise AssertionError
            finally:
                lock_order.take(Kind.ECOSYSTEM, "pypi").release()

        task = asyncio.create_task(waiting())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def registry(tmp_path: Path) -> DirectoryRegistry:
    return DirectoryRegistry(tmp_path / "registry", SimpleDirectory())


def test_a_directory_registry_is_not_locked_inside_the_journal(tmp_path: Path) -> None:
    """R44: the code of a release, in the wrong order."""
    package = distributions.package()
    artifacts = distributions.both(tmp_path / "dist", package)
    log = LogFile(tmp_path / "journal.jsonl", max_bytes=1000)

    def line(_: int) -> bytes:
        asyncio.run(registry(tmp_path).upload(package, artifacts))
        return b"line\n"

    with pytest.raises(
        RuntimeError, match=rf"lock directory {tmp_path}/registry asked for after journal "
    ):
        log.append(line)
    assert not (tmp_path / "registry").exists()


def test_a_directory_registry_is_not_locked_while_manifests_are_pinned(tmp_path: Path) -> None:
    """R44"""
    manifest = tmp_path / "pyproject.toml"
    manifest.write_bytes(b"a")
    pin = EphemeralPin(tmp_path / ".releasekit", {manifest: b"b"}, ecosystem="pypi", root=tmp_path)
    with pin, pytest.raises(RuntimeError, match=r"lock directory .* asked for after pins "):
        asyncio.run(registry(tmp_path).upload(distributions.package(), []))
    assert manifest.read_bytes() == b"a"


@pytest.mark.parametrize("inside", ["heal", "rewrite"])
def test_no_manifest_is_pinned_inside_the_journal(tmp_path: Path, inside: str) -> None:
    """R44"""
    manifest = tmp_path / "pyproject.toml"
    manifest.write_bytes(b"a")
    log = LogFile(tmp_path / "journal.jsonl", max_bytes=1000)
    log.append(lambda _: b"line\n")

    def pinned() -> bytes:
        with EphemeralPin(tmp_path, {manifest: b"b"}, ecosystem="pypi", root=tmp_path):
            return b""

    with pytest.raises(RuntimeError, match=r"lock pins .* asked for after journal "):
        log.heal(lambda _: len(pinned())) if inside == "heal" else log.rewrite(lambda _: pinned())
    assert manifest.read_bytes() == b"a"


def test_no_second_run_starts_inside_what_a_run_holds(tmp_path: Path) -> None:
    """R26, R44: not even of an ecosystem that comes later."""
    with (
        acquire(tmp_path, ["npm"]),
        pytest.raises(RuntimeError, match="lock ecosystem maven asked for after ecosystem npm"),
    ):
        acquire(tmp_path, ["maven"])
    manifest = tmp_path / "package.json"
    manifest.write_bytes(b"a")
    with (
        EphemeralPin(tmp_path, {manifest: b"b"}, ecosystem="npm", root=tmp_path),
        pytest.raises(RuntimeError, match="lock ecosystem pypi asked for after pins "),
    ):
        acquire(tmp_path, ["pypi"])
    with acquire(tmp_path, ["maven", "npm", "pypi"]):
        pass


def test_the_descriptor_of_the_journal_is_the_last_of_all(tmp_path: Path) -> None:
    """R44: closing waits for an fsync in another thread, which asks for nothing more."""
    with acquire(tmp_path, ["npm"]):
        journal = Journal.open(tmp_path, run_id="run")
        asyncio.run(journal.run_ended("success"))
        with (
            lock_order.taking(Kind.JOURNAL_DESCRIPTOR, "zzz"),
            pytest.raises(RuntimeError, match=r"lock journal descriptor .* asked for after"),
        ):
            journal.close()
        closing = threading.Thread(target=journal.close)
        closing.start()
        closing.join()
        Context().run(journal.close)
