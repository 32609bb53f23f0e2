"""Which directories belong to a uv workspace, and whether one holds a package to publish.

https://docs.astral.sh/uv/concepts/projects/workspaces/
"""

from __future__ import annotations

import os.path
import re
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.pypi import manifest
from releasekit.ecosystems.pypi.manifest import MANIFEST
from releasekit.ecosystems.shared.documents import checked_table, table_in, text_in
from releasekit.ecosystems.shared.packages import named_roots
from releasekit.errors import ManifestError, MembersError
from releasekit.host.files import follow, inside, is_file, read_file
from releasekit.text.globs import WILDCARD, Glob, Search, matches_path, refuse_too_many

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Membership, Standing
    from releasekit.ecosystems.pypi import PyPIOptions

_SEARCH: Final = Search(markers=(MANIFEST,), links=True)
# What tells the files of a package from those of a linter, and from modules of these names.
_SETUPTOOLS: Final = {
    "setup.cfg": (re.compile(rb"(?ms)^\[metadata\](?:(?!^\[).)*?^name[ \t]*[=:]"),),
    "setup.py": (
        re.compile(rb"(?m)^[ \t]*+(?:from|import)[ \t]++(?:setuptools|distutils)\b"),
        re.compile(rb"\bsetup\("),
    ),
}


def workspace_at(directory: Path) -> Membership | None:
    path = directory / MANIFEST
    document = manifest.read_pyproject(path) if path.is_file() else {}
    if "workspace" not in checked_table(document, "tool", "uv", path=path):
        return None
    patterns, exclude = read_globs(document, path)
    where = f"{path}: tool.uv.workspace.members"
    parsed = [Glob.parse(pattern, where=where) for pattern in patterns]

    def find_standing(below: Path) -> Standing:
        """What the globs say of a directory, without looking there."""
        if not below.is_relative_to(directory):
            return ""
        if _is_excluded(below, directory, exclude):
            return "excluded"
        parts = below.relative_to(directory).parts
        return "member" if any(glob.matches(parts) for glob in parsed) else ""

    return find_standing


def may_list(top: Path, place: Path, at_any_depth: bool) -> bool:
    path = top / MANIFEST
    members, exclude = (
        read_globs(manifest.read_pyproject(path), path) if path.is_file() else ((), ())
    )
    where, parts = f"{path}: tool.uv.workspace.members", place.relative_to(top).parts
    globs = (Glob.parse(pattern, where=where) for pattern in members)
    listed = any(each.may_name_below(parts, at_any_depth=at_any_depth) for each in globs)
    return listed and not _is_excluded(place, top, exclude)


def publishable_at(directory: Path) -> bool:
    path = directory / MANIFEST
    document = manifest.read_pyproject(path) if os.path.lexists(path) else {}
    if not manifest.is_managed(document, path):
        return False
    if not manifest.is_project(document):
        _refuse_foreign(directory, document)
        return False
    # A package that Poetry alone understands counts: its owner has to read what to write.
    return "project" not in document or not manifest.parse_project(document, path).unpublishable


def _refuse_foreign(directory: Path, document: Mapping[str, object]) -> None:
    """Raise ManifestError where setuptools, flit or meson-python find a package in a directory
    without [project].
    https://setuptools.pypa.io/en/latest/userguide/declarative_config.html
    https://flit.pypa.io/en/latest/pyproject_toml.html#old-style-metadata
    https://mesonbuild.com/meson-python/reference/pyproject-settings.html
    """
    places = []
    if "metadata" in table_in(table_in(document, "tool"), "flit"):
        places.append(f"{directory / MANIFEST}: tool.flit.metadata")
    if text_in(table_in(document, "build-system"), "build-backend") == "mesonpy":
        places.append(f"{directory / 'meson.build'}")
    for name, marks in _SETUPTOOLS.items():
        if is_file(path := directory / name):
            content = read_file(path, max_bytes=manifest.MAX_BYTES)
            places += [str(path)] if all(mark.search(content) for mark in marks) else []
    if places:
        raise ManifestError(
            f"{places[0]} describes a package, but ReleaseKit reads only [project] in "
            "pyproject.toml: write it there, or name the directory in `exclude` below [pypi]"
        )


