"""Which files of a package count for what is published of it, which of other packages a bundler
puts into it, and what its package.json said at another time.

A package that is imported and never published has to be bundled; one that is published is left to
the registry, as a rule.
https://tsdown.dev/options/dependencies, https://esbuild.github.io/api/#packages
"""

from __future__ import annotations

import json
import os.path
import posixpath
import re
from typing import TYPE_CHECKING, Any, Final

from releasekit.ecosystems.interface import Composition
from releasekit.ecosystems.npm.discover import find_bundled, find_catalog_spec, find_needed
from releasekit.ecosystems.npm.entry_points import (
    ALWAYS_PACKED,
    count_excessive_patterns,
    find_missing_files,
    list_entry_points,
    list_missing,
)
from releasekit.ecosystems.npm.manifest import FIELDS, MAX_BYTES, parse_manifest, read_manifest
from releasekit.ecosystems.npm.reference import Reference
from releasekit.ecosystems.npm.roots import parse_catalogs
from releasekit.ecosystems.shared.crates import MANIFEST, Crates
from releasekit.ecosystems.shared.documents import table_in
from releasekit.ecosystems.shared.packed import below, is_irrelevant, spelled_out
from releasekit.host.files import is_file, read_head, read_text
from releasekit.text.globs import Patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.npm.discover import Found
    from releasekit.ecosystems.npm.manifest import NpmPackage
    from releasekit.ecosystems.shared.packed import Counts
    from releasekit.git.versions import Read
    from releasekit.model import Package

    Tracked = Callable[[Package], Sequence[str]]


_IGNORE_FILE: Final = ".npmignore"
_TSCONFIG: Final = "tsconfig.json"
_RELATIVE: Final = re.compile(rb"""["'](\.{1,2}/[^"'\s]*|\.{1,2})["']""")
_ENDS: Final = (".ts", ".tsx", ".mts", ".cts", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".json")
_TRIED: Final = (*_ENDS, *(f"/index{end}" for end in _ENDS))
_SOURCE: Final = re.compile(r"\.(?:[cm]?[jt]sx?|vue|svelte|astro|s?css|less)$")
_SETTINGS: Final = re.compile(r"[^/]+\.config\.[^/.]+")
# https://nodejs.org/api/packages.html#subpath-imports
_INTERNAL: Final = re.compile(rb"""(?:\bfrom|\bimport|\brequire)\s*\(?\s*["']#""")
_MAX_BYTES: Final = 1024 * 1024
# Sources of one package that are read; with more, a relevant import may be among the rest.
_MAX_READ: Final = 5_000


