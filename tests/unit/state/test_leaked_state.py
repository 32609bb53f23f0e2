"""No state of a run is in what is published, wherever it lies and whatever it is called."""

from __future__ import annotations

import errno
import io
import tarfile
import tempfile
import zipfile
from typing import TYPE_CHECKING

import pytest

import fakes
from raising import raises
from releasekit.ecosystems.shared.archives import member_names
from releasekit.fields import replace
from releasekit.model import Artifact, Outcome
from releasekit.problems import Problem
from releasekit.release.building import refuse_state
from releasekit.state.directory import NAME, first_leaked, make_state_directory, within
from unit.release.test_release import Line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.model import Package

SOUND = ("a-1/a/__init__.py", "a-1/src/out/data.json", "a-1/PKG-INFO")


def at(directory: Path) -> Package:
    return replace(fakes.package("a"), directory=directory)


@pytest.mark.parametrize(
    "leaked",
    [
        ("a-1/.releasekit/results.json",),
        ("a/deep/.releasekit/logs/run/build.log",),
        ("a-1/left/journal.jsonl", "a-1/left/lock.npm"),
        ("BOOT-INF/classes/left/lock.maven", "BOOT-INF/classes/left/journal.jsonl"),
        ("a-1/out/results.json",),
        ("a/out/dist/pypi/a/1/a-1.tar.gz",),
    ],
)
@pytest.mark.parametrize("kind", ["sdist", "wheel"])
def test_an_artifact_with_state_in_it_fails_the_build(
    tmp_path: Path, leaked: Sequence[str], kind: str
) -> None:
    state = tmp_path / "src" / "out"
    (state / "dist/pypi/a/1").mkdir(parents=True)
    make_state_directory(state)
    for name in ("results.json", "dist/pypi/a/1/a-1.tar.gz"):
        (state / name).touch()
    path = packed(tmp_path, kind, [*SOUND, *leaked])
    with raises(Problem.STATE_IN_PACKAGE) as refused:
        refuse_state(at(tmp_path), [fakes.artifact(path, path.read_bytes())], state)
    assert f"{path.name} holds {leaked[0]}" in str(refused.value)
    assert "\n" not in str(refused.value)


def packed(directory: Path, kind: str, names: Sequence[str]) -> Path:
    path = directory / ("a-1.tar.gz" if kind == "sdist" else "a-1-py3-none-any.whl")
    if kind == "sdist":
        with tarfile.open(path, "w:gz") as archive:
            for name in names:
                archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    else:
        with zipfile.ZipFile(path, "w") as wheel:
            for name in names:
                wheel.writestr(name, "")
    return path


@pytest.mark.parametrize(
    "names",
    [
        SOUND,
        ("a-1/journal.jsonl", "a-1/deeper/lock.npm"),  # of somebody else
        ("a-1/out/.gitignore", "a-1/out/main.js"),  # no file of ours
        ("a-1/.releasekit",),  # a file, no directory
    ],
)
def test_what_only_looks_like_it_is_published(tmp_path: Path, names: Sequence[str]) -> None:
    make_state_directory(tmp_path / "out")
    assert not first_leaked(names, at(tmp_path), tmp_path / "out")


def test_a_state_directory_elsewhere_gives_its_name_no_meaning(tmp_path: Path) -> None:
    state = tmp_path / "out"
    make_state_directory(state)
    (state / "results.json").touch()
    assert not first_leaked(["a-1/out/results.json"], at(tmp_path / "a"), state)
    assert first_leaked(["a-1/out/results.json"], at(tmp_path), state)


@pytest.mark.parametrize("data", [b"", b"<project/>", b"PK\5\6" + b"\0" * 17, b"\x1f\x8bno"])
def test_what_is_no_archive_has_no_members(data: bytes) -> None:
    """A POM, a signature, a bundle; and what is damaged, of which a registry will tell."""
    assert member_names(io.BytesIO(data)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"PK\1\2\x14\3\x14", b"PK\1\2\x14\3\x63"), ("é".encode(), b"\xff\xfe")],
    ids=["version", "name"],
)
def test_a_zip_that_cannot_be_listed_ends_no_run(before: bytes, after: bytes) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("é.txt", "")
    data = file.getvalue()
    assert before in data
    assert member_names(io.BytesIO(data.replace(before, after))) == []


def test_where_the_state_directory_is_in_a_tree(tmp_path: Path) -> None:
    assert within(tmp_path / "a" / NAME, tmp_path) == f"a/{NAME}"
    assert within(tmp_path / NAME, tmp_path / "a") == ""


class Careless(fakes.FakeWorkspace):
    """What it builds holds everything there is."""

    def _build(self, package: Package, into: Path) -> tuple[Artifact, ...]:
        into.mkdir(parents=True)
        path = packed(into, "sdist", [*SOUND, "a-1/.releasekit/results.json"])
        return (fakes.artifact(path, path.read_bytes()),)


def test_it_is_not_uploaded(tmp_path: Path) -> None:
    """Whatever ecosystem it is of."""
    line = Line(tmp_path)
    line.workspace = Careless()
    (result,) = line.run(fakes.plan(fakes.package("a"))).values()
    assert result.outcome is Outcome.FAILED
    assert "a-1.tar.gz holds a-1/.releasekit/results.json" in result.reason
    assert line.registry.uploads == []


class Exchanged(fakes.FakeWorkspace):
    """What it has left behind puts another file in the place of what it built."""

    def _build(self, package: Package, into: Path) -> tuple[Artifact, ...]:
        into.mkdir(parents=True)
        path = packed(into, "wheel", SOUND)
        built = fakes.artifact(path, path.read_bytes())
        path.write_bytes(b"PK\5\6" + b"\0" * 18)
        return (built,)


def test_only_what_was_built_is_looked_at(tmp_path: Path) -> None:
    line = Line(tmp_path)
    line.workspace = Exchanged()
    (result,) = line.run(fakes.plan(fakes.package("a"))).values()
    assert result.outcome is Outcome.FAILED
    assert "a-1-py3-none-any.whl: the file is not what was built" in result.reason
    assert line.registry.uploads == []


def test_a_disk_that_is_full_fails_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(directory: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(directory))

    monkeypatch.setattr("releasekit.host.artifact_reader._IN_MEMORY_BYTES", 0)
    monkeypatch.setattr("releasekit.host.durable.unnamed", refuse)
    (result,) = Line(tmp_path).run(fakes.plan(fakes.package("a"))).values()
    assert result.outcome is Outcome.FAILED
    assert f"{tempfile.gettempdir()}: No space left on device" in result.reason


def test_names_that_no_file_has_are_passed_over(tmp_path: Path) -> None:
    """R51: each part of a path is compared with each other."""
    names = [".", "a/" * 16_000, f"{NAME}/journal.jsonl"]
    assert first_leaked(names, at(tmp_path), tmp_path / NAME) == f"{NAME}/journal.jsonl"
