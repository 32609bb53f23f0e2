from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import pytest

import distributions
from releasekit.errors import PackageError
from releasekit.host.artifact_reader import open_artifact
from releasekit.model import Artifact

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DATA = bytes(range(256)) * 1000


@pytest.fixture
def built(tmp_path: Path) -> Path:
    path = tmp_path / "acme-1.0.whl"
    path.write_bytes(DATA)
    return path


def test_bytes_come_as_they_were_hashed(built: Path) -> None:
    """R18"""
    with open_artifact(distributions.artifact(built)) as file:
        assert file.readable()
        assert file.seekable()
        assert file.read() == DATA
        assert file.read() == b""
        file.seek(0)
        assert b"".join(iter(lambda: file.read(4096), b"")) == DATA


def test_a_client_can_learn_the_size(built: Path) -> None:
    with open_artifact(distributions.artifact(built)) as file:
        assert file.seek(0, os.SEEK_END) == len(DATA)
        assert file.tell() == len(DATA)
        assert file.seek(0) == 0
        with pytest.raises(io.UnsupportedOperation):
            file.seek(7)
        with pytest.raises(io.UnsupportedOperation):
            file.seek(0, os.SEEK_CUR)


def overwritten(path: Path) -> None:
    path.write_bytes(DATA[:-1] + b"!")


def truncated(path: Path) -> None:
    path.write_bytes(DATA[:-1])


def grown(path: Path) -> None:
    path.write_bytes(DATA + b"!")


@pytest.mark.parametrize("change", [overwritten, truncated, grown])
def test_a_file_changed_since_the_build_is_not_handed_out_whole(
    built: Path, change: Callable[[Path], None]
) -> None:
    """R18: whatever happens to the file, nobody ever gets all of its bytes."""
    artifact = distributions.artifact(built)
    change(built)
    got: list[bytes] = []
    with (
        open_artifact(artifact) as file,
        pytest.raises(PackageError, match="is not what was built"),
    ):
        got.extend(iter(lambda: file.read(1000), b""))
    assert sum(map(len, got)) < len(DATA)


@pytest.mark.parametrize("change", [overwritten, truncated, grown])
def test_a_file_changed_between_hash_and_send_is_not_sent(
    built: Path, change: Callable[[Path], None]
) -> None:
    """R18"""
    with open_artifact(distributions.artifact(built)) as file:
        with file.raw() as copy:
            assert copy.read() == DATA
        change(built)
        with pytest.raises(PackageError, match="is not what was built"):
            file.read()


def test_a_file_replaced_after_it_was_opened_changes_nothing(built: Path) -> None:
    """R18: the bytes are those of the descriptor, not of the name."""
    with open_artifact(distributions.artifact(built)) as file:
        other = built.with_name("other")
        other.write_bytes(b"other")
        other.replace(built)
        assert file.read() == DATA


def test_a_missing_file_is_named(built: Path) -> None:
    artifact = distributions.artifact(built)
    built.unlink()
    with (
        pytest.raises(PackageError, match=r"acme-1.0.whl: No such file or directory"),
        open_artifact(artifact),
    ):
        pass


def test_a_symbolic_link_is_not_followed(built: Path) -> None:
    """R36"""
    artifact = distributions.artifact(built)
    built.rename(built.with_name("elsewhere"))
    built.symlink_to("elsewhere")
    with pytest.raises(PackageError, match="it was not sent"), open_artifact(artifact):
        pass


def test_a_file_that_cannot_be_read_ends_its_package_only(tmp_path: Path) -> None:
    directory = tmp_path / "acme-1.0.whl"
    directory.mkdir()
    artifact = Artifact(path=directory, size=4, digests={"sha256": ""})
    with pytest.raises(PackageError, match="Is a directory"), open_artifact(artifact):
        pass


def test_a_disk_that_cannot_be_read_ends_its_package_only(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    with open_artifact(distributions.artifact(built)) as file:
        monkeypatch.setattr(os, "read", broken)
        with pytest.raises(PackageError, match="Input/output error"):
            file.read()


def test_readers_of_archives_see_the_bytes_that_are_sent(built: Path) -> None:
    """R53: a build that goes on changes the file, and back again, while its metadata is read."""
    with open_artifact(distributions.artifact(built)) as file, file.raw() as raw:
        built.write_bytes(DATA[::-1])
        assert raw.read() == DATA
        with pytest.raises(PackageError, match="is not what was built"), file.raw():
            pass
        built.write_bytes(DATA)
    with open_artifact(distributions.artifact(built)) as file:
        file.read(100)
        with file.raw() as raw:
            raw.seek(256)
            assert raw.read(3) == b"\x00\x01\x02"
        assert file.read() == DATA
