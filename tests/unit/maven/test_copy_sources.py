"""The program that copies a reactor's sources, in this process."""

from __future__ import annotations

import os
import shutil
import stat
from typing import TYPE_CHECKING, Any

import pytest

from releasekit.ecosystems.maven.copy_sources import copy_sources

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(name="top")
def _top(tmp_path: Path) -> Path:
    top = tmp_path / "w"
    for name in ("pom.xml", "target/old.jar", "src/target/Kept.java", "mvnw", ".git/config"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(name)
    (top / "mvnw").chmod(0o755)
    (top / "up").symlink_to("..")
    (top / ".state").mkdir()
    return top


def test_sources_are_copied_without_what_was_built(top: Path, tmp_path: Path) -> None:
    """What an earlier build has made gets into no release."""
    copy = tmp_path / "copy"
    copy_sources(str(top), str(copy), str(top), str(top / ".state"), ".git")
    there = {str(path.relative_to(copy)) for path in copy.rglob("*")}
    assert there == {"pom.xml", "src", "src/target", "src/target/Kept.java", "mvnw", "up"}
    assert (copy / "mvnw").stat().st_mode & stat.S_IXUSR
    assert str((copy / "up").readlink()) == ".."


@pytest.mark.parametrize("replaced", ["mvnw", "src"])
def test_a_link_in_the_place_of_a_copy_changes_nothing_behind_it(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced: str
) -> None:
    """R52: another build swaps what has just been copied; Landlock lets a process change modes and
    times outside.
    """
    victim, copy = tmp_path / "victim", tmp_path / "copy"
    victim.mkdir()
    (victim / "table.py").write_text("CODE")
    (victim / "table.py").chmod(0o600)
    os.utime(victim / "table.py", (1, 1))
    os.utime(victim, (1, 1))
    real = shutil.copyfileobj

    def swapping(*given: Any) -> None:
        real(*given)
        place = copy / replaced
        if place.exists() and not place.is_symlink():
            place.rename(tmp_path / "taken")
            place.symlink_to(victim / "table.py" if replaced == "mvnw" else victim)

    monkeypatch.setattr(shutil, "copyfileobj", swapping)
    copy_sources(str(top), str(copy), str(top), str(top / ".state"), ".git")
    status = (victim / "table.py").stat()
    assert (copy / replaced).is_symlink()
    assert (stat.S_IMODE(status.st_mode), status.st_mtime) == (0o600, 1)
    assert victim.stat().st_mtime == 1


def test_a_pipe_among_the_sources_ends_it_with_a_sentence(top: Path, tmp_path: Path) -> None:
    """R53"""
    os.mkfifo(top / "src/pipe")
    with pytest.raises(OSError, match="is not a regular file") as raised:
        copy_sources(str(top), str(tmp_path / "copy"), str(top), str(top / ".state"), ".git")
    assert raised.value.filename == str(top / "src/pipe")


def test_what_lies_around_a_reactor_is_linked_to(tmp_path: Path) -> None:
    """R64: sources by a link, and resources from above."""
    base, copy = tmp_path / "base", tmp_path / "copy" / "java" / "m"
    for name in ("java/m/pom.xml", "java/pom.xml", "java/other/a", "shared/S.java", ".git/HEAD"):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(name)
    (base / "java/m/src").symlink_to("../../shared")
    copy.parent.mkdir(parents=True)
    copy_sources(str(base / "java/m"), str(copy), str(base), str(base / ".state"), ".git")
    assert (copy / "src/S.java").read_text() == "shared/S.java"
    assert (copy / "../other/a").read_text() == "java/other/a"
    around = {path.relative_to(tmp_path / "copy").as_posix() for path in copy.parent.glob("*")}
    assert around == {"java/m", "java/other"}
    assert {path.name for path in (tmp_path / "copy").iterdir()} == {"java", "shared"}
