from __future__ import annotations

import asyncio
import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fakes import package, plan
from integration.tools import require_tool
from releasekit.host.process import Processes
from releasekit.plan.source import commit_of, head_of
from releasekit.release.sources import Sources
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    require_tool("git")
    git(tmp_path, "init", "--quiet")
    (tmp_path / "file").write_text("one\n")
    (tmp_path / ".gitignore").write_text("ignored\n")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "Start")
    return tmp_path


def commit(root: Path, *beside: Path) -> str:
    async def ask() -> str:
        async with Processes(environment=dict(os.environ)) as processes:
            return await commit_of(root, processes, beside=beside)

    return asyncio.run(ask())


def test_a_clean_tree_is_its_commit(repository: Path) -> None:
    assert commit(repository) == git(repository, "rev-parse", "HEAD").strip()


@pytest.mark.parametrize("name", ["file", "another"])
def test_changes_show(repository: Path, name: str) -> None:
    """R20"""
    (repository / name).write_text("two\n")
    first = commit(repository)
    assert re.fullmatch(r"[0-9a-f]{40}\+dirty\.[0-9a-f]{12}", first)
    assert commit(repository) == first
    (repository / name).write_text("three, and longer\n")
    assert commit(repository) != first


@pytest.mark.parametrize("name", ["ignored", "a.egg-info/PKG-INFO", "build/lib/a.py", "dist/a.whl"])
def test_what_builds_leave_behind_is_no_change(repository: Path, name: str) -> None:
    path = repository / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("built\n")
    assert "+" not in commit(repository)


def test_files_from_elsewhere_are_no_change(repository: Path) -> None:
    """R20: a plan is the same in the job that has downloaded them."""
    wheels = repository / "wheel [house]"
    wheels.mkdir()
    (wheels / "a.whl").write_text("built\n")
    assert "+" in commit(repository)
    assert "+" in commit(repository, repository)
    assert "+" not in commit(repository, repository.parent, wheels)


def test_outside_git_there_is_no_commit(tmp_path: Path) -> None:
    assert commit(tmp_path) == ""


def test_the_head_is_the_commit_whatever_differs_from_it(repository: Path, tmp_path: Path) -> None:
    """R45"""

    async def ask(root: Path) -> str:
        async with Processes(environment=dict(os.environ)) as processes:
            return await head_of(root, processes)

    head = git(repository, "rev-parse", "HEAD").strip()
    (repository / "file").write_text("two\n")
    assert asyncio.run(ask(repository)) == head
    assert asyncio.run(ask(tmp_path.parent)) == ""


def test_outside_git_only_manifests_are_looked_at(tmp_path: Path) -> None:
    """R45"""
    made = replace(package("a"), directory=tmp_path, manifest=tmp_path / "manifest")
    made.manifest.write_text("")

    async def main() -> None:
        async with Processes(environment=dict(os.environ)) as processes:
            planned = replace(plan(made), commit=await commit_of(tmp_path, processes))
            sources = Sources.in_checkout(planned, tmp_path, processes)
        assert await sources.change(made) == ""
        made.manifest.write_text("edited")
        assert "manifest is not" in await sources.change(made)

    asyncio.run(main())
