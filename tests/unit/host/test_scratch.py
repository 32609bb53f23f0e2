from __future__ import annotations

import asyncio
import tempfile
from typing import TYPE_CHECKING

import pytest

from releasekit.errors import ConfigError
from releasekit.host.scratch import scratch

if TYPE_CHECKING:
    from pathlib import Path


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
