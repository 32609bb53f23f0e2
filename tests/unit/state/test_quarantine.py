"""Built files that nothing vouches for are out of the way before a run looks at anything."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from fakes import SEAL, artifact, package
from releasekit.errors import StateError
from releasekit.plan.decision import intact
from releasekit.state.directory import built_directory, make_state_directory
from releasekit.state.journal import Journal, read_history
from releasekit.state.quarantine import QUARANTINE, quarantine, with_restored
from releasekit.state.seals import Seal

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.model import Package

CORE, APP = package("core"), package("app")
OTHER = Seal(b"of another machine")


def build(state: Path, built: Package, content: bytes, *, seal: Seal | None) -> Path:
    """What a run with this key leaves."""
    path = built_directory(built, state) / f"{built.id.name}-1.0.tar.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)

    async def record() -> None:
        journal = Journal.open(state, run_id=os.urandom(4).hex(), seal=seal)
        journal.run_started(
            plan_digest="", commit="c0ffee", tool="", started_at="", ecosystems=["fake"]
        )
        await journal.built(built, [artifact(path, content)])
        journal.close()

    asyncio.run(record())
    return path


def aside(state: Path, *, seal: Seal = SEAL) -> list[str]:
    return quarantine(state, read_history(state, seal=seal), ["fake"])


def files(state: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(state)): path.read_bytes()
        for below in ("dist", QUARANTINE)
        for path in sorted((state / below).rglob("*"))
        if path.is_file()
    }


@pytest.fixture(name="state")
def _state(tmp_path: Path) -> Path:
    make_state_directory(tmp_path / "state")
    return tmp_path / "state"


def test_what_is_sealed_stays(state: Path) -> None:
    build(state, CORE, b"core", seal=SEAL)
    build(state, APP, b"app", seal=SEAL)
    before = files(state)
    assert aside(state) == []
    assert files(state) == before
    assert len(before) == 2


@pytest.mark.parametrize(
    "name", ["core-1.0.tar.gz.sigstore.json", ".core-1.0.tar.gz.sigstore.json.tmp"]
)
def test_what_was_signed_about_a_file_lies_beside_it(state: Path, name: str) -> None:
    """Also where its writer was killed: a file that was begun to be sent must never be lost."""
    path = build(state, CORE, b"ours", seal=SEAL)
    path.with_name(name).write_text("{")
    assert aside(state) == []
    assert path.with_name(name).exists()


def test_what_another_key_sealed_is_put_aside_and_kept(state: Path) -> None:
    """R52"""
    build(state, CORE, b"core", seal=SEAL)
    build(state, APP, b"app", seal=OTHER)
    assert aside(state) == ["fake:app 1.0"]
    assert files(state) == {
        "dist/fake/core/1.0/core-1.0.tar.gz": b"core",
        "unsealed/fake/app/1.0/app-1.0.tar.gz": b"app",
    }
    assert aside(state) == []


def test_without_a_key_nothing_is_vouched_for(state: Path) -> None:
    """R52: a journal of before there were seals, for one."""
    build(state, CORE, b"core", seal=None)
    assert aside(state) == ["fake:core 1.0"]
    assert quarantine(state, read_history(state), ["fake"]) == []


@pytest.mark.parametrize("how", ["changed", "more", "unrecorded", "beside", "link", "pipe"])
def test_files_that_no_seal_covers_are_put_aside(state: Path, tmp_path: Path, how: str) -> None:
    """R52: builds may take whatever lies there for their own."""
    kept = build(state, APP, b"app", seal=SEAL)
    path = build(state, CORE, b"core", seal=SEAL)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "precious").write_bytes(b"precious")
    match how:
        case "changed":
            path.write_bytes(b"evil")
        case "more":
            (path.parent / "core-1.0-py3-none-any.whl").write_bytes(b"evil")
        case "unrecorded":
            path = state / "dist/fake/evil/1.0/evil-1.0.tar.gz"
            path.parent.mkdir(parents=True)
            path.write_bytes(b"evil")
        case "beside":
            path = state / "dist/fake/evil-1.0.tar.gz"
            path.write_bytes(b"evil")
        case "link":
            path = path.parent.parent / "2.0"
            path.symlink_to(tmp_path / "elsewhere")
        case _:
            path = path.parent.parent / "2.0"
            os.mkfifo(path)
    aside(state)
    there = (
        {kept}
        if how in {"changed", "more"}
        else {kept, state / "dist/fake/core/1.0/core-1.0.tar.gz"}
    )
    assert {path for path in (state / "dist").rglob("*") if not path.is_dir()} == there
    assert (tmp_path / "elsewhere" / "precious").read_bytes() == b"precious"


def test_files_of_other_ecosystems_are_left_alone(state: Path) -> None:
    """Their lock is not held."""
    path = state / "dist/others/name/1.0/file"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"file")
    assert aside(state) == []
    assert path.read_bytes() == b"file"


def test_the_right_key_takes_back_what_was_put_aside(state: Path) -> None:
    """R18: a run without it has built the package again meanwhile."""
    path = build(state, CORE, b"core", seal=OTHER)
    assert aside(state) == ["fake:core 1.0"]
    path.parent.mkdir()
    path.write_bytes(b"built again, and refused")
    assert aside(state, seal=SEAL) == ["fake:core 1.0"]
    assert aside(state, seal=OTHER) == []
    assert files(state) == {"dist/fake/core/1.0/core-1.0.tar.gz": b"core"}


def test_a_plan_finds_what_was_put_aside_and_moves_nothing(state: Path) -> None:
    """R18: as the run that follows it does."""
    build(state, CORE, b"core", seal=SEAL)
    before = read_history(state, seal=SEAL)
    assert with_restored(state, before) is before
    assert aside(state, seal=OTHER) == ["fake:core 1.0"]
    left = files(state)
    (entry,) = with_restored(state, before).entries.values()
    assert intact(entry)
    assert files(state) == left
    assert with_restored(state, read_history(state, seal=OTHER)) == read_history(state, seal=OTHER)
    assert aside(state) == []
    assert with_restored(state, before) == before


def test_a_record_may_name_any_file_of_the_state_directory(state: Path) -> None:
    """R52: the journal itself, for one."""
    journal = state / "journal.jsonl"

    async def record() -> None:
        log = Journal.open(state, run_id="r", seal=SEAL)
        log.run_started(plan_digest="", commit="", tool="", started_at="", ecosystems=["fake"])
        await log.built(CORE, [artifact(journal, b"")])
        log.close()

    asyncio.run(record())
    (state / QUARANTINE).mkdir()
    before, history = journal.read_bytes(), read_history(state, seal=SEAL)
    assert aside(state) == aside(state, seal=OTHER) == []
    assert with_restored(state, history) == history
    assert journal.read_bytes() == before


def test_a_link_in_the_way_is_not_followed(state: Path, tmp_path: Path) -> None:
    """R52"""
    build(state, CORE, b"core", seal=OTHER)
    (tmp_path / "elsewhere").mkdir()
    (state / QUARANTINE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateError, match="unsealed: is a symbolic link"):
        aside(state)
    assert list((tmp_path / "elsewhere").iterdir()) == []
