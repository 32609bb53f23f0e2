from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

import pytest

from releasekit.host import durable
from releasekit.host.durable import Attributes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("before", [None, b"old"])
def test_replace_puts_the_bytes_there_and_nothing_else(
    tmp_path: Path, before: bytes | None
) -> None:
    path = tmp_path / "file"
    if before is not None:
        path.write_bytes(before)
    durable.replace(path, b"new\r\n\0")
    assert path.read_bytes() == b"new\r\n\0"
    assert list(tmp_path.iterdir()) == [path]


def test_replace_leaves_new_files_to_the_umask(tmp_path: Path) -> None:
    """A web server has to read what the directory registry writes."""
    umask = os.umask(0o022)
    try:
        durable.replace(tmp_path / "file", b"")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644


def test_replace_gives_the_file_its_mode_owner_and_times(tmp_path: Path) -> None:
    path = tmp_path / "file"
    durable.replace(
        path,
        b"",
        attributes=Attributes(mode=0o400, uid=os.getuid(), gid=os.getgid()),
        times_ns=(10**18 + 1, 10**18 + 3),
    )
    status = path.stat()
    assert Attributes.from_status(status) == Attributes(
        mode=0o400, uid=os.getuid(), gid=os.getgid()
    )
    assert (status.st_atime_ns, status.st_mtime_ns) == (10**18 + 1, 10**18 + 3)


def test_replace_keeps_the_mode_where_it_may_not_give_the_file_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    durable.replace(tmp_path / "file", b"", attributes=Attributes(mode=0o604, uid=1, gid=1))
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o604


def test_replace_sets_times_by_path_where_descriptors_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "supports_fd", set())
    durable.replace(tmp_path / "file", b"", times_ns=(5, 7 * 10**9))
    assert (tmp_path / "file").stat().st_mtime == 7


def test_replace_gets_past_a_read_only_leftover_of_a_kill(tmp_path: Path) -> None:
    leftover = tmp_path / ".file.new"
    leftover.write_bytes(b"half")
    leftover.chmod(0o400)
    durable.replace(tmp_path / "file", b"new", temporary=leftover)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_replace_never_writes_through_a_symbolic_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    (tmp_path / "temporary").symlink_to(target)
    with pytest.raises(OSError, match=r"is a symbolic link.*temporary"):
        durable.replace(tmp_path / "file", b"new", temporary=tmp_path / "temporary")
    with pytest.raises(OSError, match=r"is a symbolic link.*temporary"):
        durable.replace(tmp_path / "temporary", b"new")
    assert target.read_bytes() == b"precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["target", "temporary"]


def test_names_of_what_is_not_there_are_none(tmp_path: Path) -> None:
    (tmp_path / "b").touch()
    (tmp_path / "a").mkdir()
    assert durable.names(tmp_path) == ["a", "b"]
    assert durable.names(tmp_path / "missing") == []
    assert durable.names(tmp_path / "b") == []


def test_rename_keeps_to_one_directory(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    durable.rename(tmp_path / "a", tmp_path / "b")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("b", b"a")]


@pytest.mark.parametrize("failing", ["write", "fsync", "rename"])
def test_replace_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace" if failing == "rename" else failing, full)
    with pytest.raises(OSError, match="No space"):
        durable.replace(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_write_all_goes_on_after_a_short_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    durable.replace(tmp_path / "file", b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_make_directory_makes_parents_and_is_idempotent(tmp_path: Path) -> None:
    durable.make_directory(tmp_path / "a" / "b")
    durable.make_directory(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_remove_is_fine_with_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    durable.remove(tmp_path / "file")
    durable.remove(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_windows_has_other_calls_for_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    durable.replace(tmp_path / "file", b"new", attributes=Attributes(mode=0o600, uid=0, gid=0))
    durable.fsync(tmp_path / "file")
    durable.make_directory(tmp_path / "a" / "b")
    durable.remove(tmp_path / "file")
    assert durable.names(tmp_path) == ["a"]
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for path in (tmp_path / "link", tmp_path / "link" / "file"):
        with pytest.raises(OSError, match=r"is a symbolic link.*/link'"):
            durable.replace(path, b"")
    durable.replace(tmp_path / "file", b"new", attributes=Attributes(mode=0o600, uid=0, gid=0))
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600
