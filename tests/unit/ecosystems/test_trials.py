"""What the clients of users are asked, where it depends on the registry and on the workspace."""

from __future__ import annotations

import asyncio
import tomllib
from typing import TYPE_CHECKING

import pytest

import fakes
from javascript import target, write
from releasekit.ecosystems.cargo import CargoOptions
from releasekit.ecosystems.cargo.destination import Destination
from releasekit.ecosystems.cargo.target import Cargo, CargoTarget, CargoWorkspace
from releasekit.ecosystems.maven import MavenOptions
from releasekit.ecosystems.maven.target import Maven, MavenTarget
from unit.maven.poms import gav
from unit.maven.poms import write as write_pom

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.interface import Target, Trial
    from releasekit.model import Package

INDEX = "https://crates.example/index/"
BROKEN = '", path = "/etc/'
CARGO = ("cargo", "generate-lockfile", "--quiet")


@pytest.mark.parametrize(
    ("destination", "wanted", "config"),
    [
        (
            Destination(name="crates-io", index="https://index.crates.io/"),
            {"version": "=1.0"},
            (),
        ),
        (
            Destination(index=INDEX),
            {"version": "=1.0"},
            (
                *("--config", 'source.crates-io.replace-with = "releasekit"'),
                *("--config", f'source.releasekit.registry = "sparse+{INDEX}"'),
            ),
        ),
        (
            Destination(name="corp", index=INDEX, stands_for=INDEX),
            {"version": "=1.0", "registry-index": f"sparse+{INDEX}"},
            (),
        ),
        (
            Destination(name="corp", index=f"{INDEX}{BROKEN}", stands_for=f"{INDEX}{BROKEN}"),
            {"version": "=1.0", "registry-index": f"sparse+{INDEX}{BROKEN}"},
            (),
        ),
    ],
    ids=["crates.io", "in its place", "another", "one that a repository names"],
)
def test_cargo_takes_the_crate_from_the_registry_in_use(
    destination: Destination, wanted: dict[str, str], config: tuple[str, ...], tmp_path: Path
) -> None:
    services = fakes.services(fakes.config(tmp_path), None)
    cargo = Cargo("auto", CargoOptions(), services, destination, {})
    workspace = CargoWorkspace(packages=(), crates={}, root=tmp_path, cargo=cargo)
    found = CargoTarget(workspace, fakes.FakeRegistry())
    trial = try_out(found, fakes.package("café"), tmp_path)
    manifest = tomllib.loads(trial.files["Cargo.toml"])
    assert manifest["dependencies"] == {"café": wanted}
    assert manifest["workspace"] == {}
    assert tuple(trial.argv) == (*CARGO, *config)


def try_out(target: Target, package: Package, shared: Path) -> Trial:
    assert target.clients.try_out is not None
    return target.clients.try_out(package, shared)


def try_npm(root: Path, *names: str) -> Trial:
    files: dict[str, object] = {
        f"{number}/package.json": {"name": name, "version": "1.0.0"}
        for number, name in enumerate(names)
    }
    root = write(root, {"package.json": {"private": True, "workspaces": ["*"]}, **files})
    found = target(root)
    (package,) = [each for each in found.workspace.packages if each.id.name == names[0]]
    return try_out(found, package, root)


def test_npm_takes_scopes_and_names_without_one_from_the_registry_in_use(tmp_path: Path) -> None:
    scoped = try_npm(tmp_path / "scoped", "@acme/a", "@corp/b")
    lines = [f"{scope}:registry={fakes.URL}" for scope in ("@acme", "@corp")]
    assert scoped.files[".npmrc"].splitlines() == lines
    assert "--registry" not in scoped.argv
    mixed = try_npm(tmp_path / "mixed", "@acme/a", "plain")
    assert list(mixed.argv)[-2:] == ["--registry", fakes.URL]
    assert "--ignore-scripts" in mixed.argv


@pytest.mark.parametrize("command", ["mvn", "./mvnw"])
def test_mvn_or_the_wrapper_reads_central_where_no_repository_is_in_use(
    command: str, tmp_path: Path
) -> None:
    write_pom(tmp_path / "pom.xml", f"{gav('a')}<packaging>maven-plugin</packaging>")
    maven = Maven(
        fakes.config(tmp_path),
        MavenOptions(command=command),
        fakes.services(fakes.config(tmp_path), None),
    )
    found = MavenTarget(asyncio.run(maven.discover(tmp_path)), fakes.FakeRegistry())
    trial = try_out(found, found.workspace.packages[0], tmp_path / "shared")
    assert trial.argv[0] == (command if command == "mvn" else str(tmp_path / "mvnw"))
    assert f"-Dmaven.repo.local={tmp_path / 'shared'}" in trial.argv
    assert "-Dartifact=g:a:1.0:jar" in trial.argv
    assert not [each for each in trial.argv if "remoteRepositories" in each]
    assert trial.alone
