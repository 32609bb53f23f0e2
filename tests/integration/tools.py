"""Programs that tests need: their absence is shown, and is not allowed in CI."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from releasekit.host.sandbox import landlock


def require_tool(name: str) -> Path:
    """The program, from this environment or from PATH; without it the test is skipped by name.

    In CI (CI=true) everything is there, so that a missing program is a failure.
    """
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is not None:
        return Path(found)
    if os.environ.get("CI") == "true":
        pytest.fail(f"{name} is not installed; CI runs every test")
    pytest.skip(f"{name} is not installed")


def find_closed(*further: str) -> list[Path]:
    """The directories that keep another user from this program, and from `further` ones."""
    files = (Path(each).resolve() for each in (__file__, *further))
    return [path for file in files for path in file.parents if not path.stat().st_mode & 0o001]


def require_access_for_others(*further: str) -> None:
    """Whether another user may read this program, and `further` ones that it starts, which a home
    of root's keeps them from.
    """
    closed = find_closed(*further)
    if closed and os.environ.get("CI") == "true":
        pytest.fail(f"only its owner may enter {closed[0]}; CI runs every test")
    if closed:
        pytest.skip(f"only its owner may enter {closed[0]}")


def require_landlock() -> int:
    """The version of its interface; without it the test is skipped, as without a tool."""
    abi, lacking = landlock()
    if lacking and os.environ.get("CI") == "true":
        pytest.fail(f"{lacking}; CI runs every test")
    if lacking:
        pytest.skip(lacking)
    return abi
