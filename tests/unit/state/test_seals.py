"""Whose word a journal is, and where the key for that is kept."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from full_disks import fill
from releasekit.errors import ConfigError
from releasekit.host.folder import Folder
from releasekit.state.seals import Seal, seal_for

if TYPE_CHECKING:
    from pathlib import Path

RECORD: dict[str, Any] = {
    "v": 2,
    "run": "r",
    "seq": 3,
    "at": 0.5,
    "durable": 100,
    "event": "built",
    "package": "pypi:acme",
    "version": "1.0",
    "fingerprint": "f",
    "prebuilt": ["acme-1.0.whl"],
    "artifacts": [{"path": "dist/a.whl", "size": 3, "digests": {"sha256": "00", "sha1": "11"}}],
}
SEAL = Seal(b"k" * 32)
SEALED = {**RECORD, "seal": SEAL.of(RECORD, commit="c0ffee")}


@pytest.mark.parametrize(
    "changed",
    [
        {"run": "other"},
        {"package": "pypi:other"},
        {"version": "1.1"},
        {"fingerprint": ""},
        {"prebuilt": []},
        {"again": True},
        {"artifacts": []},
        {"artifacts": [{**RECORD["artifacts"][0], "path": "dist/b.whl"}]},
        {"artifacts": [{**RECORD["artifacts"][0], "size": 4}]},
        {"artifacts": [{**RECORD["artifacts"][0], "digests": {"sha256": "00", "sha1": "12"}}]},
        {"seal": ""},
        {"seal": None},
        {"seal": "é"},
        {"seal": SEALED["seal"].upper()},
    ],
)
def test_a_seal_fits_one_record(changed: dict[str, object]) -> None:
    """R52"""
    assert SEAL.fits(SEALED, commit="c0ffee")
    assert not SEAL.fits({**SEALED, **changed}, commit="c0ffee")


def test_a_seal_is_of_one_key_and_one_commit() -> None:
    """R52"""
    assert not Seal(b"l" * 32).fits(SEALED, commit="c0ffee")
    assert not SEAL.fits(SEALED, commit="deadbeef")


def test_a_seal_stays_where_records_move() -> None:
    """A shorter journal has its records in other places."""
    moved = {**SEALED, "seq": 0, "at": 0.0, "durable": 0}
    assert SEAL.fits(dict(reversed(moved.items())), commit="c0ffee")


def test_a_key_is_not_shown() -> None:
    """R34"""
    assert "kkk" not in repr(SEAL)


def test_a_given_key_needs_no_machine() -> None:
    given = "0123456789abcdef" * 2
    assert seal_for(given, {}, make=True) == seal_for(given, {}, make=False)
    with pytest.raises(ConfigError, match="state-key: it has 31 characters, and needs 32") as error:
        seal_for(given[1:], {}, make=True)
    assert given[1:] not in str(error.value) + error.value.hint


@pytest.mark.parametrize("variable", ["XDG_STATE_HOME", "HOME"])
def test_a_machine_has_one_key_for_each_user(tmp_path: Path, variable: str) -> None:
    """R52"""
    environment = {variable: str(tmp_path)}
    assert seal_for("", environment, make=False) is None
    assert list(tmp_path.iterdir()) == []
    made = seal_for("", environment, make=True)
    assert made is not None
    assert len(made.key) == 32
    assert made == seal_for("", environment, make=True) == seal_for("", environment, make=False)
    (path,) = tmp_path.rglob("releasekit/*")
    assert path.name == "state.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_runs_that_start_together_have_the_same_key(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path)}
    with ThreadPoolExecutor(8) as pool:
        seals = [*pool.map(lambda _: seal_for("", environment, make=True), range(32))]
    assert len({seal.key for seal in seals if seal}) == 1
    assert [path.name for path in tmp_path.rglob("releasekit/*")] == ["state.key"]


def test_a_file_system_without_hard_links_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    environment = {"HOME": str(tmp_path)}
    made = seal_for("", environment, make=True)
    assert made == seal_for("", environment, make=False)
    assert [path.name for path in tmp_path.rglob("releasekit/*")] == ["state.key"]


def test_half_a_key_is_made_again(tmp_path: Path) -> None:
    """A disk that was full, say."""
    (tmp_path / "releasekit").mkdir()
    path = tmp_path / "releasekit" / "state.key"
    path.write_bytes(b"half")
    path.chmod(0o600)
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    assert seal_for("", environment, make=False) is None
    made = seal_for("", environment, make=True)
    assert made is not None
    assert path.read_bytes() == made.key


def test_a_full_disk_is_said_with_the_file_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R40"""
    assert fill(monkeypatch, "fsync", ".state.key.") == []
    made = seal_for("", {"XDG_STATE_HOME": str(tmp_path)}, make=True)
    assert made is not None
    place = tmp_path / "releasekit" / "state.key"
    assert made.note.startswith(f"{place}: No space left on device: the built files of this run")


@pytest.mark.parametrize("how", ["no home", "relative", "file", "link", "mode", "owner", "broken"])
def test_without_a_place_for_it_a_key_is_for_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """R52: and the run says so."""
    environment = {"HOME": str(tmp_path)}
    path = tmp_path / ".local" / "state" / "releasekit" / "state.key"
    path.parent.mkdir(parents=True)
    key = b"x" * 32
    match how:
        case "no home":
            environment = {}
        case "relative":
            environment = {"HOME": "home"}
        case "file":
            environment["XDG_STATE_HOME"] = str(tmp_path / "file")
            (tmp_path / "file").touch()
        case "link":
            (tmp_path / "planted").write_bytes(key)
            (tmp_path / "planted").chmod(0o600)
            path.symlink_to(tmp_path / "planted")
        case "mode":
            path.write_bytes(key)
            path.chmod(0o644)
        case "owner":
            path.write_bytes(key)
            path.chmod(0o600)
            monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        case _:
            monkeypatch.setattr(Folder, "link", lambda *_: None)
            monkeypatch.setattr(Folder, "rename", lambda *_: None)
    first, second = (seal_for("", environment, make=True) for _ in range(2))
    assert first is not None
    assert second is not None
    assert "the same `state-key`" in first.note
    assert len({first.key, second.key, key}) == 3
