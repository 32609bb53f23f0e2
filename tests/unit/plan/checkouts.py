"""Repositories with links and submodules, and the packages in them."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from fakes import FakeRegistry, FakeTarget, FakeWorkspace, package
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.plan.holdings import read_tree
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.model import Package
    from releasekit.plan.holdings import Tree

FETCHING = ("-c", "protocol.file.allow=always")


def make_repository(root: Path, files: Mapping[str, str]) -> Path:
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    return commit(root, files)


def commit(root: Path, files: Mapping[str, str], links: Mapping[str, str] | None = None) -> Path:
    for name, text in {**files, **(links or {})}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in files:
            path.write_text(text)
        else:
            path.symlink_to(text)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Change")
    return root


def add_submodule(root: Path, source: Path, place: str) -> None:
    git(root, *FETCHING, "submodule", "--quiet", "add", str(source), place)
    git(root, "commit", "--quiet", "--message", "Add a submodule")


def clone(source: Path, *options: str) -> Path:
    place = source.parent / f"{source.name}-clone{len(options)}"
    git(source.parent, *FETCHING, "clone", "--quiet", *options, str(source), str(place))
    return place


def read(root: Path) -> Tree:
    async def ask() -> Tree:
        async with Processes(environment=dict(os.environ)) as processes:
            return await read_tree(root, processes)

    return asyncio.run(ask())


def at(root: Path, place: str) -> Package:
    directory = root / place
    return replace(package(place), directory=directory, manifest=directory / "manifest")


def make_target(root: Path, *places: str, **given: object) -> FakeTarget:
    workspace = FakeWorkspace([at(root, place) for place in places])
    return FakeTarget(workspace, FakeRegistry(), **given)
