"""Repositories of the world, as skeletons: what their own tools say is planned, is built and
published, and can be installed.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import pytest
import tomlkit

from effort import SEARCHING
from integration.tools import require_tool
from releasekit.__main__ import main
from releasekit.ecosystems.go.paths import tag_prefix
from releasekit.graph import reachable
from world import facts, pypi, skeleton, user

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from world.facts import World

WORLDS: Final = facts.all_worlds()
TOOLS: Final = {"pypi": "uv", "npm": "npm", "cargo": "cargo", "go": "go", "maven": "mvn"}
# How many packages of one workspace are built here: what takes a few seconds.
MOST: Final = {"pypi": 15, "npm": 60, "cargo": 20, "go": 200, "maven": 5}
SMALL: Final = [world for world in WORLDS if len(world.packages) <= MOST[world.ecosystem]]
# One of each ecosystem, of those that take the least.
SAMPLE: Final = {"pypi-hatch", "npm-vite", "cargo-napi-rs", "go-kratos", "maven-mapstruct"}
PUBLISHED: Final = [world for world in SMALL if SEARCHING or world.name in SAMPLE]
# Those of ecosystems whose tools read manifests alone, and within a second.
READABLE: Final = [
    world for world in (WORLDS if SEARCHING else PUBLISHED) if world.ecosystem in {"cargo", "go"}
]


# All that need no build to tell versions, which takes `init` two; the backend of hatch is a sibling
# that only its releasekit.toml names.
INITIAL: Final = [
    world
    for world in WORLDS
    if world.name != "pypi-hatch"
    and (
        SEARCHING
        or not any(
            "version" in each.get("project", {}).get("dynamic", ())
            for each in world.shape.get("manifests", {}).values()
        )
    )
]


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
    if world.ecosystem == "pypi":
        where += ["--uv-path", str(require_tool("uv"))]
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
    assert differences(json.loads(said.out)["packages"], world) == []


@pytest.mark.parametrize("world", INITIAL, ids=of)
def test_what_init_writes_is_planned_or_init_says_why_not(
    world: World,
    root: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R68: without a releasekit.toml of its own, in a repository with the tags of Go modules."""
    (root / "releasekit.toml").unlink(missing_ok=True)
    if world.ecosystem == "pypi":
        monkeypatch.setenv("RELEASEKIT_UV_PATH", str(require_tool("uv")))
    if world.ecosystem == "go":
        paths = {kept["at"]: path for path, kept in world.shape["modules"].items()}
        head = next((root / ".git/refs/heads").iterdir()).read_text()
        for where, version in world.options["versions"].items():
            # As `git tag` has it, which takes a process each.
            name = f"{tag_prefix(paths[where], PurePosixPath(where))}{version}"
            (root / ".git/refs/tags" / name).parent.mkdir(parents=True, exist_ok=True)
            (root / ".git/refs/tags" / name).write_text(head)
    where = [str(root), "--registry", f"dir:{tmp_path / 'registry'}"]
    assert main(["init", *where]) == 0
    said = capsys.readouterr().out
    code = main(["plan", *where, "--format", "json"])
    planned = capsys.readouterr()
    assert ("`releasekit plan` refuses it: " in said) is (code != 0), said + planned.err
    assert (tmp_path / "repository/.github/workflows/release.yml").is_file()
    if code == 0:
        made = json.loads(planned.out)["packages"]
        assert made
        counted = f"`releasekit plan` with that: {len(made)} package"
        assert counted in said


def test_workspaces_below_a_root_without_a_manifest_are_one_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R1: nobody has to say where they are, and nothing of them is missed."""
    root = tmp_path / "repository"
    worlds = [world for world in WORLDS if world.name in {"npm-core", "pypi-genkit"}]
    for world in worlds:
        require_tool(TOOLS[world.ecosystem])
        directory = root / world.ecosystem
        directory.mkdir(parents=True)
        skeleton.write(directory, world)
    code = main(["plan", str(root), "--registry", f"dir:{tmp_path / 'registry'}", "--format=json"])
    said = capsys.readouterr()
    assert code == 0, said.err
    packages = json.loads(said.out)["packages"]
    for world in worlds:
        own = [each for each in packages if each["ecosystem"] == world.ecosystem]
        assert differences(own, world) == []


def test_a_wheel_beside_a_crate_is_named_and_planned_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R56: a repository of maturin, whose crate is a member of the workspace of cargo."""
    root = tmp_path / "repository"
    crates, wheel = (
        world for name in ("cargo", "pypi") for world in WORLDS if world.name == f"{name}-delta-rs"
    )
    require_tool("cargo")
    root.mkdir()
    skeleton.write(root, crates)
    shutil.copytree(skeleton.write(tmp_path / "wheel", wheel), root / "python", dirs_exist_ok=True)
    argv = ["plan", str(root), "--registry", f"dir:{tmp_path / 'registry'}", "--format=json"]
    assert main(argv) == 0
    made = json.loads(capsys.readouterr().out)
    assert differences(made["packages"], crates) == []
    (line,) = [note for note in made["notes"] if "pypi packages in no workspace here" in note]
    assert '`[pypi] packages = ["python"]`' in line
    (root / "releasekit.toml").write_text('[pypi]\npackages = ["python"]\n')
    assert main(argv) == 0
    packages = json.loads(capsys.readouterr().out)["packages"]
    for world in (crates, wheel):
        own = [each for each in packages if each["ecosystem"] == world.ecosystem]
        assert differences(own, world) == []


