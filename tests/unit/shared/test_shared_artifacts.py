from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.shared.artifacts import (
    MAX_BYTES,
    copy_new,
    digested,
    placed,
    staged,
    write_new,
)
from releasekit.errors import BuildFailed
from releasekit.model import Artifact

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_staged_takes_the_place_of_what_was_there(tmp_path: Path) -> None:
    into = tmp_path / "demo" / "1.0"
    for text in ("first", "second"):
        with staged(into) as partial:
            (partial / text).write_text(text)
            assert not (into / text).exists()
        assert [path.name for path in into.iterdir()] == [text]
    assert [path.name for path in into.parent.iterdir()] == ["1.0"]


def test_what_is_staged_waits_for_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It becomes durable with its record, in one go with what else was built."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with staged(tmp_path / "demo" / "1.0") as partial:
        write_new(partial / "file", b"built")
    assert synced == []


def test_what_fails_while_it_is_staged_leaves_what_was_there(tmp_path: Path) -> None:
    """R21"""
    into = tmp_path / "1.0"
    into.mkdir()
    (into / "kept").touch()
    (tmp_path / ".1.0.building" / "of a run that was killed").mkdir(parents=True)

    def fail() -> None:
        with staged(into) as partial:
            assert list(partial.iterdir()) == []
            (partial / "half").touch()
            raise ValueError("full")

    with pytest.raises(ValueError, match="full"):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["1.0"]
    assert [path.name for path in into.iterdir()] == ["kept"]


def test_a_file_has_the_digests_that_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.jar"
    path.write_bytes(b"x" * 3_000_000)
    artifact = digested(path, "sha256", "md5", "blake2b_256")
    assert artifact.size == 3_000_000
    assert artifact.digests == {
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "md5": hashlib.md5(path.read_bytes()).hexdigest(),
        "blake2b_256": hashlib.blake2b(path.read_bytes(), digest_size=32).hexdigest(),
    }


@pytest.fixture(name="elsewhere")
def _elsewhere(tmp_path: Path) -> Path:
    """What no build may reach."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "1.0").mkdir(parents=True)
    (elsewhere / "1.0" / "precious").write_bytes(b"precious")
    return elsewhere


def untouched(elsewhere: Path) -> bool:
    (precious,) = (path for path in elsewhere.rglob("*") if path.is_file())
    return precious.read_bytes() == b"precious"


@pytest.mark.parametrize("place", ["dist", "dist/pypi", "dist/pypi/demo"])
def test_no_link_leads_to_what_is_replaced(tmp_path: Path, elsewhere: Path, place: str) -> None:
    """R52: a link on the way to a version had a directory of that name deleted at its end."""
    link = tmp_path / "state" / place
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    with (
        pytest.raises(BuildFailed, match=f"{link}: is a symbolic link"),
        staged(tmp_path / "state" / "dist" / "pypi" / "demo" / "1.0"),
    ):
        raise AssertionError
    assert untouched(elsewhere)
    assert link.is_symlink()


@pytest.mark.parametrize("name", ["1.0", ".1.0.building"])
def test_a_link_in_the_place_of_either_goes_and_not_its_end(
    tmp_path: Path, elsewhere: Path, name: str
) -> None:
    """R52"""
    into = tmp_path / "demo" / "1.0"
    into.parent.mkdir()
    (into.parent / name).symlink_to(elsewhere / "1.0")
    with staged(into) as partial:
        (partial / "file").write_bytes(b"built")
    assert untouched(elsewhere)
    assert not into.is_symlink()
    assert [path.name for path in into.iterdir()] == ["file"]


@pytest.mark.parametrize("place", ["", "demo", "demo/.1.0.building", "demo/1.0"])
def test_a_link_that_a_build_makes_leads_nowhere(
    tmp_path: Path, elsewhere: Path, place: str
) -> None:
    """R52: between the look at a directory and its use."""
    into = tmp_path / "dist" / "demo" / "1.0"
    into.mkdir(parents=True)
    trouble = ""
    try:
        with staged(into):
            swapped = tmp_path / "dist" / place
            swapped.rename(tmp_path / "moved")
            swapped.symlink_to(elsewhere / "1.0" if place.endswith("0") else elsewhere)
    except BuildFailed as error:
        trouble = str(error)
    assert untouched(elsewhere)
    assert ("is a symbolic link" in trouble) is (place == "demo/.1.0.building")


@pytest.mark.parametrize("kind", ["link", "loose link", "directory", "nothing"])
def test_what_is_no_file_was_not_built(tmp_path: Path, elsewhere: Path, kind: str) -> None:
    """R52: a build may put a link in the place of what it is to build."""
    path = tmp_path / "demo-1.0.tar.gz"
    match kind:
        case "link":
            path.symlink_to(elsewhere / "1.0" / "precious")
        case "loose link":
            path.symlink_to("missing")
        case "directory":
            path.mkdir()
        case _:
            pass
    with pytest.raises(BuildFailed, match=f"{path}: "):
        digested(path, "sha256")
    with pytest.raises(BuildFailed, match=f"{path}: "):
        copy_new(path, tmp_path / "copy")


def test_no_more_is_copied_than_any_registry_takes(tmp_path: Path) -> None:
    """R53: a sparse file costs a build nothing."""
    path = tmp_path / "demo-1.0.crate"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(BuildFailed, match=f"{path}: is larger than {MAX_BYTES} bytes"):
        copy_new(path, tmp_path / "copy")
    assert (tmp_path / "copy").stat().st_size == 0


def test_nothing_is_written_through_a_link(tmp_path: Path, elsewhere: Path) -> None:
    """R52"""
    given = tmp_path / "given-1.0.whl"
    given.write_bytes(b"given")
    into = tmp_path / "into"
    into.mkdir()
    for target in (elsewhere / "1.0" / "precious", elsewhere / "1.0" / "new"):
        link = into / given.name
        link.symlink_to(target)
        sha256 = hashlib.sha256(b"given").hexdigest()
        with pytest.raises(BuildFailed, match=f"{link}: "):
            placed([Artifact(path=given, size=5, digests={"sha256": sha256})], into)
        with pytest.raises(BuildFailed, match=f"{link}: "):
            write_new(link, b"given")
        with pytest.raises(BuildFailed, match=f"{link}: "):
            copy_new(given, link)
        link.unlink()
    assert untouched(elsewhere)