class NpmComposition(Composition):
    """`packages` are those `found`, as the plan has them."""

    def __init__(self, found: Found, packages: Sequence[Package], root: Path) -> None:
        self._found = found
        self._packages = packages
        self._crates = Crates(root)

    def make_filter(self, package: Package, tracked: Collection[str]) -> Counts:
        """One that promises files that git does not have is built, maybe from any file."""
        document = read_manifest(package.manifest)
        listed, files = document.get("files"), _parse_files(document)
        is_built = _is_built(document, files, tracked)
        leading = [*_list_always_packed(document), *list_entry_points(document.get("exports"))]
        # An entry point may import the files beside it.
        named = spelled_out([*(listed if isinstance(listed, list) else ()), *leading])
        named |= spelled_out(posixpath.dirname(path) for path in leading)
        always = {text.removeprefix("./") for text in _list_always_packed(document)}
        ignored = Patterns.parse(() if files.globs else _read_ignored(package, tracked))

        def counts(name: str) -> bool:
            if ALWAYS_PACKED.fullmatch(name):
                return True
            if is_irrelevant(name, named) or name.startswith("src/test/"):
                return False
            if name in always or (files.globs and files.names(name)):
                return True
            if name.endswith("/") and files.may_name_below(name):
                return True
            if is_built:
                return not name.endswith(".md")
            return not files.globs and not ignored.names(name)

        return counts

    def follows_links(self, package: Package, tracked: Collection[str]) -> bool:
        """Only where it is built, and may be made of what they lead to: npm and pnpm pack no links.
        https://github.com/npm/npm-packlist#readme
        """
        document = read_manifest(package.manifest)
        return _is_built(document, _parse_files(document), tracked)

    def find_unbuilt(self, package: Package, names: Collection[str]) -> str:
        """https://pnpm.io/package_json#publishconfig"""
        document = read_manifest(package.manifest)
        published = table_in(document, "publishConfig")
        directory = {"files": [published["directory"]]} if "directory" in published else {}
        tables = [
            each
            for each in (document, published, directory)
            if not count_excessive_patterns(each, names)
        ]
        found = [it for each in tables for it in list_missing(each, names)]
        return posixpath.normpath(found[0][1]).lstrip("/") if found else ""

    def list_outside(self, package: Package) -> Collection[Path]:
        """Licences of the workspace, and what the tarball bundles."""
        own = None if package.prebuilt else self._found.by_name.get(package.id.name)
        bundled = find_bundled(own, self._found) if own else []
        licenses = self._found.list_given_licenses(package)
        return [*licenses, *(each.directory for each in bundled)]

    def list_compiled(self, package: Package) -> Collection[Path]:
        own = self._found.by_name.get(package.id.name)
        named = [package.directory / each / MANIFEST for each in own.crates] if own else []
        return self._crates.list_compiled(filter(is_file, named))

    def find_parts(self, package: Package) -> Mapping[Package, Collection[Package]]:
        found = self._found
        here = {each.directory: each for each in self._packages}
        private = {each.directory for each in self._packages if each.unpublishable}
        top = found.by_name[package.id.name]
        installed = {each.directory for each in _find_all_needed(top, found, development=False)}
        known = private - installed
        takers: dict[Package, list[Package]] = {}
        pending = [top]
        while pending:
            taker = pending.pop()
            parts = _find_all_needed(taker, found, development=True)
            for part in {
                each.directory: each for each in parts if each.directory in known
            }.values():
                if here[part.directory] not in takers:
                    pending.append(part)
                takers.setdefault(here[part.directory], []).append(here[taker.directory])
        return takers

    def follow_imports(self, package: Package, part: Package, tracked: Tracked) -> Counts | None:
        """Directly and in turn; everything where an import cannot be followed. Blocks."""
        own = [it for it in tracked(package) if _SOURCE.search(it) and not is_irrelevant(it)]
        imported = _compile_import(part.id.name)
        if len(own) > _MAX_READ:
            return _everything

        def imported_by(names: Iterable[str]) -> set[str]:
            texts = (_read_head(package.directory / name) for name in names)
            return {match[1].decode() for text in texts for match in imported.finditer(text)}

        # Settings of tools at the top name what sources import, and more.
        settings = [name for name in own if _SETTINGS.fullmatch(name)]
        subpaths = imported_by(name for name in own if name not in settings) or imported_by(
            settings
        )
        if not subpaths:
            return None
        names = frozenset(tracked(part))
        starts = [_find_imported(subpath, package, part, names) for subpath in subpaths]
        if not all(starts):
            return _everything
        reached = _find_reached(set().union(*starts), part, names)
        return _everything if reached is None else reached.__contains__

    def read_offered(self, package: Package, read: Read) -> str:
        """Without the dependencies of development."""
        document = read_manifest_by(package, read)
        if document is None:
            return ""
        # In its order, which decides among `exports`.
        return json.dumps({key: document[key] for key in document if key != "devDependencies"})

    def read_inherited(self, package: Package, read: Read) -> str:
        """From catalogs, without the dependencies of development."""
        document = read_manifest_by(package, read)
        references = [
            reference
            for key in FIELDS
            if key != "devDependencies"
            for name, spec in table_in(document, key).items()
            if (reference := Reference.parse(name, str(spec))).kind == "catalog"
        ]
        if not references:
            return ""
        path = self._found.places[package.directory].catalogs_file
        catalogs = parse_catalogs((read(path) or b"").decode(), path)
        return json.dumps([(each.name, find_catalog_spec(catalogs, each)) for each in references])


def read_manifest_by(package: Package, read: Read) -> dict[str, object] | None:
    """Parse its package.json as `read` has it; None where that is missing or broken."""
    try:
        return parse_manifest((read(package.manifest) or b"").decode())
    except ValueError:
        return None


def _parse_files(document: dict[str, Any]) -> Patterns:
    listed = document.get("files")
    return Patterns.parse(listed if isinstance(listed, list) else (), rooted=True)