@pytest.mark.parametrize("name", ["napi-rs", *(["node-rs"] if SEARCHING else [])])
def test_npm_packages_among_crates_are_one_release_with_them(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R1, R56: of one root, whose members lie among one another."""
    root, registry = tmp_path / "repository", tmp_path / "registry"
    crates, packages = (
        world for prefix in ("cargo", "npm") for world in WORLDS if world.name == f"{prefix}-{name}"
    )
    root.mkdir()
    for world in (crates, packages):
        require_tool(TOOLS[world.ecosystem])
        shutil.copytree(skeleton.write(tmp_path / world.ecosystem, world), root, dirs_exist_ok=True)
    assert main(["plan", str(root), "--registry", f"dir:{registry}", "--format=json"]) == 0
    planned = json.loads(capsys.readouterr().out)["packages"]
    for world in (crates, packages):
        own = [each for each in planned if each["ecosystem"] == world.ecosystem]
        assert differences(own, world) == []


def differences(packages: Sequence[Mapping[str, Any]], world: World) -> list[str]:
    """What a plan of ours has that the tool, theirs, does not say, or the other way round."""
    made = {each["name"]: each["version"] for each in packages}
    wrong = [f"ours: {name} {at}" for name, at in sorted(made.items() - world.packages.items())]
    wrong += [f"theirs: {name} {at}" for name, at in sorted(world.packages.items() - made.items())]
    for each in packages:
        name = each["name"]
        edges = {need["on"].partition(":")[2] for need in each["dependencies"]}
        missed = world.required.get(name, edges) - edges
        made_up = edges - world.allowed.get(name, edges)
        wrong += [f"theirs: {name} needs {on}" for on in sorted(missed)]
        wrong += [f"ours: {name} needs {on}" for on in sorted(made_up)]
    return wrong


@pytest.mark.parametrize("world", READABLE, ids=of)
def test_a_skeleton_is_what_it_was_made_from(world: World, root: Path) -> None:
    """The tools say of it what they said of the repository."""
    module = skeleton.module_of(world.ecosystem)
    shape, expected = module.distilled(root, {**world.options})
    assert json.loads(json.dumps(shape)) == world.shape
    assert expected.document() == world.expected


@pytest.mark.parametrize("world", PUBLISHED, ids=of)
def test_what_is_published_can_be_installed(
    world: World, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R1, R2: with all that it needs of the same release."""
    if world.ecosystem == "cargo":
        # Cargo would compile next to nothing with the newest that crates.io has by these names.
        path = root / "releasekit.toml"
        document = tomlkit.parse(path.read_text() if path.is_file() else "")
        document.setdefault("cargo", {})["verify"] = False
        path.write_text(tomlkit.dumps(document))
    results, registry = tmp_path / "results.json", tmp_path / "registry"
    code = program("publish", root, world, registry, "--results-file", results)
    said = capsys.readouterr()
    assert code == 0, said.out + said.err
    packages = json.loads(results.read_text())["packages"]
    outcomes = {each["name"]: each["outcome"] for each in packages}
    assert outcomes == dict.fromkeys(world.packages, "published")
    if world.ecosystem == "pypi":
        assert pypi.forbidden(registry, world.shape) == []
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
        needs = {name: {name, *on} for name, on in world.soft.items()}
    else:
        needs = {name: {name, *reachable([name], world.hard.__getitem__)} for name in world.hard}
    if world.ecosystem == "cargo":
        return needs
    most = min(needs, key=lambda name: (-len(needs[name]), name))
    return {most: needs[most]}
