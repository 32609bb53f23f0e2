"""R40: what a hostile repository has in place of a manifest."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from releasekit.errors import ConfigError
from releasekit.host import files


def test_a_link_that_leads_out_is_followed_no_further(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "in").symlink_to("sub")
    (root / "out").symlink_to("..")
    assert files.inside(root, root / "in", where="here") == root / "sub"
    assert files.inside(root, root, where="here") == root
    for path in (root / "out", root / ".." / "root2", root / "out" / "x"):
        with pytest.raises(ConfigError, match=f"^here leads out of the workspace, to {tmp_path}"):
            files.inside(root, path, where="here")


def test_a_loop_of_links_is_named(tmp_path: Path) -> None:
    """R40"""
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigError, match=r"^here: .*cannot be followed"):
        files.inside(tmp_path, tmp_path / "loop" / "x", where="here")
    assert files.follow(tmp_path / "loop" / "x") == tmp_path / "loop" / "x"


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert files.read_file(path, max_bytes=5) == b"12345"
    with pytest.raises(ConfigError, match="file: larger than 4 bytes"):
        files.read_file(path, max_bytes=4)


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    """R40, R51: a pipe that nobody writes to would keep a run waiting for ever."""
    os.mkfifo(tmp_path / "fifo")
    for path, reason in (
        (tmp_path / "fifo", "is not a regular file"),
        (Path("/dev/zero"), "is not a regular file"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(ConfigError, match=rf"^{path}: cannot be read \({reason}\)"):
            files.read_file(path, max_bytes=10)


def test_what_only_seems_long_is_not_read(tmp_path: Path) -> None:
    """R40: a sparse file takes no room on the disk, and all of it in memory."""
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 10 * 1024**3)
    with pytest.raises(ConfigError, match="sparse: larger than 1024 bytes"):
        files.read_file(path, max_bytes=1024)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone: cannot be read \(No such file or directory\)"):
        files.read_file(tmp_path / "gone", max_bytes=1)


def test_a_text_is_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes("\ufeffä\r\n".encode())
    assert files.read_text(path, max_bytes=10) == "\ufeffä\r\n"
    path.write_bytes(b"one\ntwo \xff\n")
    with pytest.raises(ConfigError, match="file: line 2 is not UTF-8; save it as UTF-8"):
        files.read_text(path, max_bytes=10)


def test_what_cannot_be_parsed_is_one_line_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes("\ufeff7".encode())

    def parsed() -> int:
        return files.read_parsed(path, int, complaint="is no number", max_bytes=10)

    assert parsed() == 7
    path.write_text("7\n8")
    with pytest.raises(ConfigError, match=r"file is no number: invalid literal for .* '7\\n8'"):
        parsed()

    def refuse(_text: str) -> None:
        raise ValueError("first,\n  then")

    with pytest.raises(ConfigError, match=r"file is no number: first, then$"):
        files.read_parsed(path, refuse, complaint="is no number", max_bytes=10)


def test_what_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("[" * 200_000)
    with pytest.raises(ConfigError, match="file is not valid JSON: it is nested too deeply"):
        files.read_parsed(path, json.loads, complaint="is not valid JSON", max_bytes=200_000)


def test_what_comes_with_the_sources(tmp_path: Path) -> None:
    """R37: all of a repository that holds the workspace, also where that is a submodule of it."""
    root = tmp_path / "repository" / "inner" / "workspace"
    root.mkdir(parents=True)
    home = tmp_path / "home"
    home.mkdir()
    (root / "linked").symlink_to(home)
    (home / "linked").symlink_to(root)
    assert files.is_in_checkout(root / ".npmrc", root)
    assert files.is_in_checkout(root / "linked" / ".npmrc", root)
    assert files.is_in_checkout(home / "linked" / ".npmrc", root)
    assert not files.is_in_checkout(root.parent / ".npmrc", root)
    (root.parent / ".git").touch()
    (root.parents[1] / ".git").mkdir()
    assert files.is_in_checkout(root.parents[1] / ".npmrc", root)
    assert not files.is_in_checkout(home / ".npmrc", root)
