from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from full_disks import files_of_at_most
from releasekit.errors import CommandFailed
from releasekit.host.scrub import Redactor
from releasekit.host.streams import log_pipe

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "canary-3f9a"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


def test_what_is_written_to_its_name_gets_into_the_log_without_secrets(
    tmp_path: Path, temporary: Path
) -> None:
    """R50: by several at once, in pieces, and right before the end."""
    log = tmp_path / "logs" / "log"

    async def main() -> None:
        async with log_pipe(log, Redactor([SECRET])) as path:
            with path.open("ab", buffering=0) as one, path.open("ab", buffering=0) as other:
                one.write(f"a {SECRET[:6]}".encode())
                await asyncio.sleep(0)
                other.write(f"{SECRET[6:]}\nlast {SECRET}".encode())

    asyncio.run(main())
    assert log.read_text() == "a ***\nlast ***\n"
    assert not list(temporary.iterdir())


def test_a_log_goes_on_where_it_ended(tmp_path: Path) -> None:
    """A wheel is built after its source distribution."""
    log = tmp_path / "log"

    async def main() -> None:
        for text in ("one\n", "", "two\n"):
            async with log_pipe(log, Redactor([])) as path:
                path.write_text(text)

    asyncio.run(main())
    assert log.read_text() == "one\ntwo\n"


@pytest.mark.parametrize("lines", [1, 9_999])
def test_a_log_that_the_disk_refuses_is_named_and_holds_nobody_up(
    tmp_path: Path, lines: int
) -> None:
    """R40"""
    log = tmp_path / "log"

    async def main() -> None:
        async with log_pipe(log, Redactor([])) as path:
            await asyncio.to_thread(path.write_text, "a line of the build\n" * lines)

    with pytest.raises(CommandFailed, match=f"^{log}: File too large$"), files_of_at_most(10):
        asyncio.run(main())


def test_whoever_stays_behind_is_not_waited_for(tmp_path: Path, temporary: Path) -> None:
    """R51: as a compiler's server would, which keeps its standard output."""
    log = tmp_path / "log"
    code = "import sys; print('there', flush=True); sys.stdin.read()"

    def started(path: Path) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-I", "-c", code]
        with path.open("ab", buffering=0) as out:
            return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=out)

    async def main() -> subprocess.Popen[bytes]:
        async with log_pipe(log, Redactor([])) as path:
            return started(path)

    with asyncio.run(main()) as stayed:
        assert not list(temporary.iterdir())
        stayed.kill()


def test_a_cancelled_build_leaves_nothing_behind(tmp_path: Path, temporary: Path) -> None:
    log = tmp_path / "log"

    async def main() -> None:
        begun = asyncio.Event()

        async def build() -> None:
            async with log_pipe(log, Redactor([])) as path:
                path.write_text("begun")
                begun.set()
                await asyncio.Event().wait()

        task = asyncio.ensure_future(build())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert log.read_text() == "begun\n"
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("where", ["log", "directory"])
def test_a_link_in_the_place_of_a_log_is_not_followed(tmp_path: Path, where: str) -> None:
    """R52: a build put it there, between its source distribution and its wheel."""
    elsewhere, logs = tmp_path / "elsewhere", tmp_path / "logs"
    elsewhere.mkdir()
    (elsewhere / "log").write_text("as it was\n")
    if where == "directory":
        logs.symlink_to(elsewhere)
    else:
        logs.mkdir()
        (logs / "log").symlink_to(elsewhere / "log")

    async def main() -> None:
        async with log_pipe(logs / "log", Redactor([])) as path:
            path.write_text("evil\n")

    with pytest.raises(CommandFailed, match="is a symbolic link"):
        asyncio.run(main())
    assert (elsewhere / "log").read_text() == "as it was\n"


@pytest.mark.parametrize("instead", ["nothing", "file", "link"])
def test_a_pipe_that_a_build_takes_away_harms_nobody(tmp_path: Path, instead: str) -> None:
    """R51: the directory for temporary files is open to builds."""
    log, elsewhere = tmp_path / "log", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "there").touch()

    async def main() -> None:
        async with log_pipe(log, Redactor([])) as path:
            path.write_text("said\n")
            path.parent.rename(tmp_path / "away")
            if instead == "file":
                path.parent.touch()
            elif instead == "link":
                path.parent.symlink_to(elsewhere)

    asyncio.run(main())
    assert log.read_text() == "said\n"
    assert (elsewhere / "there").exists()
