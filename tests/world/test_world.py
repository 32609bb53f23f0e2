"""Repositories of the world, as skeletons: what their own tools say is planned, is built and
published, and can be installed.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

import pytest

from integration.tools import require_tool
from releasekit.__main__ import main
from releasekit.graph import reachable
from world import facts, skeleton, user

if TYPE_CHECKING:
    from pathlib import Path

    from world.facts import World

WORLDS: Final = facts.all_worlds()
TOOLS: Final = {"pypi": "uv", "npm": "npm", "cargo": "cargo", "go": "go", "maven": "mvn"}
# How many packages of one workspace are built here: what takes a few seconds.
MOST: Final = {"pypi": 15, "npm": 60, "cargo": 20, "go": 200, "maven": 5}
SMALL: Final = [world for world in WORLDS if len(world.packages) <= MOST[world.ecosystem]]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("RELEASEKIT_", "GITHUB_", "ACTIONS_", "RUNNER_")):
            monkeypatch.delenv(name)


@pytest.fixture
def root(world: World, tmp_path: Path) -> Path:
    """The workspace."""
    require_tool(TOOLS[world.ecosystem])
    directory = tmp_path / "repository"
    directory.mkdir()
    return skeleton.write(directory, world)


def program(command: str, root: Path, world: World, registry: Path, *more: str | Path) -> int:
    where = ["--ecosystem", world.ecosystem, "--registry", f"dir:{registry}"]
    return main([command, str(root), *where, *map(str, more)])


def of(world: World) -> str:
    return world.name


@pytest.mark.parametrize("world", WORLDS, ids=of)
def test_what_is_planned_is_what_the_repository_s_own_tool_says(
    world: World, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R1: every package, every version, every edge, and nothing else."""
    code = program("plan", root, world, tmp_path / "registry", "--format", "json")
    said = capsys.readouterr()
    assert code == 0, said.err
    found: dict[str, dict[str, Any]] = {
        each["name"]: each for each in json.loads(said.out)["packages"]
    }
    assert {name: each["version"] for name, each in found.items()} == world.packages
    edges = {
        name: {need["on"].partition(":")[2] for need in each["dependencies"]}
        for name, each in found.items()
    }
    missed = {name: world.required[name] - on for name, on in edges.items()}
    assert not any(missed.values()), [each for each in missed.items() if each[1]]
    made_up = {name: on - world.allowed[name] for name, on in edges.items()}
    assert not any(made_up.values()), [each for each in made_up.items() if each[1]]


@pytest.mark.parametrize("world", SMALL, ids=of)
def test_what_is_published_can_be_installed(
    world: World, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R1, R2: with all that it needs of the same release."""
    results, registry = tmp_path / "results.json", tmp_path / "registry"
    code = program("publish", root, world, registry, "--results-file", results)
    said = capsys.readouterr()
    assert code == 0, said.out + said.err
    packages = json.loads(results.read_text())["packages"]
    outcomes = {each["name"]: each["outcome"] for each in packages}
    assert outcomes == dict.fromkeys(world.packages, "published")
    roots = wanted(world)
    versions = {name: world.packages[name] for name in roots}
    where, home = registry / world.ecosystem, tmp_path / "user"
    came = user.installed(world.ecosystem, where, versions, home)
    assert came is None or came >= set().union(*roots.values())


def wanted(world: World) -> dict[str, set[str]]:
    """The package that brings along most of the others, with all of these. Cargo leaves out what
    is optional or for another system, so that everything is asked of it; a Go module names all
    that it needs, and leaves out nothing for a cycle.
    """
    if world.ecosystem == "go":
        needs = {name: {name, *on} for name, on in world.allowed.items()}
    else:
        needs = {name: {name, *reachable([name], world.hard.__getitem__)} for name in world.hard}
    if world.ecosystem == "cargo":
        return needs
    most = min(needs, key=lambda name: (-len(needs[name]), name))
    return {most: needs[most]}
