"""Cargo workspaces: what `cargo metadata` says of them, and manifests of the same shape."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import tomlkit

from world.facts import Edges, Expected

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

MANIFEST: Final = "Cargo.toml"
_TABLES: Final = (
    *("dependencies", "dev-dependencies", "build-dependencies"),
    *("dev_dependencies", "build_dependencies"),
)
_PACKAGE: Final = ("name", "version", "publish", "workspace", "edition")
_DEPENDENCY: Final = ("path", "version", "package", "optional", "workspace", "registry")
_WORKSPACE: Final = ("members", "exclude", "default-members", "resolver")


def tool(_root: Path) -> list[str]:
    return ["cargo", "--version"]


def distilled(root: Path, config: Mapping[str, Any]) -> tuple[dict[str, Any], Expected]:
    tops = ["."] if (root / MANIFEST).is_file() else []
    tops += config.get("workspaces", [])
    found = [metadata(root / top, "--no-deps", "--offline") for top in tops]
    packages = [package for document in found for package in document["packages"]]
    directories = {Path(package["manifest_path"]).parent for package in packages}
    names = {package["name"] for package in packages}
    manifests = {}
    for directory in sorted({*directories, *(root / top for top in tops)}):
        document = tomllib.loads((directory / MANIFEST).read_text("utf-8-sig"))
        where = Path(os.path.relpath(directory, root)).as_posix()
        manifests[where] = _kept(document, directory, names, directories)
    patched = any("patch" in kept for kept in manifests.values())
    resolved = [metadata(root / top, "--all-features") for top in tops] if patched else found
    return {"manifests": manifests}, expected(packages, resolved, patched=patched)


def metadata(directory: Path, *arguments: str) -> dict[str, Any]:
    argv = ["cargo", "metadata", "--format-version", "1", *arguments]
    done = subprocess.run(argv, cwd=directory, check=True, stdout=subprocess.PIPE)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def expected(
    packages: list[dict[str, Any]], documents: list[dict[str, Any]], *, patched: bool
) -> Expected:
    """Edges are the paths that dependencies lead to, and where something is patched what cargo has
    resolved them to. Development dependencies, and those on a crate of the same name on crates.io,
    order nothing.
    """
    by_directory = {str(Path(each["manifest_path"]).parent): each["name"] for each in packages}
    own = set(by_directory.values())
    hard: Edges = set()
    idle: Edges = set()
    for package in packages:
        for need in package["dependencies"]:
            leads = by_directory.get(need.get("path") or "")
            if leads is not None and need["kind"] != "dev":
                hard.add((package["name"], leads))
            elif need["req"] != "*" and need["name"] in own:
                idle.add((package["name"], need["name"]))
    names = {each["id"]: each["name"] for each in packages}
    for document in documents if patched else ():
        for node in document["resolve"]["nodes"]:
            for need in node["deps"]:
                if node["id"] in names and need["pkg"] in names:
                    kinds = {each["kind"] for each in need["dep_kinds"]}
                    edge = (names[node["id"]], names[need["pkg"]])
                    (hard if kinds - {"dev"} else idle).add(edge)
    return Expected(
        versions={each["name"]: each["version"] for each in packages},
        private=frozenset(each["name"] for each in packages if each["publish"] == []),
        hard=frozenset(hard),
        idle=frozenset(idle),
    )


def _kept(
    document: dict[str, Any], directory: Path, names: Collection[str], directories: set[Path]
) -> dict[str, Any]:
    """Of a manifest what has to do with the packages of the repository."""

    def own(table: Mapping[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, value in table.items():
            entry = value if isinstance(value, dict) else {"version": value}
            leads = (directory / entry["path"]).resolve() if "path" in entry else None
            if leads in directories or (leads is None and entry.get("package", key) in names):
                kept[key] = (
                    {name: entry[name] for name in _DEPENDENCY if name in entry}
                    if isinstance(value, dict)
                    else value
                )
        return kept

    def tables(parent: Mapping[str, Any]) -> dict[str, Any]:
        return {name: kept for name in _TABLES if (kept := own(parent.get(name, {})))}

    kept: dict[str, Any] = {}
    if package := document.get("package"):
        kept["package"] = {name: package[name] for name in _PACKAGE if name in package}
    kept |= tables(document)
    targets = {
        key: table for key, each in document.get("target", {}).items() if (table := tables(each))
    }
    kept |= {"target": targets} if targets else {}
    patches = {
        key: entries for key, each in document.get("patch", {}).items() if (entries := own(each))
    }
    kept |= {"patch": patches} if patches else {}
    if (workspace := document.get("workspace")) is not None:
        top = {name: workspace[name] for name in _WORKSPACE if name in workspace}
        package = workspace.get("package", {})
        shared = {name: package[name] for name in _PACKAGE if name in package}
        top |= {"package": shared} if shared else {}
        needs = own(workspace.get("dependencies", {}))
        kept["workspace"] = top | ({"dependencies": needs} if needs else {})
    return kept


def write(root: Path, shape: Mapping[str, Any], _config: Mapping[str, Any]) -> None:
    for where, kept in shape["manifests"].items():
        document = dict(kept)
        if "package" in kept:
            document["package"] = {
                "edition": "2021",
                "license": "MIT",
                "description": "A skeleton",
                **kept["package"],
            }
            source = root / where / "src" / "lib.rs"
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_text("")
        path = root / where / MANIFEST
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(tomlkit.dumps(document))
    for where in _excluded(root, shape):
        _stranger(root / where)


def _excluded(root: Path, shape: Mapping[str, Any]) -> Iterator[str]:
    """Directories that a workspace leaves out by name."""
    for where, kept in shape["manifests"].items():
        for name in kept.get("workspace", {}).get("exclude", ()):
            if "*" not in name and not (root / where / name).exists():
                yield f"{where}/{name}"


def _stranger(directory: Path) -> None:
    """A crate that is no member."""
    (directory / "src").mkdir(parents=True)
    (directory / "src" / "lib.rs").write_text("")
    package = {"name": "stranger", "version": "1.0.0", "edition": "2021"}
    (directory / MANIFEST).write_text(tomlkit.dumps({"package": package}))
