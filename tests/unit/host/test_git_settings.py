"""R51, R52: git that reads runs nothing that a repository's own settings name."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from releasekit.host.process import Processes
from releasekit.host.scrub import overrule_git_settings
from releasekit.plan.source import read_checkout
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {
    "core.fsmonitor": "touch ../ran",
    "core.hooksPath": "hooks",
    "diff.external": "touch ../ran",
    "diff.x.command": "touch ../ran",
    "diff.x.textconv": "touch ../ran",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Whose file has changed, and whose index is to be refreshed."""
    top = tmp_path / "repository"
    top.mkdir()
    for name in ("changed", "touched"):
        (top / name).write_text("old\n")
    git(top, "init", "--quiet")
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "Start")
    (top / "changed").write_text("new\n")
    os.utime(top / "touched", (1, 1))
    (top / ".git/info/attributes").write_text("* diff=x\n")
    hook = top / "hooks/post-index-change"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\ntouch ../ran\n")
    hook.chmod(0o755)
    return top


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_look_at_the_sources_runs_nothing(setting: str, repository: Path) -> None:
    async def commit() -> str:
        async with Processes(environment={**os.environ, "GIT_CONFIG_NOSYSTEM": "1"}) as processes:
            return (await read_checkout(repository, processes)).commit

    git(repository, "config", setting, SETTINGS[setting])
    assert "+dirty." in asyncio.run(commit())
    assert not (repository.parent / "ran").exists()


def test_tracked_files_that_look_like_a_repository_are_none(repository: Path) -> None:
    """R53: they would have another HEAD, and settings with programs in them."""
    inner = repository / "python"
    git(repository, "clone", "--quiet", "--bare", ".", "python")
    git(inner, "config", "core.bare", "false")
    git(inner, "config", "core.worktree", str(inner))

    async def commit() -> str:
        async with Processes(environment={**os.environ, "GIT_CONFIG_NOSYSTEM": "1"}) as processes:
            return (await read_checkout(inner, processes)).commit

    assert asyncio.run(commit()) == ""


@pytest.mark.parametrize(("given", "first"), [("1", 1), ("", 0), ("x", 0), ("9" * 5000, 0)])
def test_settings_of_the_users_own_stay(given: str, first: int) -> None:
    own = {"GIT_CONFIG_COUNT": given, "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    made = overrule_git_settings(own)
    count = int(made["GIT_CONFIG_COUNT"])
    keys = [made[f"GIT_CONFIG_KEY_{number}"] for number in range(count)]
    ours = ["core.fsmonitor", "core.hooksPath", "log.showSignature", "safe.bareRepository"]
    assert keys[first:] == ours
    assert keys[:first] == ["a.b"][:first]
