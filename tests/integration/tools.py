"""Programs that tests need: that one is missing or too old is shown, and is not allowed in CI."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NoReturn

import pytest

from releasekit.config.declaration import Tool, read_version
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.fields import replace
from releasekit.host import sandbox
from releasekit.host.sandbox import landlock

# Before a test says that it runs in CI.
IN_CI: Final = os.environ.get("CI") == "true"
# Those that `check` and `make demo` go by.
TOOLS: Final = {each.tool.program: each.tool for each in ECOSYSTEMS.values() if each.tool}


def require_tool(name: str, version: str = "") -> Path:
    """The program, from this environment or from PATH: of that `version` or later, or of the
    oldest that ReleaseKit takes. Without it the test is skipped by name.

    In CI (CI=true) everything is there, so that a missing program is a failure.
    """
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        leave_out(f"{name} is not installed")
    tool = TOOLS.get(name, Tool(program=name, version="", install=""))
    if version:
        tool = replace(tool, version=version)
    if tool.version:
        there = _ask_version(found, tool.asked)
        if not there or not tool.admits(there):
            leave_out(f"{name} is {there or 'broken'}, and {tool.version} or later is wanted")
    return Path(found)


@functools.cache
def _ask_version(program: str, asked: str) -> str:
    done = subprocess.run([program, asked], capture_output=True, text=True, check=False)
    return read_version(done.stdout)


def leave_out(lacking: str) -> NoReturn:
    """Skip the test for the lack of it, or fail in CI."""
    if IN_CI:
        pytest.fail(f"{lacking}; CI runs every test")
    pytest.skip(lacking)


def find_closed(*further: str) -> list[Path]:
    """The directories that keep another user from this program, and from `further` ones."""
    files = (Path(each).resolve() for each in (__file__, *further))
    return [path for file in files for path in file.parents if not path.stat().st_mode & 0o001]


def require_access_for_others(*further: str) -> None:
    """Whether another user may read this program, and `further` ones that it starts, which a home
    of root's keeps them from.
    """
    closed = find_closed(*further)
    if closed:
        leave_out(f"only its owner may enter {closed[0]}")


def find_open() -> str:
    """What is under test that a build may change, as in a checkout below /tmp; empty for nothing.
    `closed.py` runs tests in a copy.
    """
    places = [*map(Path, sandbox._EVERYBODYS)]
    return sandbox._find_exposed(Path("/var/empty"), places, {})


def require_closed() -> None:
    """That no build may change what is under test; else the test is skipped by name."""
    if found := find_open():
        leave_out(f"{found}, and builds may write there: `make test` tests a copy elsewhere")


def require_landlock() -> int:
    """The version of its interface; without it the test is skipped, as without a tool."""
    abi, lacking = landlock()
    if lacking:
        leave_out(lacking)
    return abi
