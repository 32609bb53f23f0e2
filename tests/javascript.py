"""Small workspaces, projects and tarballs of npm packages."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fakes
from releasekit.ecosystems.npm import NpmOptions
from releasekit.ecosystems.npm.target import Npm, NpmTarget
from releasekit.host.sandbox import UNCONFINED
from releasekit.model import Artifact, Package, PackageId

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Passing:
    """Stands in where no process is started."""

    sandbox = UNCONFINED

    def passing(self, names: Sequence[str]) -> dict[str, str]:
        return {}


def write(root: Path, files: Mapping[str, object]) -> Path:
    """Objects become JSON."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return root.resolve()


def ecosystem(root: Path, table: Mapping[str, object] | None = None, **changes: object) -> Npm:
    config = fakes.config(root, **changes)
    return Npm(config, NpmOptions.from_table(table or {}), fakes.services(config, Passing()))


def target(root: Path) -> NpmTarget:
    npm = ecosystem(root)
    workspace = asyncio.run(npm.discover(root))
    return NpmTarget(workspace, fakes.FakeRegistry(), config=npm.config, options=npm.options)


def discovered(root: Path, **changes: object) -> dict[str, Package]:
    workspace = asyncio.run(ecosystem(root, None, **changes).discover(root))
    return {package.id.name: package for package in workspace.packages}


def package(name: str = "@acme/core", version: str = "1.0.0") -> Package:
    directory = Path("/workspace") / name
    manifest = directory / "package.json"
    return Package(
        id=PackageId("npm", name), version=version, directory=directory, manifest=manifest
    )


def tarball(
    directory: Path, package: Package, files: Mapping[str, str] | None = None, **manifest: Any
) -> Artifact:
    stem = package.id.name.removeprefix("@").replace("/", "-")
    path = directory / f"{stem}-{package.version}.tgz"
    document = {"name": package.id.name, "version": package.version, **manifest}
    contents = {"package.json": json.dumps(document), **(files or {})}
    directory.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, text in contents.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    data = path.read_bytes()
    digests = {name: hashlib.new(name, data).hexdigest() for name in ("sha256", "sha512", "sha1")}
    return Artifact(path=path, size=len(data), digests=digests)
