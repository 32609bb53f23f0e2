"""Building: releases of many modules from one commit, each with the hashes of those it needs."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from releasekit.ecosystems.go import discover, edit, gomod, release
from releasekit.ecosystems.go.edit import Sums
from releasekit.ecosystems.shared.artifacts import staged, write_new
from releasekit.errors import BuildFailed, PackageError
from releasekit.graph import reachable
from releasekit.model import Artifact
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.go.discover import Module
    from releasekit.ecosystems.go.gomod import GoMod, Require
    from releasekit.ecosystems.go.release import BuiltModule, Stored
    from releasekit.ecosystems.go.source import Sources
    from releasekit.ecosystems.interface import Built, Into
    from releasekit.model import Package, PackageId, Published

    Lookup = Callable[[Package], Awaitable[Published | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Modules built in one call, dependencies first. `edits` says whether go.mod and go.sum are
    changed to what the release needs; `lookup` finds the hashes of what is published already;
    `into` says where the files of each will be; `stored` are the tags and commits of what earlier
    runs have left there. Builds can write there, so nothing else of it is used: such a module is
    made once more from the commit, and counts if it comes out the same.

    `_left` are the modules whose turn is still to come: one of them needs a module before it only
    in a cycle. The hash of a module covers its go.sum, so one of two that need each other has to do
    without the other's.
    """

    sources: Sources
    modules: Mapping[str, Module]
    packages: Mapping[str, Package]
    edits: bool
    lookup: Lookup
    into: Into
    stored: Mapping[str, Stored]
    _built: dict[str, BuiltModule] = field(default_factory=dict)
    _failed: set[str] = field(default_factory=set)
    _left: set[str] = field(default_factory=set)
    _needs: dict[str, list[str]] = field(default_factory=dict)

    async def build(self, packages: Sequence[Package]) -> dict[PackageId, Built]:
        built: dict[PackageId, Built] = {}
        wanted = {package.id.name: package for package in packages}
        needed = {path for name in wanted for path in self._needed(name)} if self.edits else set()
        self._left.update(wanted, (path for path in needed if self._is_stored(path)))
        # What a module needs itself needs less than it does, or, in a cycle, as much. A run of all
        # modules and one of the rest of them take the same order.
        for path in sorted(self._left, key=lambda each: (len(self._needed(each)), each)):
            self._left.discard(path)
            package = wanted.get(path)
            if package is None:
                await self._rebuild(path)
                continue
            try:
                built[package.id] = await self._build(package)
            except BuildFailed as error:
                self._failed.add(package.id.name)
                built[package.id] = error
        return built | self._lost(packages)

    def _lost(self, packages: Sequence[Package]) -> dict[PackageId, Built]:
        """What was built before a module failed that it needs."""
        if not self.edits:
            return {}
        failed = {
            package.id: self._failed.intersection(self._needed(package.id.name))
            for package in packages
            if package.id.name in self._built
        }
        return {
            package: _needs_failed(package.name, min(names))
            for package, names in failed.items()
            if names
        }

    async def _build(self, package: Package) -> tuple[Artifact, ...]:
        module = self.modules[package.id.name]
        self._refuse_changed(module)
        built, files = await self._made(module)
        artifacts = await asyncio.to_thread(_write, built, files, self.into(package))
        self._built[module.path] = built
        return artifacts

    async def _made(self, module: Module) -> tuple[BuiltModule, dict[str, bytes]]:
        manifests = await asyncio.to_thread(self._committed, module)
        if self.edits:
            manifests = await self._published(module, manifests)
        return await asyncio.to_thread(release.build_module, module, manifests, self.sources)

    def _is_stored(self, path: str) -> bool:
        found = self.stored.get(path)
        return found is not None and found.commit == self.sources.head.commit

    async def _rebuild(self, path: str) -> None:
        """A module that an earlier run has built, and that may be published by now."""
        package = self.packages[path]
        try:
            built, _ = await self._made(self.modules[path])
            published = await self.lookup(package)
        except PackageError:
            return  # whoever needs it says why there are no hashes
        if built.tag == self.stored[path].tag and built.is_what(published, package.version):
            self._built[path] = built

    def _committed(self, module: Module) -> dict[str, bytes]:
        """Its go.mod, and its go.sum if it has one, as HEAD has them."""
        where = self.sources.path_of(module)
        found = {
            name: self.sources.archive.read(str(where / name)) for name in ("go.mod", "go.sum")
        }
        manifests = {name: data for name, data in found.items() if data is not None}
        if "go.mod" not in manifests:
            raise BuildFailed(
                f"go:{module.path}: HEAD has no {where / 'go.mod'}",
                hint="Commit it: a Go module is published from a commit.",
                problem=Problem.NOT_COMMITTED,
            )
        return manifests

    async def _published(self, module: Module, committed: Mapping[str, bytes]) -> dict[str, bytes]:
        """go.mod and go.sum as they will be published."""
        mod, go_sum = _parsed(committed, str(module.manifest))
        versions = self._versions()
        needed = self._needed(module.path)
        known = edit.known_sums(go_sum)
        sums = {path: await self._sums_of(path, module, known) for path in needed}
        found = {path: await self._manifests_of(path) for path in needed}
        others = [_parsed(manifests, path) for path, manifests in found.items() if manifests]
        for path, (version, hashes) in edit.raised_requirements(mod, others, versions).items():
            versions[path] = version
            if hashes is not None:
                sums[path] = hashes
        local = discover.local_replaces(module, self.modules)
        published = {"go.mod": edit.go_mod(mod, versions, needed=needed, local=local).encode()}
        changed = {(path, versions[path]): hashes for path, hashes in sums.items()}
        if any(sums.values()) or (changed and go_sum):
            published["go.sum"] = edit.go_sum(go_sum, changed).encode()
        return {**committed, **published}

    def _versions(self) -> dict[str, str]:
        """Of everything that is published from here, now or already."""
        return {
            module.path: module.version
            for module in self.modules.values()
            if not module.unpublishable
        }

    def _needed(self, path: str) -> list[str]:
        """The in-repo modules that one needs, directly or not, sorted."""

        def required(path: str) -> list[str]:
            return [need.path for need in self.modules[path].mod.requires if self._goes_out(need)]

        if path not in self._needs:
            self._needs[path] = sorted(reachable([path], required) - {path})
        return self._needs[path]

    def _goes_out(self, need: Require) -> bool:
        module = self.modules.get(need.path)
        return module is not None and not module.unpublishable

    async def _manifests_of(self, path: str) -> Mapping[str, bytes] | None:
        """Of a module of this release, as they are published or, in a cycle, will be but for
        what it needs itself.
        """
        if path in self._left:
            return await asyncio.to_thread(self._committed, self.modules[path])
        built = self._built.get(path)
        return built.manifests if built else None

    async def _sums_of(
        self, path: str, module: Module, known: Mapping[tuple[str, str], Sums]
    ) -> Sums | None:
        """Of what this run publishes, or of what is published already: never of a tree that may
        have changed since then. `known` are those in the module's own go.sum. None where that of
        the module, which is still to be built, goes into this one.
        """
        if path in self._built:
            return self._built[path].sums
        if path in self._failed:
            raise _needs_failed(module.path, path)
        if path in self._left:
            return None
        package = self.packages[path]
        if (path, package.version) in known:
            return known[path, package.version]
        try:
            published = await self.lookup(package)
        except PackageError as error:
            raise BuildFailed(
                f"go:{module.path} needs the hashes of {path} {package.version}: {error}",
                problem=Problem.GO_SUM,
            ) from error
        _, _, mod, zipped = release.filenames(package.version)
        files = published.files if published else {}
        if not all(files.get(name, "").startswith("h1:") for name in (mod, zipped)):
            raise BuildFailed(
                f"go:{module.path} needs the hashes of {path} {package.version}, and neither its "
                "go.sum nor a proxy has them",
                hint=f"Run `go get {path}@{package.version}` in {self.sources.path_of(module)}, "
                "and commit go.sum.",
                problem=Problem.GO_SUM,
            )
        return Sums(zip=files[zipped], mod=files[mod])

    def _refuse_changed(self, module: Module) -> None:
        """Raises BuildFailed if a file of the module has changed; modules below it do not count."""
        below = [
            other.directory
            for other in self.modules.values()
            if other is not module and other.directory.is_relative_to(module.directory)
        ]
        for name in self.sources.changed:
            path = self.sources.top / name
            if path.is_relative_to(module.directory) and not any(map(path.is_relative_to, below)):
                raise BuildFailed(
                    f"go:{module.path}: {name} is not committed as it is",
                    hint="Commit or drop the change: a tag names what is committed.",
                    problem=Problem.NOT_COMMITTED,
                )


