"""A packed tarball: what it says of itself, the same with another package.json in it, and how one
that was packed elsewhere becomes the file of a package.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import tarfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from msgspec import Struct

from releasekit.ecosystems.interface import Contained
from releasekit.ecosystems.npm import manifest
from releasekit.ecosystems.npm.normalize import normalize
from releasekit.ecosystems.npm.reference import Range, Reference, find_carried
from releasekit.ecosystems.shared.archives import MAX_UNPACKED_BYTES, BadArchive, opened_archive
from releasekit.ecosystems.shared.artifacts import copied
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.ecosystems.shared.packages import not_a_package
from releasekit.ecosystems.shared.semver import Version
from releasekit.errors import PackageError
from releasekit.host import durable
from releasekit.host.artifact_reader import open_artifact
from releasekit.model import Dependency, DependencyKind, PackageId
from releasekit.problems import Problem
from releasekit.text.escape import clip

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from releasekit.ecosystems.interface import Built, Into
    from releasekit.model import Artifact, Package

# What a packument shows, and what files are known by here.
DIGESTS: Final = ("sha256", "sha512", "sha1")
_MANIFEST: Final = "package/package.json"
# npmjs.com keeps no more of it.
_MAX_README_BYTES: Final = 64 * 1024
_README: Final = re.compile(r"readme(?:\.(?:md|markdown|mkd|txt))?", re.IGNORECASE)
# Of the manifests of all bundled packages; those of npm itself have a tenth of a megabyte.
_MAX_BUNDLED_BYTES: Final = 32 * 1024 * 1024
# Needs of all of them; each is looked for in every node_modules above.
_MAX_NEEDS: Final = 100_000
# No path can be longer. https://man7.org/linux/man-pages/man7/path_resolution.7.html
_MAX_PATH_CHARS: Final = 4096
# Each alternative of one range with each of the other one, and that of all pairs.
_MAX_COMPARED_CHARS: Final = 500
_MAX_COMPARED: Final = 4_000_000
_MAX_SHOWN: Final = 300
# Where Node.js looks for packages, and no manifest further down in one of them.
_BUNDLED: Final = re.compile(r"((?:node_modules/(?:@[^/]+/)?[^@/][^/]*/){1,64})package\.json")
# What npm asks no registry and no server for.
_UNRESOLVED: Final = frozenset({"workspace", "catalog", "path", "jsr", "unknown"})
_KINDS: Final = {
    "dependencies": DependencyKind.RUNTIME,
    "optionalDependencies": DependencyKind.OPTIONAL,
    "peerDependencies": DependencyKind.PEER,
}


def make_filename(name: str, version: str) -> str:
    """As `npm pack` does. Registries do not show it, but everybody knows it.
    https://docs.npmjs.com/cli/commands/npm-pack
    """
    return f"{name.removeprefix('@').replace('/', '-')}-{version}.tgz"


def get_filename(package: Package) -> str:
    return make_filename(package.id.name, package.version)


class BundledNeed(Struct, frozen=True):
    """What a bundled package needs at run time; `optional` where it works without it."""

    name: str
    spec: str
    optional: bool


class Tarball(Struct, frozen=True):
    """What a tarball says of itself, `manifest` as it is written. `names` are its
    files, without the directory that they all are in. `bundled` are the packages in it by their
    places, each with what it needs at run time; None where its package.json cannot be read.
    """

    manifest: Mapping[str, Any]
    readme: str
    readme_filename: str
    names: frozenset[str]
    bundled: Mapping[str, Sequence[BundledNeed] | None]

    @property
    def shown(self) -> dict[str, Any]:
        """Its manifest as clients of a registry expect it."""
        return normalize(self.manifest, self.names, self.readme)


def read_artifact(artifact: Artifact, what: str) -> Tarball:
    """As `read_tarball`; blocks."""
    with open_artifact(artifact) as file, file.raw() as raw:
        return read_tarball(raw, what)


def read_tarball(file: IO[bytes], what: str) -> Tarball:
    """Raises PackageError for a file that is not the tarball of an npm package; `what` starts the
    message.
    """
    text: bytes | None = None
    readme, readme_filename = b"", ""
    names: set[str] = set()
    bundled: dict[str, Sequence[BundledNeed] | None] = {}
    bundled_bytes = needs = 0
    try:
        with opened_archive(file, max_bytes=MAX_UNPACKED_BYTES) as members:
            for member in members:
                _, _, name = member.name.partition("/")
                names.add(name)
                if name == "package.json":
                    text = member.read(manifest.MAX_BYTES)
                elif len(name) <= _MAX_PATH_CHARS and (found := _BUNDLED.fullmatch(name)):
                    bundled_bytes += member.size
                    if bundled_bytes > _MAX_BUNDLED_BYTES:
                        raise BadArchive(
                            "the package.json files of what it bundles have more than "
                            f"{_MAX_BUNDLED_BYTES} bytes"
                        )
                    needed = _read_needs(member.read(member.size))
                    needs += len(needed or ())
                    if needs > _MAX_NEEDS:
                        raise BadArchive(f"what it bundles needs more than {_MAX_NEEDS} packages")
                    bundled[found[1].removesuffix("/")] = needed
                elif not readme and _README.fullmatch(name):
                    readme, readme_filename = member.read(_MAX_README_BYTES), name
        if text is None:
            raise not_a_package(f"{what}: there is no package.json in it")
        document = manifest.parse_manifest(_decode(text))
    except (ValueError, RecursionError) as error:
        raise not_a_package(f"{what}: it is not a tarball of an npm package ({error})") from error
    return Tarball(document, _decode(readme), readme_filename, frozenset(names), bundled)


def _read_needs(text: bytes) -> Sequence[BundledNeed] | None:
    try:
        document = manifest.parse_manifest(_decode(text))
    except (ValueError, RecursionError):
        return None
    meta = table_in(document, "peerDependenciesMeta")
    found: dict[str, BundledNeed] = {}
    for key in ("peerDependencies", "dependencies", "optionalDependencies"):
        table = table_in(document, key)
        for name in table:
            optional = key == "optionalDependencies" or (
                key == "peerDependencies" and table_in(meta, name).get("optional") is True
            )
            found[name] = BundledNeed(
                name, text_in(table, name)[: manifest.MAX_SPEC_CHARS], optional
            )
    return (*found.values(),)


def _decode(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")


def refuse_unresolvable(tarball: Tarball, what: str) -> None:
    """Raises PackageError for a dependency that npm gets from nowhere: one that only a workspace
    understands, or one that it expects in the tarball, which does not hold it; and for a file that
    npm does not unpack.
    """
    _refuse_outside(tarball, what)
    bundled = manifest.list_bundled(tarball.manifest)
    for each in manifest.list_declared(tarball.manifest, Path(what)):
        if each.field == "devDependencies":
            continue
        if each.key in bundled:
            # It comes from the tarball or not at all, whatever is written there.
            # https://github.com/npm/cli/blob/latest/workspaces/arborist/lib/arborist/build-ideal-tree.js
            if each.field == "optionalDependencies" or has_bundled(tarball.names, each.key):
                continue
            raise PackageError(
                f"{what}: bundleDependencies names {each.key}, but the tarball has no "
                f"node_modules/{each.key}, so users would not get it",
                hint="A workspace installs it in its root, where npm does not pack it: copy it to "
                f"node_modules/{each.key} of the package in a `prepack` script, or remove it from "
                "bundleDependencies, so that users get it from the registry.",
                problem=Problem.UNRESOLVABLE,
            )
        kind = Reference.parse(each.key, each.spec).kind
        carried = find_carried(each.spec) if kind == "path" else ""
        if kind not in _UNRESOLVED or (carried and f"{carried}/package.json" in tarball.names):
            continue
        raise PackageError(
            f"{what}: {each.field}.{each.key} is {each.spec!r}, which users cannot install",
            hint="Write a version range. `pnpm pack` and `yarn pack` write one for a package "
            "of their workspace; a script that writes package.json has to do so itself.",
            problem=Problem.UNRESOLVABLE,
        )
    _refuse_unmet(tarball, bundled, what)


def _refuse_outside(tarball: Tarball, what: str) -> None:
    """https://github.com/isaacs/node-tar/blob/main/src/unpack.ts (checkPath)"""
    outside = [name for name in tarball.names if ".." in name.replace("\\", "/").split("/")]
    if not outside:
        return
    shown = clip(min(outside), _MAX_SHOWN)
    raise PackageError(
        f"{what}: it holds package/{shown}, a path with '..', which npm does not unpack",
        hint="A package in node_modules is a link to its directory, as pnpm installs it, and npm "
        "packs what lies behind the link. Pack it where node_modules holds copies, or remove what "
        "is linked from bundleDependencies.",
        problem=Problem.UNRESOLVABLE,
    )


