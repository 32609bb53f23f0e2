"""A workspace of the shape that a file of facts describes, with next to nothing in its packages."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import tomlkit

from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from world.facts import World


def write(root: Path, world: World) -> Path:
    """In `root`, an empty directory: a git repository with one commit, or with one for each list of
    tags. Returns where in it the workspace is.
    """
    module = module_of(world.ecosystem)
    workspace = root / world.at
    workspace.mkdir(parents=True, exist_ok=True)
    module.write(workspace, world.shape, world.options)
    if world.config:
        (workspace / "releasekit.toml").write_text(tomlkit.dumps(world.config))
    git(root, "init", "--quiet")
    git(root, "add", "--all", "--force")
    git(root, "commit", "--quiet", "--message", "Start")
    for at, tags in enumerate(world.shape.get("tags", ())):
        if at:
            git(root, "commit", "--quiet", "--allow-empty", "--message", "Go on")
        for tag in tags:
            git(root, "tag", tag)
    return workspace


def module_of(ecosystem: str) -> ModuleType:
    """What distils and writes workspaces of an ecosystem."""
    return importlib.import_module(f"world.{ecosystem}")
