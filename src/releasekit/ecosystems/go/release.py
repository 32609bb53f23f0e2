"""Modules as they are published: the files, commit and tag of each, with the hashes of those that
it needs, all made from one commit.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from releasekit.ecosystems.go import discover, gomod, module_zip, paths
from releasekit.ecosystems.go.gomod import Sums
from releasekit.ecosystems.shared.artifacts import staged, write_new
from releasekit.errors import BuildFailed, PackageError
from releasekit.git.objects import (
    FILE_MODE,
    MAX_BUNDLE_BYTES,
    TREE_MODE,
    Object,
    TagBundle,
    TreeEntry,
    make_commit,
    make_tag,
    make_tree,
)
from releasekit.graph import reachable
from releasekit.host import durable
from releasekit.model import Artifact
from releasekit.problems import Problem
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.go.discover import Module
    from releasekit.ecosystems.go.gomod import GoMod
    from releasekit.ecosystems.go.source import ModuleSources
    from releasekit.ecosystems.go.verify import Verifier
    from releasekit.ecosystems.interface import Built, Into
    from releasekit.model import Package, PackageId, Published

    Lookup = Callable[[Package], Awaitable[Published | None]]


_MAX_VERSION_CHARS: Final = 1000


class BuiltModule(Struct, frozen=True, kw_only=True):
    """What other modules need to know of a release. `manifests` are go.mod and go.sum, by name;
    `tag` is the id of its tag.
    """

    sums: Sums
    manifests: Mapping[str, bytes]
    tag: str

    def matches(self, published: Published | None, version: str) -> bool:
        """Whether this is what is published; true where nothing is published yet."""
        if published is None or f"git:{self.tag}" in published.files.values():
            return True
        _, _, mod, zipped = (published.files.get(name) for name in filenames(version))
        return (mod, zipped) == (self.sums.mod, self.sums.zip)


def read_stored(directory: Path, version: str) -> tuple[str, str] | None:
    """The id of the tag that an earlier run left in `directory`, and the commit that its bundle
    starts from; None where that is missing or damaged. Blocks.
    """
    try:
        data = durable.read_file(directory / filenames(version)[0], max_bytes=MAX_BUNDLE_BYTES)
        bundle = TagBundle.from_bytes(data)
    except (OSError, ValueError):
        return None
    return bundle.tag, bundle.prerequisite


def filenames(version: str) -> tuple[str, str, str, str]:
    """Bundle, info, go.mod and zip of a version."""
    return f"{version}.bundle", f"{version}.info", f"{version}.mod", f"{version}.zip"


def tag_name(path: str, version: str, directory: PurePosixPath) -> str:
    return f"{paths.tag_prefix(path, directory)}{version}"


def read_version_in(info: bytes) -> str:
    """The version in an `.info`; raises ValueError for anything else.

    The rest is not part of a module: a proxy may add its own time, or none, and the origin.
    https://go.dev/ref/mod#goproxy-protocol
    """
    try:
        version = parse_json(info)["Version"]
    except (LookupError, TypeError) as error:
        raise ValueError("it names no version") from error
    if not isinstance(version, str) or len(version) > _MAX_VERSION_CHARS:
        raise ValueError("it names no version")
    if not version.isprintable():
        raise ValueError("it names no version")
    return version


def build_module(
    module: Module, manifests: Mapping[str, bytes], sources: ModuleSources
) -> tuple[BuiltModule, dict[str, bytes]]:
    """The release with these manifests, and its files by the names that proxies give them. Raises
    BuildFailed.
    """
    where, by = sources.path_of(module), sources.head.by
    contents = _read_contents(module, manifests, sources)
    sums = Sums(zip=module_zip.hash1(contents), mod=module_zip.hash_of_mod(manifests["go.mod"]))
    name = tag_name(module.path, module.version, where)
    objects = _make_release_commit(module, manifests, sources)
    on = objects[-1].id if objects else sources.head.commit
    objects.append(make_tag(name, on, by, f"{module.path} {module.version}"))
    bundle = TagBundle(name, sources.head.commit, tuple(objects))
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(by.time_s))
    # Each proxy adds to it. https://go.dev/ref/mod#goproxy-protocol
    info = {"Version": module.version, "Time": moment}
    files = (
        bundle.to_bytes(),
        json.dumps(info, separators=(",", ":")).encode(),
        manifests["go.mod"],
        module_zip.zip_bytes(contents, time_s=by.time_s),
    )
    built = BuiltModule(sums=sums, manifests=manifests, tag=bundle.tag)
    return built, dict(zip(filenames(module.version), files, strict=True))


def _read_contents(
    module: Module, manifests: Mapping[str, bytes], sources: ModuleSources
) -> dict[str, bytes]:
    """Every file of the module under its full name."""
    where, archive = sources.path_of(module), sources.archive
    files = archive.below(where)
    files |= {name: module_zip.ModuleFile(size=len(data)) for name, data in manifests.items()}
    chosen = module_zip.select_files(files, go=module.mod.go, module=module.path)
    prefix = f"{module.path}@{module.version}/"
    contents = {}
    for name in chosen:
        data = manifests[name] if name in manifests else archive.read(str(where / name))
        contents[prefix + name] = data or b""
    # A module without a licence has that of the repository.
    # https://go.dev/ref/mod#vcs-license
    licence = archive.read("LICENSE")
    if where != PurePosixPath() and "LICENSE" not in files and licence is not None:
        contents[f"{prefix}LICENSE"] = licence
    return contents


def _make_release_commit(
    module: Module, manifests: Mapping[str, bytes], sources: ModuleSources
) -> list[Object]:
    """A commit on top of HEAD with the published go.mod and go.sum, after the objects that it is
    made of; empty where HEAD has the same go.mod and go.sum.
    """
    where, head = sources.path_of(module), sources.head
    listed = sources.trees[where]
    objects: list[Object] = []
    changed: dict[str, TreeEntry] = {}
    for name, data in manifests.items():
        blob = Object("blob", data)
        if name not in listed or listed[name].id != blob.id:
            objects.append(blob)
            changed[name] = TreeEntry(FILE_MODE, blob.id)
    if not changed:
        return []
    objects.append(make_tree({**listed, **changed}))
    for level in where.parents:
        name = where.relative_to(level).parts[0]
        below = TreeEntry(TREE_MODE, objects[-1].id)
        objects.append(make_tree({**sources.trees[level], name: below}))
    message = (
        f"Release {module.path} {module.version}\n\n"
        "Its go.mod requires the versions it is released with; its go.sum has their hashes."
    )
    objects.append(make_commit(objects[-1].id, head.commit, head.by, message))
    return objects


class ModuleBatch(Struct, frozen=True, kw_only=True):
    """Modules built in one call, dependencies first. `edits` says whether go.mod and go.sum change
    to what the release needs; `lookup` finds the hashes of published modules; `into` says where the
    files of each will be; `stored` are the ids of the tags that earlier runs made there of the same
    commit. Builds can write there, so nothing else of it is trusted: such a module is built again
    from the commit, and counts if the result is the same. Without a
    `verifier`, nothing is compiled.

    `_left` are the modules whose turn is still to come; only in a cycle does an earlier module need
    one of them. The hash of a module covers its go.sum, so one of two modules that need each other
    is published without the hash of the other.
    """

    sources: ModuleSources
    modules: Mapping[str, Module]
    packages: Mapping[str, Package]
    edits: bool
    lookup: Lookup
    into: Into
    stored: Mapping[str, str]
    verifier: Verifier | None = None
    _built: dict[str, BuiltModule] = field(default_factory=dict)
    _parsed: dict[str, tuple[GoMod, str]] = field(default_factory=dict)
    _failed: set[str] = field(default_factory=set)
    _left: set[str] = field(default_factory=set)
    _needs: dict[str, list[str]] = field(default_factory=dict)

    async def build(self, packages: Sequence[Package]) -> dict[PackageId, Built]:
        built: dict[PackageId, Built] = {}
        wanted = {package.id.name: package for package in packages}
        needed = (
            {path for name in wanted for path in self._find_needed(name)} if self.edits else set()
        )
        self._left.update(wanted, needed & self.stored.keys())
        # A module needs more than each of its dependencies, or, in a cycle, as much. So a run of
        # all modules and a run of the rest of them take the same order.
        for path in sorted(self._left, key=lambda each: (len(self._find_needed(each)), each)):
            self._left.discard(path)
            package = wanted.get(path)
            if package is None:
                await self._rebuild(path)
                continue
            module = self.modules[path]
            try:
                self._refuse_changed(module)
                made, files = await self._make(module)
                built[package.id] = await asyncio.to_thread(_write, made, files, self.into(package))
                self._built[path] = made
            except BuildFailed as error:
                self._failed.add(path)
                built[package.id] = error
        if self.verifier is not None:
            built |= await self._verify(self.verifier, wanted)
        # In a cycle, a module may be built before one that it needs fails.
        for package in packages if self.edits else ():
            path = package.id.name
            if path in self._built.keys() - self._failed and (failure := self._find_failure(path)):
                built[package.id] = failure
        return built

    async def _make(self, module: Module) -> tuple[BuiltModule, dict[str, bytes]]:
        manifests = await asyncio.to_thread(self._read_committed, module)
        if self.edits:
            manifests = await self._edit(module, manifests)
        made, files = await asyncio.to_thread(build_module, module, manifests, self.sources)
        if self.verifier is not None:
            await asyncio.to_thread(self.verifier.unpack, files[filenames(module.version)[3]])
        return made, files

    async def _verify(
        self, verifier: Verifier, wanted: Mapping[str, Package]
    ) -> dict[PackageId, BuildFailed]:
        """The modules that do not compile, and those that need one of them."""
        broken: dict[PackageId, BuildFailed] = {}
        packages = [wanted[path] for path in self._built if path in wanted]
        places = await asyncio.to_thread(self._prepare, verifier, packages)
        all_build = await verifier.build_all(places)
        for package in packages:
            path = package.id.name
            error = self._find_failure(path)
            if error is None and package.id in places and not all_build:
                error = await verifier.build(package, places[package.id])
            if error is not None:
                self._failed.add(path)
                broken[package.id] = error
        return broken

    def _prepare(self, verifier: Verifier, packages: Sequence[Package]) -> dict[PackageId, Path]:
        """Where each can be built that needs none of those that failed. Blocks; raises BuildFailed
        for a full disk.
        """
        places = {}
        for package in packages:
            path = package.id.name
            if self._find_failure(path):
                continue
            needed = self._find_needed(path)
            beside = [(it, self.packages[it].version) for it in needed if it in self._built]
            mod = self._built[path].manifests["go.mod"].decode()
            if place := verifier.prepare(package, mod, beside):
                places[package.id] = place
        return places

    async def _rebuild(self, path: str) -> None:
        """Makes a module again that an earlier run has built and may have published."""
        package = self.packages[path]
        try:
            built, _ = await self._make(self.modules[path])
            published = await self.lookup(package)
        except PackageError:
            return  # the build of a dependent reports why there are no hashes
        if built.tag == self.stored[path] and built.matches(published, package.version):
            self._built[path] = built

    def _read_committed(self, module: Module) -> dict[str, bytes]:
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
        for name, data in manifests.items():
            try:
                data.decode()
            except UnicodeDecodeError as error:
                line = data.count(b"\n", 0, error.start) + 1
                raise BuildFailed(
                    f"go:{module.path}: {where / name}: line {line} is not UTF-8; save it as UTF-8",
                    problem=Problem.NOT_A_PACKAGE,
                ) from error
        return manifests

    async def _edit(self, module: Module, committed: Mapping[str, bytes]) -> dict[str, bytes]:
        """go.mod and go.sum as they will be published."""
        if failure := self._find_failure(module.path):
            raise failure
        mod, go_sum = _parse_manifests(committed, str(module.manifest))
        versions = {
            module.path: module.version
            for module in self.modules.values()
            if not module.unpublishable
        }
        needed = self._find_needed(module.path)
        known = gomod.read_sums(go_sum)
        sums = {path: await self._find_sums(path, module, known) for path in needed}
        found = [await self._find_parsed(path) for path in needed]
        others = [each for each in found if each is not None]
        raised = gomod.find_raised_requirements(mod, others, versions)
        for path, (version, hashes) in raised.items():
            versions[path] = version
            if hashes is not None:
                sums[path] = hashes
        local = discover.find_local_replaces(module, self.modules)
        published = {"go.mod": gomod.edit_mod(mod, versions, needed=needed, local=local).encode()}
        changed = {(path, versions[path]): hashes for path, hashes in sums.items()}
        if any(sums.values()) or (changed and go_sum):
            go_sum = gomod.edit_sum(go_sum, changed)
        # What they need, this one needs to be built.
        texts = [each for _, each in others]
        go_sum = gomod.add_sums(go_sum, texts, mod, versions, ours=self.modules)
        if go_sum or "go.sum" in committed:
            published["go.sum"] = go_sum.encode()
        return {**committed, **published}

    def _find_needed(self, path: str) -> list[str]:
        """The in-repo modules that one needs, directly or not, sorted."""

        def required(path: str) -> list[str]:
            others = [self.modules.get(need.path) for need in self.modules[path].mod.requires]
            return [each.path for each in others if each is not None and not each.unpublishable]

        if path not in self._needs:
            self._needs[path] = sorted(reachable([path], required) - {path})
        return self._needs[path]

    def _find_failure(self, path: str) -> BuildFailed | None:
        """Why a module does not go out though it builds: one that it needs has failed."""
        failed = self._failed.intersection(self._find_needed(path))
        if not failed:
            return None
        return BuildFailed(
            f"go:{path} needs go:{min(failed)}, which could not be built", premature=True
        )

    async def _find_parsed(self, path: str) -> tuple[GoMod, str] | None:
        """Its go.mod and go.sum as they are published; of a later module of a cycle, as they are
        committed.
        """
        if path in self._left:
            committed = await asyncio.to_thread(self._read_committed, self.modules[path])
            return _parse_manifests(committed, path)
        if path in self._built and path not in self._parsed:
            self._parsed[path] = _parse_manifests(self._built[path].manifests, path)
        return self._parsed.get(path)

    async def _find_sums(
        self, path: str, module: Module, known: Mapping[tuple[str, str], Sums]
    ) -> Sums | None:
        """The hashes of what this run publishes, or of what is published already, never of a tree
        that may have changed since then. `known` are those in the go.sum of `module`. None in a
        cycle, for a module that is built later.
        """
        if path in self._built:
            return self._built[path].sums
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
        _, _, mod, zipped = filenames(package.version)
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
        """Raises BuildFailed if a file of the module, and of none below it, has changed."""
        for name in self.sources.changed:
            path = self.sources.top / name
            if path.is_relative_to(module.directory) and not any(
                path.is_relative_to(other.directory)
                and other.directory.is_relative_to(module.directory)
                for other in self.modules.values()
                if other is not module
            ):
                raise BuildFailed(
                    f"go:{module.path}: {name} is not committed",
                    hint="Commit or drop the change: a tag names what is committed.",
                    problem=Problem.NOT_COMMITTED,
                )


def _parse_manifests(manifests: Mapping[str, bytes], where: str) -> tuple[GoMod, str]:
    """Its go.mod and go.sum."""
    mod = gomod.parse_mod(manifests["go.mod"].decode(), where)
    return mod, manifests.get("go.sum", b"").decode()


def _write(module: BuiltModule, files: Mapping[str, bytes], into: Path) -> tuple[Artifact, ...]:
    """Of the digests, `git` is the id of the tag, which pins all files; `h1` what go.sum has;
    `version` all that counts of an `.info`.
    """
    with staged(into) as partial:
        for name, data in files.items():
            write_new(partial / name, data)
    sums = {".zip": module.sums.zip, ".mod": module.sums.mod}
    artifacts = []
    for name, data in files.items():
        path = into / name
        digests = {"sha256": hashlib.sha256(data).hexdigest(), "git": module.tag}
        if path.suffix == ".info":
            digests["version"] = read_version_in(data)
        if h1 := sums.get(path.suffix):
            digests["h1"] = h1.removeprefix("h1:")
        artifacts.append(Artifact(path=path, size=len(data), digests=digests))
    return tuple(artifacts)
