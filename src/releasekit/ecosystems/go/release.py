"""One module as it is published: its files, the commit and the tag that give everybody the same."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from releasekit.ecosystems.go import edit, gomod, module_zip, paths
from releasekit.ecosystems.go.objects import FILE_MODE, TREE_MODE, Bundle, Entry, Object
from releasekit.ecosystems.go.objects import commit as commit_object
from releasekit.ecosystems.go.objects import tag as tag_object
from releasekit.ecosystems.go.objects import tree as tree_object
from releasekit.errors import BuildFailed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.ecosystems.go.discover import Module
    from releasekit.ecosystems.go.edit import Sums
    from releasekit.ecosystems.go.source import Archive, Trees
    from releasekit.model import Published


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """go.mod and go.sum as they will be published; without go.sum, None."""

    mod: bytes
    sum: bytes | None


@dataclass(frozen=True, slots=True)
class ModuleFiles:
    """`files` maps the names that proxies give them to their bytes."""

    files: Mapping[str, bytes]
    sums: Sums
    manifests: Manifests
    bundle: Bundle


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltModule:
    """What others need to know of a release. `needs` is the commit it was made from."""

    sums: Sums
    manifests: Manifests
    tag: str
    needs: str

    @classmethod
    def of(cls, module: ModuleFiles) -> BuiltModule:
        tag, needs = module.bundle.tag, module.bundle.needs
        return cls(sums=module.sums, manifests=module.manifests, tag=tag, needs=needs)

    def is_what(self, published: Published | None) -> bool:
        """Whether nothing else is published, or about to be."""
        return published is None or f"git:{self.tag}" in published.files.values()


def stored(directory: Path, version: str) -> BuiltModule | None:
    """The module whose files lie there, of whatever run; None when they are not whole."""
    bundle, _, mod, zipped = filenames(version)
    try:
        found = Bundle.of((directory / bundle).read_bytes())
        data, text = (directory / zipped).read_bytes(), (directory / mod).read_bytes()
        sums = edit.Sums(zip=module_zip.hash_of_zip(data), mod=module_zip.hash_of_mod(text))
    except (OSError, ValueError):
        return None
    manifests = Manifests(mod=text, sum=module_zip.go_sum_of(data))
    return BuiltModule(sums=sums, manifests=manifests, tag=found.tag, needs=found.needs)


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


def manifests(
    module: Module, source: Archive, where: PurePosixPath, *, sums: Mapping[str, Sums], exact: Edits
) -> Manifests:
    """`sums` are of the in-repo modules it needs, directly or not, at their planned versions.

    Raises BuildFailed where HEAD has no go.mod of this module.
    """
    committed = source.read(str(where / "go.mod"))
    if committed is None:
        raise BuildFailed(
            f"go:{module.path}: HEAD has no {where / 'go.mod'}",
            hint="Commit it: a Go module is published from a commit.",
        )
    mod = gomod.parse_mod(committed.decode(), str(module.manifest))
    go_sum = source.read(str(where / "go.sum"))
    if not exact.wanted:
        return Manifests(mod=committed, sum=go_sum)
    named = {require.path for require in mod.requires}
    local = [each for each in mod.replaces if (each.path, each.target) in exact.local]
    text = edit.released(mod, exact.versions, missing=sorted(sums.keys() - named), local=local)
    hashes = {(path, exact.versions[path]): each for path, each in sums.items()}
    if not hashes:
        return Manifests(mod=text.encode(), sum=go_sum)
    complete = edit.go_sum((go_sum or b"").decode(), hashes)
    return Manifests(mod=text.encode(), sum=complete.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """What becomes of a go.mod: nothing unless `wanted`. `local` are the replacements to drop, as
    (path, target).
    """

    wanted: bool
    versions: Mapping[str, str]
    local: frozenset[tuple[str, str]] = frozenset()


def module_files(
    module: Module, made: Manifests, source: Archive, trees: Trees, where: PurePosixPath
) -> ModuleFiles:
    """`where` is the module's directory in the repository. Raises BuildFailed."""
    contents = _contents(module, made, source, where)
    by = trees.head.by
    zipped = module_zip.write(contents, time_s=by.time_s)
    sums = edit.Sums(zip=module_zip.hash1(contents), mod=module_zip.hash_of_mod(made.mod))
    name = tag_name(module.path, module.version, where)
    objects = _release_commit(module, made, trees, where)
    on = objects[-1].id if objects else trees.head.commit
    objects.append(tag_object(name, on, by, f"{module.path} {module.version}"))
    bundle = Bundle(name, trees.head.commit, tuple(objects))
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(by.time_s))
    data = (bundle.to_bytes(), info(module.version, moment), made.mod, zipped)
    files = dict(zip(filenames(module.version), data, strict=True))
    return ModuleFiles(files=files, sums=sums, manifests=made, bundle=bundle)


def _contents(
    module: Module, made: Manifests, source: Archive, where: PurePosixPath
) -> dict[str, bytes]:
    """Every file of the module under its full name."""
    changed = {"go.mod": made.mod} | ({} if made.sum is None else {"go.sum": made.sum})
    files = source.below(where)
    files |= {name: module_zip.File(size=len(data)) for name, data in changed.items()}
    chosen = module_zip.select(files, go=module.mod.go, module=module.path)
    prefix = f"{module.path}@{module.version}/"
    contents = {}
    for name in chosen:
        data = changed[name] if name in changed else source.read(str(where / name))
        contents[prefix + name] = data or b""
    # The repository's licence is that of a module without one of its own.
    # https://go.dev/ref/mod#vcs-license
    licence = source.read("LICENSE")
    if where != PurePosixPath() and "LICENSE" not in files and licence is not None:
        contents[f"{prefix}LICENSE"] = licence
    return contents


def _release_commit(
    module: Module, made: Manifests, trees: Trees, where: PurePosixPath
) -> list[Object]:
    """A commit on top of HEAD with the go.mod and go.sum that are published, and what it is made
    of; nothing where HEAD has them so already.
    """
    blobs = {"go.mod": Object("blob", made.mod)}
    if made.sum is not None:
        blobs["go.sum"] = Object("blob", made.sum)
    listed = dict(trees.listed[where])
    blobs = {
        name: blob
        for name, blob in blobs.items()
        if name not in listed or listed[name].id != blob.id
    }
    if not blobs:
        return []
    objects = list(blobs.values())
    entries = listed | {name: Entry(FILE_MODE, blob.id) for name, blob in blobs.items()}
    objects.append(tree_object(entries))
    for level in where.parents:
        name = where.relative_to(level).parts[0]
        above = {**trees.listed[level], name: Entry(TREE_MODE, objects[-1].id)}
        objects.append(tree_object(above))
    message = (
        f"Release {module.path} {module.version}\n\n"
        "Its go.mod requires the versions it is released with; its go.sum has their hashes."
    )
    head = trees.head
    objects.append(commit_object(objects[-1].id, head.commit, head.by, message))
    return objects
