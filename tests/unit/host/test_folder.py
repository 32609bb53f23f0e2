from __future__ import annotations

import os
from pathlib import Path

import pytest

from releasekit.host import folder as folders
from releasekit.host.folder import Folder


@pytest.fixture(params=["the kernel steps", "we step"])
def _stepping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the kernel knows openat2(2) and lets us use it, and as elsewhere."""
    if request.param == "we step":
        monkeypatch.setattr(folders, "_syscall", None)


@pytest.mark.usefixtures("_stepping")
@pytest.mark.parametrize("way", ["link", "link/below", "real/../link/below", "real/last"])
def test_a_link_to_what_is_there_is_not_followed(tmp_path: Path, way: str) -> None:
    """R52"""
    (tmp_path / "elsewhere" / "below").mkdir(parents=True)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("elsewhere")
    (tmp_path / "real" / "last").symlink_to("../elsewhere")
    with pytest.raises(OSError, match="is a symbolic link"), Folder.reached(tmp_path / way):
        pass


@pytest.mark.usefixtures("_stepping")
def test_a_path_is_all_of_its_characters(tmp_path: Path) -> None:
    """R52: C would take a NUL for its end."""
    with pytest.raises(ValueError, match="null"), Folder.reached(tmp_path / "a\0b"):
        pass
    (tmp_path / "\udcff").mkdir()
    with Folder.reached(tmp_path / "\udcff") as folder:
        assert folder.names() == []


def test_a_path_of_many_directories_takes_as_many_calls_as_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if folders._open_without_links(tmp_path, os.O_RDONLY) is None:
        pytest.skip("this kernel does not know openat2, or a filter forbids it")
    deep = tmp_path.joinpath(*"abcdefgh")
    deep.mkdir(parents=True)
    monkeypatch.setattr(os, "open", None)
    with Folder.reached(deep) as folder:
        assert folder.is_directory(".")


@pytest.mark.usefixtures("_stepping")
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


@pytest.mark.usefixtures("_stepping")
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


@pytest.mark.parametrize("kind", ["nothing", "file", "directory", "link", "loose link", "pipe"])
def test_whatever_has_the_name_is_removed_and_nothing_else(tmp_path: Path, kind: str) -> None:
    """R52: of a link, itself; and of a directory, links in it too."""
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    path = state / "name"
    state.mkdir()
    (elsewhere / "inside").mkdir(parents=True)
    (elsewhere / "precious").write_bytes(b"precious")
    match kind:
        case "file":
            path.touch()
        case "directory":
            (path / "a" / "b" / "c").mkdir(parents=True)
            (path / "a" / "b" / "file").touch()
            (path / "a" / "b" / "inside").symlink_to(elsewhere / "inside")
            (path / "a" / "precious").symlink_to(elsewhere / "precious")
            os.mkfifo(path / "a" / "pipe")
        case "link":
            path.symlink_to(elsewhere)
        case "loose link":
            path.symlink_to("missing")
        case "pipe":
            os.mkfifo(path)
        case _:
            pass
    (state / "other").touch()
    with Folder.reached(state) as folder:
        folder.remove_tree("name")
        assert folder.names() == ["other"]
    assert (elsewhere / "precious").read_bytes() == b"precious"
    assert (elsewhere / "inside").is_dir()


def test_a_directory_of_any_depth_is_removed(tmp_path: Path) -> None:
    """R40: deeper than calls, descriptors and the longest path go."""
    (tmp_path / "deep").mkdir()
    here = os.open(tmp_path / "deep", os.O_RDONLY)
    for _ in range(1_200):
        os.mkdir("directory", dir_fd=here)
        inner = os.open("directory", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    with Folder.reached(tmp_path) as folder:
        folder.remove_tree("deep")
        assert folder.names() == []


def test_a_directory_that_becomes_a_link_while_it_is_removed_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R52: between the look at it and its opening."""
    (tmp_path / "state" / "name").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "precious").write_bytes(b"precious")
    removed = Folder._removed

    def swapped(folder: Folder, name: str) -> bool:
        found = removed(folder, name)
        (tmp_path / "state" / name).rmdir()
        (tmp_path / "state" / name).symlink_to(tmp_path / "elsewhere")
        return found

    monkeypatch.setattr(Folder, "_removed", swapped)
    with (
        Folder.reached(tmp_path / "state") as folder,
        pytest.raises(OSError, match="is a symbolic link"),
    ):
        folder.remove_tree("name")
    assert (tmp_path / "elsewhere" / "precious").read_bytes() == b"precious"


def test_what_is_moved_is_the_name_itself(tmp_path: Path) -> None:
    """R52"""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "one" / "link").symlink_to(tmp_path / "elsewhere")
    with Folder.reached(tmp_path / "one") as one, Folder.reached(tmp_path / "two") as two:
        one.move("link", two, "moved")
        assert (one.names(), two.names()) == ([], ["moved"])
        assert not two.is_directory("moved")
        assert not two.is_file("moved")
        assert not two.is_file("missing")
        assert not two.is_directory("missing")
        with pytest.raises(OSError, match="is a symbolic link"), two.inner("moved"):
            pass
        two.make("made")
        assert two.is_directory("made")
        two.move("made", one, "made")
        assert one.names() == ["made"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_second_name_takes_no_place(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "new").write_bytes(b"new")
    with Folder.reached(tmp_path) as folder:
        folder.link("old", "new")
        folder.link("old", "second")
    assert (tmp_path / "new").read_bytes() == b"new"
    assert (tmp_path / "second").read_bytes() == b"old"


def test_a_directory_of_too_many_names_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R53: a build leaves as many as it likes."""
    monkeypatch.setattr(folders, "MAX_NAMES", 2)
    for name in "abc":
        (tmp_path / name).touch()
    with (
        Folder.reached(tmp_path) as folder,
        pytest.raises(OSError, match="holds more than 2 names"),
    ):
        folder.names()


def test_a_tree_that_grows_is_not_removed_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R51: a build may leave processes that put more there."""
    monkeypatch.setattr(folders, "MAX_REMOVED", 3)
    for name in ("a/1", "a/2", "b/1", "b/2"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).touch()
    with Folder.reached(tmp_path) as folder:
        with pytest.raises(OSError, match="holds more than 3 files"):
            folder.remove_tree("tree")
        monkeypatch.setattr(folders, "MAX_REMOVED", 6)
        folder.remove_tree("tree")
    assert list(tmp_path.iterdir()) == []