def _refuse_unmet(tarball: Tarball, bundled: Collection[str], what: str) -> None:
    """What a bundled package needs is taken to be bundled, too, so npm and pnpm install none of it.
    https://docs.npmjs.com/cli/configuring-npm/package-json#bundledependencies
    """
    declared = manifest.list_declared(tarball.manifest, Path(what))
    installed = {each.key: each.spec for each in declared if each.field != "devDependencies"}
    own = text_in(tarball.manifest, "name")
    pending = [f"node_modules/{name}" for name in sorted(installed.keys() & bundled)]
    seen, compared = set(pending), 0
    while pending:
        place = pending.pop()
        name = place.rpartition("node_modules/")[2]
        needs = tarball.bundled.get(place, ())
        if needs is None:
            raise PackageError(
                f"{what}: {place}/package.json, of the bundled {name}, is not valid JSON",
                hint=f"Install {name} again, or correct the script that copies it.",
                problem=Problem.UNRESOLVABLE,
            )
        for need in needs:
            if found := _find_bundled(tarball.bundled, place, need.name):
                if found not in seen:
                    seen.add(found)
                    pending.append(found)
                continue
            sizes = len(need.spec), len(installed.get(need.name, ""))
            compared += sum(sizes) if sum(sizes) > _MAX_COMPARED_CHARS else sizes[0] * sizes[1]
            if compared > _MAX_COMPARED:
                raise not_a_package(f"{what}: what it bundles needs too many long ranges")
            if why := _find_lack(need, installed, own):
                lacks = clip(need.name, _MAX_SHOWN)
                raise PackageError(
                    f"{what}: the bundled {name} needs {lacks} "
                    f"({clip(need.spec, _MAX_SHOWN)}), {why}",
                    hint="npm and pnpm install nothing for a bundled package. Copy it to "
                    f"node_modules/{lacks} of the package in a `prepack` script, add it to "
                    f"dependencies, or remove {name} from bundleDependencies.",
                    problem=Problem.UNRESOLVABLE,
                )


