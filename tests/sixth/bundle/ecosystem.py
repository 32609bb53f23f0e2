"""Directories with a bundle.json: found, pinned, and packed into archives.

    {"name": "web", "version": "1.0.0", "needs": {"core": "*"}, "prepare": ["make", "assets"]}

What a bundle needs is a version, the beginning of one, or `*`.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import io
import json
import re
import tarfile
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from releasekit.errors import BuildFailed, CommandFailed, PlanError
from releasekit.host import durable
from releasekit.model import Artifact, Dependency, Package, PackageId
from sixth.bundle import Inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from releasekit.config.config import Config
    from releasekit.host.process import Processes
    from releasekit.http.credentials import Secret
    from sixth.bundle import Options

MANIFEST = "bundle.json"


class Bundles:
    """Implements `interface.Ecosystem`. With a `seal`, each archive has one in a file beside it."""

    def __init__(
        self, config: Config, options: Options, *, processes: Processes, seal: Secret | None
    ) -> None:
        self._config = config
        self._options = options
        self._processes = processes
        self._seal = seal

    async def discover(self, root: Path) -> BundleWorkspace:
        packages = await asyncio.to_thread(_packages, root)
        return BundleWorkspace(
            packages=tuple(packages),
            config=self._config,
            options=self._options,
            processes=self._processes,
            seal=self._seal,
        )

    async def aclose(self) -> None:
        """Nothing outlives a build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleWorkspace:
    """Implements `interface.Workspace`."""

    packages: tuple[Package, ...]
    config: Config
    options: Options
    processes: Processes
    seal: Secret | None

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        if self.config.pin == "none":
            return manifest
        read: dict[str, Any] = json.loads(manifest)
        for name, requirement in read.get("needs", {}).items():
            version = versions.get(name, "")
            if version and requirement != "*" and not version.startswith(requirement):
                raise PlanError(f"bundle:{read['name']} needs {name} {requirement}, not {version}")
            if version and (requirement == "*" or self.config.pin == "exact"):
                manifest = _with_need(manifest, name, version)
        return manifest

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        return [[package] for package in packages]

    async def build(
        self, packages: Sequence[Package], into: Callable[[Package], Path]
    ) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        return {package.id: await self._build(package, into(package)) for package in packages}

    async def _build(self, package: Package, into: Path) -> tuple[Artifact, ...] | BuildFailed:
        prepare: list[str] = json.loads(package.manifest.read_bytes()).get("prepare", [])
        log = self.config.state_directory / "logs" / f"build-{package.id.name}.log"
        durable.make_directory(log.parent)
        try:
            if prepare:
                await self.processes.run(prepare, cwd=package.directory, log=log)
        except CommandFailed as error:
            return BuildFailed(f"{package.id}: {error}", log=error.log)
        return await asyncio.to_thread(self._pack, package, into)

    def _pack(self, package: Package, into: Path) -> tuple[Artifact, ...]:
        into.mkdir(parents=True, exist_ok=True)
        data = self._archive(package.directory)
        files = {into / f"{package.id.name}-{package.version}.tar": data}
        if self.seal:
            seal = hmac.digest(self.seal.reveal().encode(), data, "sha256")
            files[into / f"{package.id.name}-{package.version}.tar.seal"] = seal
        for path, content in files.items():
            path.write_bytes(content)
        return tuple(_artifact(path, content) for path, content in files.items())

    def _archive(self, directory: Path) -> bytes:
        """The same bytes for the same files, whenever and whoever packs them."""
        files = {
            path.relative_to(directory).as_posix(): path
            for path in sorted(directory.rglob("*"))
            if path.is_file()
            and not any(fnmatchcase(path.name, pattern) for pattern in self.options.exclude)
        }
        if notes := self.config.own(Inputs).notes:
            files["NOTES"] = Path(notes)
        written = io.BytesIO()
        with tarfile.open(fileobj=written, mode="w") as archive:
            for name, path in files.items():
                data = path.read_bytes()
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        return written.getvalue()


def _packages(root: Path) -> list[Package]:
    manifests = [path.resolve() for path in sorted(root.glob(f"*/{MANIFEST}"))]
    read: dict[Path, dict[str, Any]] = {path: json.loads(path.read_bytes()) for path in manifests}
    names = {document["name"] for document in read.values()}
    return [
        Package(
            id=PackageId("bundle", document["name"]),
            version=document["version"],
            directory=manifest.parent,
            manifest=manifest,
            dependencies=tuple(
                Dependency(on=PackageId("bundle", name), requirement=requirement)
                for name, requirement in document.get("needs", {}).items()
                if name in names
            ),
            unpublishable="it is private" if document.get("private") else "",
        )
        for manifest, document in read.items()
    ]


def _with_need(manifest: str, name: str, version: str) -> str:
    return re.sub(rf'("{re.escape(name)}"\s*:\s*)"[^"]*"', rf'\g<1>"{version}"', manifest)


def _artifact(path: Path, content: bytes) -> Artifact:
    digests = {"sha256": hashlib.sha256(content).hexdigest()}
    return Artifact(path=path, size=len(content), digests=digests)