def _is_built(document: dict[str, Any], files: Patterns, tracked: Collection[str]) -> bool:
    """Whether it promises files that git does not have."""
    wanted = [Patterns((glob,)) for glob in files.globs if not glob[0].negated]
    return (
        "directory" in table_in(document, "publishConfig")
        or count_excessive_patterns(document, tracked) > 0
        or files.too_many_for(tracked)
        or len(find_missing_files(document, tracked)) > 0
        or not all(any(map(each.names, tracked)) for each in wanted)
    )


def _list_always_packed(document: dict[str, Any]) -> list[str]:
    """The paths that are packed even where `files` does not name them."""
    commands = document.get("bin")
    named = [document.get("main"), document.get("browser"), document.get("module"), commands]
    named += commands.values() if isinstance(commands, dict) else []
    return [each for each in named if isinstance(each, str)]


def _read_ignored(package: Package, tracked: Collection[str]) -> Sequence[str]:
    """The ignore file; nothing where others further down may take back what it says."""
    if _IGNORE_FILE not in tracked or below(_IGNORE_FILE, tracked):
        return ()
    return read_text(package.directory / _IGNORE_FILE, max_bytes=MAX_BYTES).splitlines()


def _find_all_needed(
    project: NpmPackage, found: Found, *, development: bool
) -> Sequence[NpmPackage]:
    """The packages here that its manifest names, with those of its `development` or without, and
    without those that its tarball brings along.
    """
    needed = [
        find_needed(declared, project, found)
        for declared in project.declared
        if development or project.is_installed(declared)
    ]
    return [each for each in needed if each is not None]


def _everything(_name: str) -> bool:
    return True


def _compile_import(name: str) -> re.Pattern[bytes]:
    return re.compile(rb"""["']%s((?:/[^"'\s]*)?)["']""" % re.escape(name).encode())


def _read_head(path: Path) -> bytes:
    try:
        return read_head(path, _MAX_BYTES)
    except OSError:
        return b""


def _find_imported(
    subpath: str, package: Package, part: Package, names: Collection[str]
) -> set[str]:
    """The sources that an import leads to, by the paths that `package` tells TypeScript and the
    exports of `part`; nothing where git has none of them.
    https://www.typescriptlang.org/docs/handbook/modules/reference.html#paths
    """
    named = re.escape(f"{part.id.name}{subpath}").encode()
    paths = re.findall(
        rb'"%s"\s*:\s*\[\s*"([^"]+)"' % named, _read_head(package.directory / _TSCONFIG)
    )
    found = {_locate(path.decode(), package, part) for path in paths}
    exports = read_manifest(part.manifest).get("exports")
    entry = exports.get(f".{subpath}") if isinstance(exports, dict) else None
    found |= {posixpath.normpath(path) for path in list_entry_points(entry)}
    return found.intersection(names)


def _locate(path: str, package: Package, part: Package) -> str:
    """The path below the part, where its directory is linked to or named."""
    _, linked, rest = path.rpartition(f"node_modules/{part.id.name}/")
    if linked:
        return posixpath.normpath(rest)
    return os.path.relpath(package.directory / path, part.directory)


def _find_reached(starts: set[str], part: Package, names: frozenset[str]) -> set[str] | None:
    """Add all that they import by relative paths; None where they import by other ones."""
    own = _compile_import(part.id.name)
    aliases = _find_aliases(_read_head(part.directory / _TSCONFIG))
    reached, pending = set(starts), list(starts)
    while pending:
        name = pending.pop()
        text = _read_head(part.directory / name)
        if own.search(text) or _INTERNAL.search(text) or any(alias in text for alias in aliases):
            return None
        for match in _RELATIVE.finditer(text):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[1].decode()))
            bare = re.sub(r"\.[cm]?jsx?$", "", path)
            tried = {path, *(f"{each}{end}" for each in (path, bare) for end in _TRIED)}
            new = tried.intersection(names) - reached
            reached |= new
            pending += new
    return reached


def _find_aliases(tsconfig: bytes) -> list[bytes]:
    """How imports begin that lead to sources of the same package though they are not relative."""
    found = []
    for table in re.findall(rb'"paths"\s*:\s*\{(.*?)\}', tsconfig, re.DOTALL):
        for key, path in re.findall(rb'"([^"*]+)\*?"\s*:\s*\[\s*"([^"]+)"', table):
            if b"node_modules/" not in path and not path.startswith(b"../"):
                found += [b'"' + key, b"'" + key]
    return found
