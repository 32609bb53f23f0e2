"""A packed tarball: what it says of itself, and the same with another package.json in it."""

from __future__ import annotations

import gzip
import re
import tarfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

from releasekit.ecosystems.npm import manifest, repository
from releasekit.ecosystems.shared.archives import MAX_UNPACKED_BYTES, BadArchive, opened_archive
from releasekit.ecosystems.shared.documents import table_in
from releasekit.errors import PackageError
from releasekit.host import durable
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

_MANIFEST: Final = "package/package.json"
# npmjs.com keeps no more of it.
_MAX_README_BYTES: Final = 64 * 1024
_README: Final = re.compile(r"readme(?:\.(?:md|markdown|mkd|txt))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Contained:
    """What a tarball says of itself; `manifest` as clients of a registry expect it. `names` are its
    files, without the directory that they all are in.
    """

    manifest: Mapping[str, Any]
    readme: str
    readme_filename: str
    names: frozenset[str]


def read_tarball(file: IO[bytes], what: str) -> Contained:
    """Raises PackageError for what is no tarball of an npm package; `what` starts the message."""
    text: bytes | None = None
    readme, readme_filename = b"", ""
    names: set[str] = set()
    try:
        with opened_archive(file, max_bytes=MAX_UNPACKED_BYTES) as members:
            for member in members:
                _, _, name = member.name.partition("/")
                names.add(name)
                if name == "package.json":
                    text = member.read(manifest.MAX_BYTES)
                elif not readme and _README.fullmatch(name):
                    readme, readme_filename = member.read(_MAX_README_BYTES), name
        if text is None:
            raise PackageError(
                f"{what}: there is no package.json in it", problem=Problem.NOT_A_PACKAGE
            )
        document = manifest.parse_manifest(_decoded(text))
    except (ValueError, RecursionError) as error:
        raise PackageError(
            f"{what}: it is no tarball of an npm package ({error})", problem=Problem.NOT_A_PACKAGE
        ) from error
    normalized = _normalized(document, {name for name in names if "/" not in name})
    return Contained(normalized, _decoded(readme), readme_filename, frozenset(names))


def rewrite_manifest(path: Path, change: Callable[[str], str]) -> None:
    """Rewrite the tarball where `change` makes another text of its manifest; blocks.

    The same bytes come of the same input: no time of writing is kept. Links and directories, which
    npm packs none of, are left out. Raises PackageError for what is no tarball of an npm package.
    """
    partial = path.with_name(f"{path.name}.partial")
    try:
        with durable.reading(path) as packed:
            if not _rewritten(packed, partial, change):
                return
    except BadArchive as error:
        raise PackageError(
            f"{path}: it is no tarball of an npm package ({error})", problem=Problem.NOT_A_PACKAGE
        ) from error
    durable.rename(partial, path)


def _rewritten(packed: IO[bytes], into: Path, change: Callable[[str], str]) -> bool:
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


def _normalized(document: Mapping[str, Any], top: Collection[str]) -> dict[str, Any]:
    """Spelled in the one way that every client reads. `top` are the files beside it.

    https://github.com/npm/package-json/blob/main/lib/normalize.js
    """
    found = dict(document)
    if isinstance(found.get("bin"), str):
        found["bin"] = {str(found.get("name")).rpartition("/")[2]: found["bin"]}
    if "bundledDependencies" in found:
        found.setdefault("bundleDependencies", found.pop("bundledDependencies"))
    if "repository" in found:
        found["repository"] = repository.spelled(found["repository"])
    scripts = table_in(found, "scripts")
    native = any(name.endswith(".gyp") for name in top) and found.get("gypfile") is not False
    if native and not {"install", "preinstall"} & scripts.keys():
        found |= {"scripts": {**scripts, "install": "node-gyp rebuild"}, "gypfile": True}
    if "npm-shrinkwrap.json" in top:
        found["_hasShrinkwrap"] = True
    return found


def _decoded(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")
