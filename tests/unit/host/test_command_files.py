"""What builds do to the files that the runner obeys, and what is left of it."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from releasekit.errors import ConfigError
from releasekit.host import durable, runner
from releasekit.host.ci import COMMAND_FILES
from releasekit.host.runner import CommandFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    """As on a runner: those of this step and those of the step around it."""
    directory = tmp_path / "_runner_file_commands"
    directory.mkdir()
    for name in COMMAND_FILES:
        (directory / f"{name}_outer").write_text("")
        (directory / f"{name}_inner").write_text("before\n")
    return {name: str(directory / f"{name}_inner") for name in COMMAND_FILES}


def _swap_directory(path: Path) -> None:
    path.parent.rename(tempfile.mkdtemp(dir=path.parent.parent))
    path.parent.mkdir()
    path.write_text("forged")


def _append(path: Path) -> None:
    with path.open("a") as file:
        file.write("forged")


def _link(path: Path) -> None:
    path.rename(path.with_name("x"))
    path.symlink_to(path.with_name("x"))


def _broken_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _unreadable(path: Path) -> None:
    path.write_text("forged")
    path.chmod(0)


WAYS: dict[str, Callable[[Path], object]] = {
    "appended": _append,
    "replaced": lambda path: path.write_text("forged"),
    "of the same size": lambda path: path.write_bytes(b"F" * path.stat().st_size),
    "emptied": lambda path: path.write_text(""),
    "removed": Path.unlink,
    "a link": _link,
    "a broken link": _broken_link,
    "a pipe": _pipe,
    "unreadable": _unreadable,
    "in a new directory": _swap_directory,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("name", COMMAND_FILES)
def test_what_others_write_is_taken_out(
    environment: Mapping[str, str], name: str, way: Callable[[Path], object]
) -> None:
    """R50: before our own outputs, and after them."""
    path = Path(environment[name])
    files = CommandFiles(environment)
    way(path)
    told = files.restore()
    assert f"{path}: written during the release, not by ReleaseKit; put back" in told
    files.append(str(path), "ours=1\n")
    way(path)
    assert files.restore()
    assert path.read_text() == "before\nours=1\n"
    assert not path.is_symlink()
    assert files.restore() == []


def test_one_that_only_root_may_read_by_then_is_put_back(
    environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = CommandFiles(environment)

    def refuse(path: Path, *, max_bytes: int) -> bytes:
        raise PermissionError(13, "Permission denied", str(path), max_bytes)

    monkeypatch.setattr(durable, "read_file", refuse)
    assert all(told.endswith("; put back") for told in files.restore())
    assert Path(environment["GITHUB_ENV"]).read_text() == "before\n"


def test_those_of_the_step_around_this_one_are_watched_too(
    environment: Mapping[str, str],
) -> None:
    files = CommandFiles(environment)
    outer = Path(environment["GITHUB_ENV"]).with_name("GITHUB_ENV_outer")
    outer.write_text("LD_PRELOAD=/evil.so\n")
    assert files.restore() == [f"{outer}: written during the release, not by ReleaseKit; put back"]
    assert outer.read_text() == ""


def test_what_we_write_stays(environment: Mapping[str, str]) -> None:
    files = CommandFiles(environment)
    for path in environment.values():
        files.append(path, "a=ä\n")
        files.append(path, "b\udcff\n")
        assert Path(path).read_bytes() == b"before\na=\xc3\xa4\nb?\n"
    assert files.restore() == []


def test_a_file_that_was_not_there_is_removed_or_ours(tmp_path: Path) -> None:
    path = tmp_path / "output"
    files = CommandFiles({"GITHUB_OUTPUT": str(path)})
    assert files.restore() == []
    path.write_text("forged")
    assert len(files.restore()) == 1
    assert not path.exists()
    files.append(str(path), "ours\n")
    assert path.read_text() == "ours\n"
    assert files.restore() == []


def test_links_above_are_followed_once(tmp_path: Path) -> None:
    """A runner's directory may be on another disk."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    path = tmp_path / "link" / "output"
    path.write_text("")
    files = CommandFiles({"GITHUB_OUTPUT": str(path)})
    files.append(str(path), "ours\n")
    assert path.read_text() == "ours\n"
    path.write_text("ours\nforged")
    assert len(files.restore()) == 1
    assert path.read_text() == "ours\n"