def find_manifests(root: Path, options: PyPIOptions) -> dict[Path, Path]:
    """Every manifest of a package, with the root of its workspace."""
    where = "releasekit.toml: pypi.packages"
    named = find_members(root, options.packages, options.exclude, where=where)
    found = {directory / MANIFEST: root for directory in named}
    if (root / MANIFEST).is_file():
        found.pop(root / MANIFEST, None)
    found |= find_workspace_manifests(root, options)
    return {
        inside(root, path, where=str(path)): found[path]
        for path in sorted(found)
        if path.parent == root or not _is_excluded(path.parent, root, options.exclude)
    }


def find_named_manifests(root: Path, options: PyPIOptions) -> set[Path]:
    """Those whose directory stands in `options.packages` as it is, not by a wildcard."""
    plain = [pattern for pattern in options.packages if not WILDCARD.search(pattern)]
    return {follow(root / pattern / MANIFEST) for pattern in plain}


def find_workspace_manifests(root: Path, options: PyPIOptions) -> dict[Path, Path]:
    """The manifests of all members of uv workspaces, and of the workspaces' own projects, with the
    root of each workspace.
    """
    found: dict[Path, Path] = {}
    for path in find_top_manifests(root, options):
        top, document = path.parent, manifest.read_pyproject(path)
        patterns, exclude = read_globs(document, path)
        without = options.exclude if top == root else ()
        where = f"{path}: tool.uv.workspace.members"
        members = set(find_members(top, patterns, (*exclude, *without), where=where)) - {top}
        for directory in members | ({top} if manifest.is_project(document) else set()):
            found.setdefault(directory / MANIFEST, top)
    return found


def find_lock_directories(root: Path, options: PyPIOptions) -> dict[Path, Path]:
    """Every manifest, also without a package, with the directory where uv locks what it says."""
    paths = {*find_top_manifests(root, options), *find_manifests(root, options)}
    tops = find_workspace_manifests(root, options)
    members = {inside(root, path, where=str(path)): top for path, top in tops.items()}
    return {path: members.get(path, path.parent) for path in sorted(paths)}


def find_top_manifests(root: Path, options: PyPIOptions) -> list[Path]:
    """The manifests of the root and of `options.workspaces`: each may be that of a workspace."""
    tops = [root] if (root / MANIFEST).is_file() else []
    where = "releasekit.toml: pypi.workspaces"
    tops += named_roots(root, options.workspaces, [MANIFEST], where=where)
    found = [inside(root, top / MANIFEST, where=str(top / MANIFEST)) for top in tops]
    return list(dict.fromkeys(found))


def read_globs(
    document: Mapping[str, object], path: Path
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The globs of the members of its uv workspace, and of what is excluded."""
    workspace = checked_table(document, "tool", "uv", "workspace", path=path)
    members, exclude = (
        manifest.read_strings(workspace, key, path=path, where=f"tool.uv.workspace.{key}")
        for key in ("members", "exclude")
    )
    return members, exclude


def find_members(
    root: Path, patterns: tuple[str, ...], exclude: tuple[str, ...], *, where: str
) -> list[Path]:
    """The directories with a pyproject.toml that the globs name as uv reads them, resolved, sorted.

    `where` is the file and key that hold the globs, for messages. Raises ConfigError for a glob or
    a symbolic link that leaves `root`, and for one without wildcards that names no package.
    """
    refuse_too_many((*patterns, *exclude), where=where)
    parsed = [Glob.parse(pattern, where=where) for pattern in patterns]
    for pattern in patterns:
        if WILDCARD.search(pattern):
            continue
        directory = root / pattern
        is_directory = directory.is_dir()
        left_out = _is_excluded(directory, root, exclude)
        if not is_directory or not (left_out or (directory / MANIFEST).is_file()):
            what = "has no pyproject.toml" if is_directory else "is not a directory"
            raise MembersError(
                f"{where}: {pattern!r} {what}", hint="Remove the entry, or correct the path."
            )
    found = [
        path
        for path in _SEARCH.directories(root, parsed, where=where)
        if not _is_excluded(path, root, exclude)
    ]
    return sorted({inside(root, path, where=where) for path in found})


def _is_excluded(directory: Path, root: Path, exclude: Sequence[str]) -> bool:
    # uv matches `exclude` against the whole path, where a `*` also matches a slash.
    # https://docs.rs/glob/latest/glob/struct.MatchOptions.html (require_literal_separator)
    return matches_path(directory.relative_to(root).as_posix(), exclude)
