from __future__ import annotations

import asyncio
import hashlib
import tempfile
from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.shared.artifacts import digested, scratch, staged
from releasekit.errors import ConfigError

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


def test_a_scratch_directory_is_where_the_runner_wants_it_until_it_is_left(tmp_path: Path) -> None:
    async def main() -> None:
        async with scratch({"RUNNER_TEMP": str(tmp_path)}) as found:
            assert (found.parent, list(found.iterdir())) == (place, [])
            (found / "file").touch()

    place = tmp_path.resolve()
    asyncio.run(main())
    assert not list(place.iterdir())


@pytest.mark.parametrize("variable", ["RUNNER_TEMP", "TMPDIR"])
def test_where_no_scratch_directory_can_be_made_is_told(
    tmp_path: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with scratch({variable: nowhere}):
            raise AssertionError

    nowhere = str(tmp_path / "nowhere")
    monkeypatch.setattr(tempfile, "tempdir", nowhere)
    with pytest.raises(ConfigError, match=rf"^{variable}: .*there: No such file or directory"):
        asyncio.run(main())
