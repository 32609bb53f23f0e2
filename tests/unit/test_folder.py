from __future__ import annotations

import os
from pathlib import Path

import pytest

from releasekit.host.folder import Folder


@pytest.mark.parametrize("way", ["link", "link/below", "real/link/below"])
def test_a_link_on_the_way_is_named_and_not_followed(tmp_path: Path, way: str) -> None:
    """R52"""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "below").mkdir(parents=True)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(elsewhere)
    (tmp_path / "real" / "link").symlink_to(elsewhere)
    link = way.removesuffix("/below")
    for make in (False, True):
        with (
            pytest.raises(OSError, match=rf"is a symbolic link.*'{tmp_path}/{link}'"),
            Folder.reached(tmp_path / way / "more", make=make),
        ):
            pass
    assert [path.name for path in elsewhere.iterdir()] == ["below"]


def test_a_file_on_the_way_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(NotADirectoryError, match=f"'{tmp_path}/file'"),
        Folder.reached(tmp_path / "file" / "below"),
    ):
        pass


def test_a_directory_that_becomes_a_link_later_changes_nothing(tmp_path: Path) -> None:
    """R52: the descriptor is that of the directory, whatever its name leads to by now."""
    (tmp_path / "state").mkdir()
    (tmp_path / "elsewhere").mkdir()
    with Folder.reached(tmp_path / "state") as folder:
        (tmp_path / "state").rename(tmp_path / "moved")
        (tmp_path / "state").symlink_to("elsewhere")
        os.close(folder.open("file", os.O_WRONLY | os.O_CREAT))
    assert [path.name for path in (tmp_path / "moved").iterdir()] == ["file"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("kind", ["directory", "pipe", "link", "loose link"])
def test_only_regular_files_are_opened_replaced_and_removed(tmp_path: Path, kind: str) -> None:
    """R52"""
    path = tmp_path / "path"
    match kind:
        case "directory":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link":
            (tmp_path / "target").touch()
            path.symlink_to("target")
        case _:
            path.symlink_to("missing")
    (tmp_path / "new").touch()
    before = sorted((each.name, each.lstat().st_ino) for each in tmp_path.iterdir())
    with Folder.reached(tmp_path) as folder:
        for change in (
            lambda: folder.open("path", os.O_RDONLY),
            lambda: folder.open("path", os.O_RDWR | os.O_CREAT),
            lambda: folder.unlink("path"),
            lambda: folder.rename("new", "path"),
        ):
            with pytest.raises(OSError, match=f"'{path}'"):
                change()
    assert before == sorted((each.name, each.lstat().st_ino) for each in tmp_path.iterdir())


def test_a_directory_that_another_process_makes_meanwhile_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def late(*arguments: object, **more: object) -> None:
        mkdir(tmp_path / "new")
        raise FileExistsError

    monkeypatch.setattr(os, "mkdir", late)
    with Folder.reached(tmp_path / "new", make=True) as folder:
        assert folder.names() == []


def test_no_descriptor_is_left_behind(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    (tmp_path / "link").symlink_to(tmp_path)
    with Folder.reached(tmp_path / "a" / "b", make=True) as folder:
        assert folder.names() == []
    for way in ("link/a", "missing"):
        with pytest.raises(OSError, match=way[:4]), Folder.reached(tmp_path / way):
            pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_directory_that_may_be_passed_but_not_listed_is_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "closed" / "open").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o311)
    with Folder.reached(tmp_path / "closed" / "open") as folder:
        assert folder.names() == []
