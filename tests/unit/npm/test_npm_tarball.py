from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest

import javascript
from javascript import ecosystem, package, tarball, write
from releasekit.ecosystems.npm.tarball import PrebuiltTarballs
from releasekit.errors import BuildFailed, ConfigError, PackageError
from releasekit.fields import replace
from releasekit.model import DependencyKind

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.interface import Contained

CORE = package()


@pytest.fixture
def files(tmp_path: Path) -> PrebuiltTarballs:
    members = {
        f"{name}/package.json": {"name": f"@acme/{name}", "version": "1.0.0"}
        for name in ("core", "native")
    }
    root = write(tmp_path / "w", {"package.json": {"workspaces": ["*"]}, **members})
    return PrebuiltTarballs(asyncio.run(ecosystem(root).discover(root)).found.by_name)


def contained(files: PrebuiltTarballs, path: Path) -> Contained:
    with path.open("rb") as file:
        return files.contained(file, path)


def test_a_tarball_is_known_by_its_manifest(files: PrebuiltTarballs, tmp_path: Path) -> None:
    manifest = {
        "optionalDependencies": {"@acme/native": "1.0.0"},
        "peerDependencies": {"alias": "npm:@acme/native@^1"},
        "dependencies": {"left-pad": "^1", "@acme/native": "latest"},
        "devDependencies": {"@acme/native": "workspace:*"},
    }
    found = contained(files, tarball(tmp_path / "dist", CORE, **manifest).path)
    assert (found.name, found.version) == ("@acme/core", "1.0.0")
    assert [(need.on.name, need.kind, need.requirement) for need in found.dependencies] == [
        ("@acme/native", DependencyKind.OPTIONAL, "1.0.0"),
        ("@acme/native", DependencyKind.PEER, "^1"),
    ]
    assert all(need.soft for need in found.dependencies)


def test_a_range_admits_what_npm_would_take(files: PrebuiltTarballs) -> None:
    """No prerelease fits `*`, which would be pinned in what is built here."""
    assert files.admits("*", "1.0.0")
    assert not files.admits("*", "1.0.0-beta.1")
    assert files.admits("^1.0.0", "1.2.0")
    assert not files.admits("^2", "1.0.0")


@pytest.mark.parametrize("spec", ["workspace:^", "catalog:", "file:../native"])
def test_what_only_a_workspace_understands_is_refused(
    files: PrebuiltTarballs, tmp_path: Path, spec: str
) -> None:
    """`npm pack` leaves it as it is."""
    path = tarball(tmp_path / "dist", CORE, dependencies={"@acme/native": spec}).path
    with pytest.raises(PackageError, match="which users cannot install") as caught:
        contained(files, path)
    assert str(caught.value).startswith(f"{path}: dependencies.@acme/native is '{spec}'")
    assert "pnpm pack" in caught.value.hint


def test_a_tarball_is_named_as_npm_does(files: PrebuiltTarballs, tmp_path: Path) -> None:
    path = tmp_path / "package.tgz"
    shutil.copy(tarball(tmp_path / "dist", CORE).path, path)
    with pytest.raises(PackageError, match=r"published as acme-core-1\.0\.0\.tgz"):
        contained(files, path)


def test_a_damaged_tarball_is_one_line(files: PrebuiltTarballs, tmp_path: Path) -> None:
    """With its path, whether the archive or the manifest in it is wrong."""
    path = tarball(tmp_path / "dist", CORE).path
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(PackageError) as caught:
        contained(files, path)
    assert str(caught.value).startswith(f"{path}: it is not a tarball")
    with pytest.raises(ConfigError, match="is 1"):
        contained(files, tarball(tmp_path / "dist", CORE, dependencies={"a": 1}).path)


def test_a_tarball_is_complete_and_runs_no_script(files: PrebuiltTarballs, tmp_path: Path) -> None:
    """npm runs none for a tarball either."""
    scripts = {"postpublish": "x"}
    root = write(tmp_path / "s", {"package.json": {"name": "@acme/core", "version": "1.0.0"}})
    write(root, {"package.json": {"name": "@acme/core", "version": "1.0.0", "scripts": scripts}})
    workspace = asyncio.run(ecosystem(root).discover(root))
    artifact = javascript.tarball(tmp_path / "dist", CORE)
    (core,) = workspace.packages
    brought = replace(core, prebuilt=(artifact,))
    assert (workspace.due(core), workspace.due(brought)) == ("its postpublish script", "")
    into = tmp_path / "into"
    (built,) = asyncio.run(files.complete([brought], lambda _: into)).values()
    assert not isinstance(built, BuildFailed)
    assert [path.name for path in into.iterdir()] == [artifact.filename]
    assert built[0].digests == artifact.digests