def test_what_is_not_a_regular_file_is_written_to_as_it_is(tmp_path: Path) -> None:
    path, target = tmp_path / "link", tmp_path / "target"
    target.write_text("")
    path.symlink_to(target)
    files = CommandFiles({"GITHUB_OUTPUT": str(path)})
    files.append(str(path), "ours\n")
    _append(target)
    assert files.restore() == []
    assert target.read_text() == "ours\nforged"


def test_what_cannot_be_put_back_is_told(environment: Mapping[str, str]) -> None:
    path = Path(environment["GITHUB_ENV"])
    files = CommandFiles(environment)
    path.unlink()
    path.mkdir()
    (told,) = files.restore()
    assert told.startswith(f"{path}: written during the release, not by ReleaseKit, and cannot be")
    assert files.restore() == [told]


def test_a_directory_that_became_a_link_is_not_followed(environment: Mapping[str, str]) -> None:
    """R52"""
    path = Path(environment["GITHUB_ENV"])
    files = CommandFiles(environment)
    moved = path.parent.with_name("elsewhere")
    path.parent.rename(moved)
    path.parent.symlink_to(moved)
    (moved / path.name).write_text("forged")
    told = files.restore()
    assert any("symbolic link" in line for line in told)
    assert (moved / path.name).read_text() == "forged"


def test_what_the_process_prints_to_is_not_watched(
    environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`releasekit publish >>"$GITHUB_STEP_SUMMARY"`; and a closed descriptor is none."""
    path = Path(environment["GITHUB_STEP_SUMMARY"])
    real = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        if descriptor == 2:
            raise OSError(9, "Bad file descriptor")
        return path.stat() if descriptor == 1 else real(descriptor)

    monkeypatch.setattr(os, "fstat", fstat)
    files = CommandFiles(environment)
    _append(path)
    assert files.restore() == []


def test_a_full_disk_leaves_no_half_an_output(
    environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is anybody blamed for it."""
    files = CommandFiles(environment)

    def full(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable, "write_all", full)
    with pytest.raises(OSError, match="No space left"):
        files.append(environment["GITHUB_OUTPUT"], "ours=1\n")
    assert files.restore() == []


def test_a_file_beyond_all_measure_is_an_error(
    environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R40"""
    monkeypatch.setattr(runner, "MAX_FILE_BYTES", 6)
    with pytest.raises(ConfigError, match="holds more than 6 bytes"):
        CommandFiles(environment)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"file/output: cannot be read: Not a directory"):
        CommandFiles({"GITHUB_OUTPUT": str(tmp_path / "file" / "output")})


def test_a_pipe_is_written_to_as_far_as_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R40: one that nobody reads, or nobody reads on, keeps no run waiting."""
    monkeypatch.setattr(runner, "_PATIENCE_S", 0.01)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    files = CommandFiles({"GITHUB_OUTPUT": str(path)})
    with pytest.raises(OSError, match="No such device"):
        files.append(str(path), "ours\n")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.append(str(path), "ours\n")
        assert os.read(reader, 99) == b"ours\n"
        with pytest.raises(BlockingIOError):
            files.append(str(path), "x" * 2_000_000)
    finally:
        os.close(reader)


def test_a_pipe_that_is_read_slowly_is_given_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    kept = os.open(path, os.O_WRONLY)  # so that the reader waits for more
    os.set_blocking(reader, True)
    with ThreadPoolExecutor() as pool, open(reader, "rb") as file:  # noqa: PTH123
        taken = pool.submit(file.read, 2_000_000)
        CommandFiles({}).append(str(path), "x" * 2_000_000)
        assert len(taken.result()) == 2_000_000
    os.close(kept)
