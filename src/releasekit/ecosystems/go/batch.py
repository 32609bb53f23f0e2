"""Building: releases of many modules from one commit, each with the hashes of those it needs."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from releasekit.ecosystems.go import discover, edit, gomod, release
from releasekit.ecosystems.go.edit import Sums
from releasekit.ecosystems.go.release import BuiltModule
from releasekit.ecosystems.go.source import path_in_repository
from releasekit.ecosystems.shared.artifacts import staged
from releasekit.errors import BuildFailed, PackageError
from releasekit.graph import reachable
from releasekit.model import Artifact

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from releasekit.ecosystems.go.discover import Module
    from releasekit.ecosystems.go.gomod import GoMod
    from releasekit.ecosystems.go.release import ModuleFiles
    from releasekit.ecosystems.go.source import Archive, Trees
    from releasekit.model import Package, PackageId, Published

    Built = dict[PackageId, tuple[Artifact, ...] | BuildFailed]
    Lookup = Callable[[Package], Awaitable[Published | None]]


@dataclass(frozen=True, slots=True)
class Sources:
    """HEAD, and the Go files of the working tree that differ from it."""

    trees: Trees
    archive: Archive
    changed: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Modules built in one call, dependencies first. `edits` says whether go.mod and go.sum become
    what the release needs; `lookup` tells the hashes of what is published already, `into` where
    the files of each are, or will be.
    """

    sources: Sources
    modules: Mapping[str, Module]
    packages: Mapping[str, Package]
    edits: bool
    lookup: Lookup
    into: Callable[[Package], Path]
    _built: dict[str, BuiltModule] = field(default_factory=dict)

    async def build(self, packages: Sequence[Package]) -> Built:
        built: Built = {}
        batch = {package.id.name for package in packages}
        for package in packages:
            name = package.id.name
            try:
                files = await self._release(self.modules[name], batch)
                built[package.id] = await asyncio.to_thread(_write, files, self.into(package))
            except BuildFailed as error:
                built[package.id] = error
            else:
                self._built[name] = BuiltModule.of(files)
        return built

    async def _release(self, module: Module, batch: set[str]) -> ModuleFiles:
        top = self.sources.trees.head.top
        where = path_in_repository(module.directory, top)
        self._refuse_changed(module, where)
        self._remember_stored(module, batch)
        sums = {
            path: await self._sums(path, module, where, batch) for path in self._closure(module)
        }
        versions = self._versions()
        needed = [self._manifests(path) for path in sums if path in self._built]
        for path, (version, hashes) in edit.raised(module.mod, needed, versions).items():
            versions[path] = version
            if hashes is not None:
                sums[path] = hashes
        local = discover.local_replaces(module, self.modules)
        edits = release.Edits(
            wanted=self.edits,
            versions=versions,
            local=frozenset((replaced.path, replaced.target) for replaced in local),
        )
        made = release.manifests(module, self.sources.archive, where, sums=sums, exact=edits)
        return await asyncio.to_thread(
            release.module_files, module, made, self.sources.archive, self.sources.trees, where
        )

    def _manifests(self, path: str) -> tuple[GoMod, str]:
        """go.mod and go.sum of a module as this run publishes them."""
        made = self._built[path].manifests
        return gomod.parse_mod(made.mod.decode(), path), (made.sum or b"").decode()

    def _remember_stored(self, module: Module, batch: set[str]) -> None:
        """What a run that was cut off built of this very commit is uploaded as it is, and counts
        as built here.
        """
        for path in set(self._closure(module)) - batch - self._built.keys():
            package = self.packages[path]
            stored = release.stored(self.into(package), package.version)
            if stored is not None and stored.needs == self.sources.trees.head.commit:
                self._built[path] = stored

    def _versions(self) -> dict[str, str]:
        """Of everything that is published from here, now or already."""
        return {
            module.path: module.version
            for module in self.modules.values()
            if not module.unpublishable
        }

    def _closure(self, module: Module) -> list[str]:
        """The in-repo modules it needs, directly or not, sorted."""
        if not self.edits:
            return []
        versions = self._versions()

        def required(path: str) -> list[str]:
            return [need.path for need in self.modules[path].mod.requires if need.path in versions]

        return sorted(reachable([module.path], required) - {module.path})

    async def _sums(self, path: str, module: Module, where: PurePosixPath, batch: set[str]) -> Sums:
        """Of what this run publishes, or of what is published already: never of a tree that may
        have changed since.
        """
        if path in batch and path in self._built:
            return self._built[path].sums
        if path in batch:
            raise BuildFailed(f"go:{module.path} needs go:{path}, which could not be built")
        package = self.packages[path]
        known = edit.known_sums((self.sources.archive.read(str(where / "go.sum")) or b"").decode())
        if (path, package.version) in known:
            return known[path, package.version]
        try:
            published = await self.lookup(package)
        except PackageError as error:
            raise BuildFailed(
                f"go:{module.path} needs the hashes of {path} {package.version}: {error}"
            ) from error
        if path in self._built and self._built[path].is_what(published):
            return self._built[path].sums
        _, _, mod, zipped = release.filenames(package.version)
        files = published.files if published else {}
        if not all(files.get(name, "").startswith("h1:") for name in (mod, zipped)):
            raise BuildFailed(
                f"go:{module.path} needs the hashes of {path} {package.version}, and neither its "
                "go.sum nor a proxy has them",
                hint=f"Run `go get {path}@{package.version}` in {where}, and commit go.sum.",
            )
        return Sums(zip=files[zipped], mod=files[mod])

    def _refuse_changed(self, module: Module, where: PurePosixPath) -> None:
        prefix = "" if where == PurePosixPath() else f"{where}/"
        others = [
            other.directory.relative_to(self.sources.trees.head.top).as_posix() + "/"
            for other in self.modules.values()
            if other.directory != module.directory
            and other.directory.is_relative_to(module.directory)
        ]
        for name in self.sources.changed:
            if name.startswith(prefix) and not name.startswith(tuple(others)):
                raise BuildFailed(
                    f"go:{module.path}: {name} is not committed as it is",
                    hint="Commit or drop the change: a tag names what is committed.",
                )


def _write(module: ModuleFiles, into: Path) -> tuple[Artifact, ...]:
    with staged(into) as partial:
        for name, data in module.files.items():
            (partial / name).write_bytes(data)
    return tuple(_artifact(module, into / name, data) for name, data in module.files.items())


def _artifact(module: ModuleFiles, path: Path, data: bytes) -> Artifact:
    """`git` is the id of the tag, which pins all of them; `h1` what go.sum has."""
    digests = {"sha256": hashlib.sha256(data).hexdigest(), "git": module.bundle.tag}
    h1 = {".zip": module.sums.zip, ".mod": module.sums.mod}.get(path.suffix)
    if h1 is not None:
        digests["h1"] = h1.removeprefix("h1:")
    return Artifact(path=path, size=len(data), digests=digests)
