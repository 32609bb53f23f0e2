from __future__ import annotations

import asyncio
import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fakes import config, package, plan
from integration.tools import require_tool
from releasekit.host.process import Processes
from releasekit.plan.source import Tree, commit_of, tree_of
from releasekit.release.sources import Sources
from releasekit.state.pins import EphemeralPin
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


def commit(root: Path) -> str:
    async def ask() -> str:
        async with Processes(environment=dict(os.environ)) as processes:
            return await commit_of(root, processes)

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


def test_outside_git_there_is_no_commit(tmp_path: Path) -> None:
    assert commit(tmp_path) == ""


def tree(root: Path) -> Tree:
    async def ask() -> Tree:
        async with Processes(environment=dict(os.environ)) as processes:
            return await tree_of(root, processes)

    return asyncio.run(ask())


def test_a_tree_is_its_commit_and_the_tracked_files_that_differ(repository: Path) -> None:
    """R45: untracked files are what builds leave behind, and are not looked at."""
    head = git(repository, "rev-parse", "HEAD").strip()
    (repository / "new").write_text("untracked\n")
    assert tree(repository) == Tree(head, {})
    (repository / "file").write_text("two\n")
    first = tree(repository)
    assert first.changed.keys() == {repository / "file"}
    (repository / "file").write_text("three\n")
    assert tree(repository).changed != first.changed
    (repository / "file").unlink()
    assert tree(repository) == Tree(head, {repository / "file": "No such file or directory"})


def test_a_tree_below_the_top_has_its_own_files_only(repository: Path) -> None:
    below = repository / "below"
    below.mkdir()
    (below / "inner").write_text("one\n")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "Below")
    (below / "inner").write_text("two\n")
    (repository / "file").write_text("two\n")
    assert tree(below).changed.keys() == {below / "inner"}


def test_outside_git_there_is_no_tree(tmp_path: Path) -> None:
    assert tree(tmp_path) == Tree("", {})


def test_what_a_run_of_another_ecosystem_has_pinned_is_no_change(repository: Path) -> None:
    """R26, R45: they go on side by side in one checkout."""
    theirs = repository / "package.json"
    theirs.write_text("{}")
    (repository / "manifest").write_text("")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "Two ecosystems in one directory")
    made = replace(package("a"), directory=repository, manifest=repository / "manifest")
    settings = config(repository)

    async def main() -> None:
        async with Processes(environment=dict(os.environ)) as processes:
            commit = await commit_of(repository, processes)
            planned = replace(plan(made), commit=commit)
            sources = await Sources.of(planned, settings, processes)
            with EphemeralPin(
                settings.state_directory, {theirs: b"[]"}, ecosystem="npm", root=repository
            ):
                assert await sources.change(made) == ""
            theirs.write_text("[]")
            with sources.building([made], {}):
                pass
            assert "package.json is not" in await sources.change(made)

    asyncio.run(main())


def test_outside_git_only_manifests_are_looked_at(tmp_path: Path) -> None:
    """R45"""
    made = replace(package("a"), directory=tmp_path, manifest=tmp_path / "manifest")
    made.manifest.write_text("")
    (tmp_path / "code").write_text("one")

    async def main() -> None:
        async with Processes(environment=dict(os.environ)) as processes:
            planned = replace(plan(made), commit=await commit_of(tmp_path, processes))
            sources = await Sources.of(planned, config(tmp_path), processes)
        (tmp_path / "code").write_text("two")
        assert await sources.change(made) == ""
        made.manifest.write_text("edited")
        assert "manifest is not" in await sources.change(made)

    asyncio.run(main())