def _find_lack(need: BundledNeed, installed: Mapping[str, str], own: str) -> str:
    """Why users do not get what is not in the tarball; empty where they do."""
    if need.name == own:
        return ""
    if need.name not in installed:
        if need.optional:
            return ""
        return (
            f"which is neither bundled nor among the dependencies of {own}, so users would not "
            "get it"
        )
    wanted = Reference.parse(need.name, need.spec)
    if wanted.kind in _UNRESOLVED and not need.spec.startswith("file:"):
        # npm compares it with what it has installed for the package around it.
        return "which npm does not understand, and so does not install the package"
    given = Reference.parse(need.name, installed[need.name])
    if (
        wanted.kind == given.kind == "range"
        and wanted.name == given.name
        and len(wanted.wanted) + len(given.wanted) <= _MAX_COMPARED_CHARS
        and not Range.parse(wanted.wanted).meets(Range.parse(given.wanted))
    ):
        return f"and users would get {need.name} {given.wanted}, which {own} asks for"
    return ""


def _find_bundled(places: Collection[str], place: str, name: str) -> str:
    """Where Node.js finds a package from another one; empty where that is not in the tarball.
    https://nodejs.org/api/modules.html#loading-from-node_modules-folders
    """
    above = place
    while above:
        if (found := f"{above}/node_modules/{name}") in places:
            return found
        above = above.rpartition("/node_modules/")[0]
    found = f"node_modules/{name}"
    return found if found in places else ""


