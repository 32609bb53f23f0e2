"""One module as it is published: its files, the commit and the tag that give everybody the same."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.go import module_zip, paths
from releasekit.ecosystems.go.edit import Sums
from releasekit.git.objects import (
    FILE_MODE,
    MAX_BUNDLE_BYTES,
    TREE_MODE,
    Bundle,
    Object,
    TreeEntry,
    commit_object,
    tag_object,
    tree_object,
)
from releasekit.host import durable
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.ecosystems.go.discover import Module
    from releasekit.ecosystems.go.source import Sources
    from releasekit.model import Published

_MAX_VERSION_CHARS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltModule:
    """What other modules need to know of a release. `manifests` are go.mod and go.sum, by name, and
    `tag` is the id of its tag.
    """

    sums: Sums
    manifests: Mapping[str, bytes]
    tag: str

    def is_what(self, published: Published | None, version: str) -> bool:
        """Whether this is what is published, or nothing is yet."""
        if published is None or f"git:{self.tag}" in published.files.values():
            return True
        _, _, mod, zipped = (published.files.get(name) for name in filenames(version))
        return (mod, zipped) == (self.sums.mod, self.sums.zip)


@dataclass(frozen=True, slots=True)
class Stored:
    """What an earlier run seems to have built: the id of its tag, and the commit below that."""

    tag: str
    commit: str


def read_stored(directory: Path, version: str) -> Stored | None:
    """What lies where the files of a module are built; None where that is nothing, or damaged."""
    try:
        data = durable.read_file(directory / filenames(version)[0], max_bytes=MAX_BUNDLE_BYTES)
        found = Bundle.from_bytes(data)
    except (OSError, ValueError):
        return None
    return Stored(tag=found.tag, commit=found.prerequisite)


def filenames(version: str) -> tuple[str, str, str, str]:
    """Bundle, info, go.mod and zip of a version."""
    return f"{version}.bundle", f"{version}.info", f"{version}.mod", f"{version}.zip"


def tag_name(path: str, version: str, directory: PurePosixPath) -> str:
    return f"{paths.tag_prefix(path, directory)}{version}"


def info(version: str, moment: str) -> bytes:
    """What proxies say of a version, without what each of them adds.

    https://go.dev/ref/mod#goproxy-protocol
    """
    return json.dumps({"Version": version, "Time": moment}, separators=(",", ":")).encode()


def version_in(info: bytes) -> str:
    """The version that an `.info` is about; raises ValueError for what is none.

    Nothing else in it is part of a module: proxies may tell their own time, or none, and the
    origin. https://go.dev/ref/mod#goproxy-protocol
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
    module: Module, manifests: Mapping[str, bytes], sources: Sources
) -> tuple[BuiltModule, dict[str, bytes]]:
    """The release with these manifests, and its files by the names that proxies give them. Raises
    BuildFailed.
    """
    where, by = sources.path_of(module), sources.head.by
    contents = _contents(module, manifests, sources)
    sums = Sums(zip=module_zip.hash1(contents), mod=module_zip.hash_of_mod(manifests["go.mod"]))
    name = tag_name(module.path, module.version, where)
    objects = _release_commit(module, manifests, sources)
    on = objects[-1].id if objects else sources.head.commit
    objects.append(tag_object(name, on, by, f"{module.path} {module.version}"))
    bundle = Bundle(name, sources.head.commit, tuple(objects))
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(by.time_s))
    files = (
        bundle.to_bytes(),
        info(module.version, moment),
        manifests["go.mod"],
        module_zip.zip_bytes(contents, time_s=by.time_s),
    )
    built = BuiltModule(sums=sums, manifests=manifests, tag=bundle.tag)
    return built, dict(zip(filenames(module.version), files, strict=True))


def _contents(module: Module, manifests: Mapping[str, bytes], sources: Sources) -> dict[str, bytes]:
    """Every file of the module under its full name."""
    where, archive = sources.path_of(module), sources.archive
    files = archive.below(where)
    files |= {name: module_zip.File(size=len(data)) for name, data in manifests.items()}
    chosen = module_zip.select_files(files, go=module.mod.go, module=module.path)
    prefix = f"{module.path}@{module.version}/"
    contents = {}
    for name in chosen:
        data = manifests[name] if name in manifests else archive.read(str(where / name))
        contents[prefix + name] = data or b""
    # The repository's licence is that of a module without one of its own.
    # https://go.dev/ref/mod#vcs-license
    licence = archive.read("LICENSE")
    if where != PurePosixPath() and "LICENSE" not in files and licence is not None:
        contents[f"{prefix}LICENSE"] = licence
    return contents


def _release_commit(
    module: Module, manifests: Mapping[str, bytes], sources: Sources
) -> list[Object]:
    """A commit on top of HEAD with the go.mod and go.sum that are published, after the objects it
    is made of; empty if HEAD has the same go.mod and go.sum.
    """
    where, head = sources.path_of(module), sources.head
    listed = sources.trees[where]
    blobs = {name: Object("blob", data) for name, data in manifests.items()}
    changed = {
        name: TreeEntry(FILE_MODE, blob.id)
        for name, blob in blobs.items()
        if name not in listed or listed[name].id != blob.id
    }
    if not changed:
        return []
    objects = [blobs[name] for name in changed]
    objects.append(tree_object({**listed, **changed}))
    for level in where.parents:
        name = where.relative_to(level).parts[0]
        below = TreeEntry(TREE_MODE, objects[-1].id)
        objects.append(tree_object({**sources.trees[level], name: below}))
    message = (
        f"Release {module.path} {module.version}\n\n"
        "Its go.mod requires the versions it is released with; its go.sum has their hashes."
    )
    objects.append(commit_object(objects[-1].id, head.commit, head.by, message))
    return objects