def _needs_failed(path: str, failed: str) -> BuildFailed:
    return BuildFailed(f"go:{path} needs go:{failed}, which could not be built")


def _parsed(manifests: Mapping[str, bytes], where: str) -> tuple[GoMod, str]:
    """Its go.mod and go.sum."""
    mod = gomod.parse_mod(manifests["go.mod"].decode(), where)
    return mod, manifests.get("go.sum", b"").decode()


def _write(module: BuiltModule, files: Mapping[str, bytes], into: Path) -> tuple[Artifact, ...]:
    with staged(into) as partial:
        for name, data in files.items():
            write_new(partial / name, data)
    return tuple(_artifact(module, into / name, data) for name, data in files.items())


def _artifact(module: BuiltModule, path: Path, data: bytes) -> Artifact:
    """`git` is the id of the tag, which pins all of them; `h1` what go.sum has; `version` all that
    counts of an `.info`.
    """
    digests = {"sha256": hashlib.sha256(data).hexdigest(), "git": module.tag}
    if path.suffix == ".info":
        digests["version"] = release.version_in(data)
    h1 = {".zip": module.sums.zip, ".mod": module.sums.mod}.get(path.suffix)
    if h1 is not None:
        digests["h1"] = h1.removeprefix("h1:")
    return Artifact(path=path, size=len(data), digests=digests)
