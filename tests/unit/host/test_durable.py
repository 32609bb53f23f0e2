from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

import pytest

from full_disks import files_of_at_most
from releasekit.host import durable, folder
from releasekit.host.durable import Attributes

if TYPE_CHECKING:
    from collections.abc import Callable
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


def test_an_unnamed_file_has_never_had_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R53: who watches the directory could open it by one, and change what is signed and sent."""

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("it has a name")

    monkeypatch.setattr(os, "unlink", refused)
    with durable.unnamed(tmp_path) as file:
        assert list(tmp_path.iterdir()) == []
        file.write(b"abc")
        file.seek(0)
        assert file.read() == b"abc"


def test_an_unnamed_file_loses_its_name_where_it_has_to_have_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "_TMPFILE", 0)
    with durable.unnamed(tmp_path) as file:
        assert list(tmp_path.iterdir()) == []
        file.write(b"abc")


def test_remove_is_fine_with_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    durable.remove(tmp_path / "file")
    durable.remove(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def append(path: Path) -> None:
    with durable.opened(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as descriptor:
        durable.write_all(descriptor, b"x")


def sync(path: Path) -> None:
    path.write_bytes(b"x")
    durable.fsync(path)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS])
@pytest.mark.parametrize(
    ("call", "act"),
    [
        ("write", lambda path: durable.replace(path, b"x")),
        ("fsync", lambda path: durable.replace(path, b"x")),
        ("write", append),
        ("fsync", sync),
    ],
)
def test_what_the_disk_refuses_has_the_name_of_the_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    call: str,
    act: Callable[[Path], None],
) -> None:
    """R40: write(2) and fsync(2) are told a descriptor, and no name."""

    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        act(tmp_path / "file")
    assert (caught.value.errno, caught.value.filename) == (number, str(tmp_path / "file"))


@pytest.mark.parametrize("reads_first", [True, False])
def test_what_is_written_has_its_own_name_beside_what_is_read(
    tmp_path: Path, reads_first: bool
) -> None:
    (tmp_path / "old").write_bytes(b"x" * 9_000)
    order = [durable.reading(tmp_path / "old"), durable.writing(tmp_path / "new")]

    def copy() -> None:
        with contextlib.ExitStack() as both:
            first, second = map(both.enter_context, order if reads_first else reversed(order))
            old, new = (first, second) if reads_first else (second, first)
            new.write(old.read())

    with files_of_at_most(8_192), pytest.raises(OSError, match="File too large") as caught:
        copy()
    assert caught.value.filename == str(tmp_path / "new")


def test_a_walk_ends_where_no_sources_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "MAX_DEPTH", 2)
    (tmp_path / "a/b/c/d").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a")
    walked = [(path.name, inner, others) for path, inner, others in durable.walk(tmp_path / "a")]
    assert walked == [("a", ["b"], []), ("b", ["c"], []), ("c", ["d"], [])]
    assert next(durable.walk(tmp_path)) == (tmp_path, ["a"], ["link"])


def test_no_more_of_a_file_is_hashed_than_it_may_have(tmp_path: Path) -> None:
    """R53: a sparse one seems to have terabytes."""
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert durable.sha256_of(path, max_bytes=3).startswith("ba7816bf")
    os.truncate(path, 1 << 40)
    with pytest.raises(OSError, match="is larger than 3 bytes"):
        durable.sha256_of(path, max_bytes=3)