def has_bundled(names: Collection[str], name: str) -> bool:
    return f"node_modules/{name}/package.json" in names


def rewrite_manifest(path: Path, change: Callable[[str], str]) -> None:
    """Rewrite the tarball where `change` makes another text of its manifest; blocks.

    The same input gives the same bytes: no time of writing is kept. Links and directories, which
    npm does not pack, are left out. Raises PackageError for a file that is not the tarball of an
    npm package.
    """
    partial = path.with_name(f"{path.name}.partial")
    try:
        with durable.reading(path) as packed:
            if not _rewrite(packed, partial, change):
                return
    except BadArchive as error:
        raise not_a_package(f"{path}: it is not a tarball of an npm package ({error})") from error
    durable.rename(partial, path)


def _rewrite(packed: IO[bytes], into: Path, change: Callable[[str], str]) -> bool:
    found: bytes | None = None
    with opened_archive(packed, max_bytes=MAX_UNPACKED_BYTES) as members:
        for member in members:
            if member.name == _MANIFEST:
                found = member.read(manifest.MAX_BYTES)
    if found is None:
        raise BadArchive(f"there is no {_MANIFEST} in it")
    text = found.decode(errors="replace")
    changed = change(text)
    if changed == text:
        return False
    packed.seek(0)
    with (
        opened_archive(packed, max_bytes=MAX_UNPACKED_BYTES) as members,
        durable.writing(into) as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as repacked,
    ):
        for member in members:
            member.repack(repacked, changed.encode() if member.name == _MANIFEST else None)
    return True


class PrebuiltTarballs:
    """Tarballs that were packed elsewhere. Implements `interface.Prebuilt`: a release is one
    tarball. `names` are those of all packages here.
    """

    algorithms = DIGESTS

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def contained(self, file: IO[bytes], path: Path) -> Contained:
        tarball = read_tarball(file, str(path))
        document = tarball.manifest
        refuse_unresolvable(tarball, str(path))
        name, version = str(document.get("name", "")), str(document.get("version", ""))
        filename = make_filename(name, version)
        if path.name != filename:
            raise not_a_package(
                f"{path} is npm:{name} {version}, which is published as {filename}",
                "Name it so, as `npm pack` does.",
            )
        needs = tuple(self._find_needs(document, path))
        return Contained(name=name, version=version, dependencies=needs)

    def admits(self, requirement: str, version: str) -> bool:
        # `*` in a tarball is not pinned any more, and npm takes no prerelease for it.
        return Version.parse(version) in Range.parse(requirement)

    async def complete(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        return {
            package.id: await asyncio.to_thread(copied, package.prebuilt, into(package), *DIGESTS)
            for package in packages
        }

    def _find_needs(self, document: Mapping[str, object], path: Path) -> Iterator[Dependency]:
        for entry in manifest.list_declared(document, path):
            reference = Reference.parse(entry.key, entry.spec)
            if entry.field == "devDependencies":
                continue
            if reference.kind == "range" and reference.name in self._names:
                kind = _KINDS[entry.field]
                yield Dependency(
                    on=PackageId("npm", reference.name),
                    kind=kind,
                    requirement=reference.wanted,
                    soft=kind is not DependencyKind.RUNTIME,
                )
