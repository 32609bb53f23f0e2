"""How a repository ties its packages together (npm, pnpm or yarn workspaces, or not at all), and
which directories belong to that.

Globs name directories as npm's map-workspaces reads them: it follows no links, and skips
node_modules. https://github.com/npm/map-workspaces
"""

from __future__ import annotations

import os
import re
import reprlib
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from releasekit.ecosystems.npm import manifest
from releasekit.ecosystems.shared import globs
from releasekit.ecosystems.shared.destinations import NamedRegistry
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.errors import ManifestError, MembersError
from releasekit.host.files import read_parsed, read_text
from releasekit.state.directory import NAME
from releasekit.text.globs import Glob
from releasekit.text.yaml_text import MAX_YAML_BYTES, parse_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Membership, Standing


Tool = Literal["npm", "pnpm", "yarn"]
MANIFEST: Final = "package.json"
PNPM: Final = "pnpm-workspace.yaml"
YARN: Final = ".yarnrc.yml"
_NPMRC: Final = ".npmrc"
_LERNA: Final = "lerna.json"
_LICENSE: Final = re.compile(r"LICEN[CS]E(?:\..+)?")
# Any of them makes a directory the root of packages.
FILES: Final = (MANIFEST, PNPM)
_MAX_EXPANDED_CHARS: Final = 1_000_000
_SEARCH: Final = globs.Search(
    markers=(MANIFEST,),
    skipped=frozenset({"node_modules", "bower_components", ".git", NAME}),
)
# https://github.com/pnpm/pnpm/blob/main/pnpm11/workspace/project-manifest-reader/src/index.ts
_PNPM_SEARCH: Final = replace(_SEARCH, markers=(MANIFEST, "package.json5", "package.yaml"))
_BRACES: Final = re.compile(r"\{([^{},]*+,[^{}]*+)\}")


@dataclass(frozen=True, slots=True)
class WorkspaceFiles:
    """What the files in `root` say. `tool` is "yarn" from version 2 on; version 1 packs as npm
    does. `catalogs` maps a catalog's name to the ranges in it. `licenses` are files of `root` that
    pnpm and lerna put into packages without a license. `registries` maps a scope (`@acme`), or ""
    for all packages, to where the settings of its tool say that they go.
    """

    root: Path
    tool: Tool = "npm"
    members: tuple[Glob, ...] = ()
    catalogs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    licenses: tuple[str, ...] = ()
    registries: Mapping[str, NamedRegistry] = field(default_factory=dict)

    def find_standing(self, directory: Path) -> Standing:
        """What they say of a directory, without looking there."""
        if not directory.is_relative_to(self.root):
            return ""
        parts = directory.relative_to(self.root).parts
        fitting = [glob for glob in self.members if glob.matches(parts)]
        if not fitting or not _SEARCH.skipped.isdisjoint(parts):
            return ""
        return "excluded" if fitting[-1].negated else "member"


def workspace_at(directory: Path) -> Membership | None:
    """None where its files only hold settings."""
    if not any((directory / name).is_file() for name in FILES):
        return None
    files = read_workspace_files(directory)
    return files.find_standing if files.members else None


def may_list(top: Path, place: Path, at_any_depth: bool) -> bool:
    files, parts = read_workspace_files(top), place.relative_to(top).parts
    listed = any(
        each.may_name_below(parts, at_any_depth=at_any_depth)
        for each in files.members
        if not each.negated
    )
    return listed and files.find_standing(place) != "excluded"


def publishable_at(directory: Path) -> bool:
    path = directory / MANIFEST
    if not os.path.lexists(path):
        return False
    document = manifest.read_manifest(path)
    if "version" not in document:
        return False  # npm publishes none of these, whatever their names
    package = manifest.parse_package(document, path)
    return package is not None and not package.unpublishable


def read_workspace_files(root: Path) -> WorkspaceFiles:
    """Raises ConfigError naming file and key."""
    path = root / PNPM
    if path.is_file():  # https://pnpm.io/pnpm-workspace_yaml
        settings = _read_yaml(path)
        found = _parse_patterns(settings.get("packages", []), where=f"{path}: packages")
        # What pnpm excludes stays excluded, wherever it stands.
        ordered = sorted(found, key=lambda glob: glob.negated)
        catalogs = _find_catalogs(settings, path)
        return WorkspaceFiles(
            root,
            "pnpm",
            tuple(ordered),
            catalogs,
            list_licenses(root, any_case=False),
            _read_npmrc_registries(root / _NPMRC),
        )
    top = root / MANIFEST
    document = manifest.read_manifest(top) if top.is_file() else {}
    patterns = document.get("workspaces", [])
    if isinstance(patterns, dict):  # yarn 1: https://classic.yarnpkg.com/lang/en/docs/workspaces/
        patterns = patterns.get("packages", [])
    settings = _read_yaml(root / YARN) if (root / YARN).is_file() else {}
    return WorkspaceFiles(
        root,
        "yarn" if (root / YARN).is_file() else "npm",
        _parse_patterns(patterns, where=f"{top}: workspaces"),
        _find_catalogs(settings, root / YARN),
        list_licenses(root) if (root / _LERNA).is_file() else (),
        _find_yarn_registries(settings, root / YARN)
        if (root / YARN).is_file()
        else _read_npmrc_registries(root / _NPMRC),
    )


def parse_globs(patterns: Iterable[str], *, where: str) -> list[Glob]:
    """One glob for each alternative of their braces; raises ConfigError for one that leads out."""
    return [
        Glob.parse(text.removeprefix("!"), where=where, negated=text.startswith("!"))
        for text in _expand_braces(patterns, where=where)
    ]


def find_directories(
    root: Path, members: Sequence[Glob], *, where: str, tool: Tool = "npm"
) -> list[Path]:
    """Directories with a manifest that the globs name, the last one that fits deciding."""
    positive = [glob for glob in members if not glob.negated]

    def is_chosen(path: Path) -> bool:
        parts = path.relative_to(root).parts
        return not [glob for glob in members if glob.matches(parts)][-1].negated

    search = _PNPM_SEARCH if tool == "pnpm" else _SEARCH
    return list(filter(is_chosen, search.directories(root, positive, where=where)))


def refuse_other_manifest(directory: Path) -> None:
    """Raises ManifestError where only pnpm could read what is there."""
    others = [name for name in _PNPM_SEARCH.markers if os.path.lexists(directory / name)]
    if others and MANIFEST not in others:
        raise ManifestError(
            f"{directory / others[0]}: ReleaseKit reads only {MANIFEST}",
            hint=f"Write it as {MANIFEST}, or exclude the directory with `exclude` below [npm].",
        )


def list_licenses(directory: Path, *, any_case: bool = True) -> tuple[str, ...]:
    """Files only: links might lead anywhere. pnpm takes those of its root in capitals alone.
    https://github.com/pnpm/pnpm/blob/main/pnpm11/releasing/commands/src/publish/pack.ts,
    https://github.com/lerna/lerna/blob/main/libs/commands/publish/src/lib/create-temp-licenses.ts
    """
    with os.scandir(directory) as entries:
        return tuple(
            sorted(
                entry.name
                for entry in entries
                if _LICENSE.fullmatch(entry.name.upper() if any_case else entry.name)
                and entry.is_file(follow_symlinks=False)
            )
        )


def _read_npmrc_registries(path: Path) -> dict[str, NamedRegistry]:
    """https://docs.npmjs.com/cli/v11/configuring-npm/npmrc; the last line of a key counts."""
    if not path.is_file():
        return {}
    found = {}
    for line in read_text(path, max_bytes=MAX_YAML_BYTES).splitlines():
        key, _, value = (part.strip() for part in line.partition("="))
        scope, colon, last = key.rpartition(":")
        if last == "registry" and scope.startswith("@") is bool(colon) and value:
            found[scope] = NamedRegistry(str(path), key, value.strip("\"'"))
    return found


def _find_yarn_registries(settings: Mapping[str, object], path: Path) -> dict[str, NamedRegistry]:
    """https://yarnpkg.com/configuration/yarnrc#npmPublishRegistry"""
    tables = {"": ("", settings)}
    for scope, table in table_in(settings, "npmScopes").items():
        if isinstance(table, dict):
            tables[f"@{scope}"] = (f"npmScopes.{scope}.", table)
    return {
        scope: NamedRegistry(str(path), f"{prefix}{key}", url)
        for scope, (prefix, table) in tables.items()
        for key in ("npmRegistryServer", "npmPublishRegistry")
        if (url := text_in(table, key))
    }


def _parse_patterns(patterns: object, *, where: str) -> tuple[Glob, ...]:
    if not isinstance(patterns, list) or not all(
        isinstance(pattern, str) and pattern for pattern in patterns
    ):
        # Not in full: with YAML's aliases a small file stands for any amount of text.
        raise ManifestError(f"{where} is {reprlib.repr(patterns)}", hint="Write a list of globs.")
    return tuple(parse_globs(patterns, where=where))


def _find_catalogs(document: Mapping[str, object], path: Path) -> dict[str, Mapping[str, str]]:
    """https://pnpm.io/catalogs"""
    named = document.get("catalogs") or {}
    tables = {**(named if isinstance(named, dict) else {"catalogs": named})}
    if document.get("catalog"):
        tables["default"] = document["catalog"]
    found: dict[str, Mapping[str, str]] = {}
    for name, entries in tables.items():
        if not isinstance(entries, dict) or any(
            isinstance(spec, list | dict) for spec in entries.values()
        ):
            raise ManifestError(
                f"{path}: catalog {name!r} is {reprlib.repr(entries)}, not a table of ranges"
            )
        found[str(name)] = {str(key): str(spec) for key, spec in entries.items()}
    return found


@lru_cache(maxsize=4)
def parse_catalogs(text: str, path: Path) -> Mapping[str, Mapping[str, str]]:
    """Of an earlier version of the file at `path`; none where that could not be read."""
    try:
        document = parse_yaml(text[:MAX_YAML_BYTES])
        return _find_catalogs(document, path) if isinstance(document, dict) else {}
    except (ValueError, RecursionError, ManifestError):
        return {}


def _read_yaml(path: Path) -> dict[str, object]:
    document = read_parsed(
        path, parse_yaml, complaint="is not valid YAML", max_bytes=MAX_YAML_BYTES
    )
    if not isinstance(document, dict | None):
        raise ManifestError(
            f"{path} is a {type(document).__name__}, not a table of keys and values"
        )
    return {str(key): value for key, value in (document or {}).items()}


def _expand_braces(patterns: Iterable[str], *, where: str) -> list[str]:
    pending = [*patterns][::-1]
    plain: list[str] = []
    while pending:
        globs.refuse_too_many([*pending, *plain], where=where)
        pattern = pending.pop()
        found = _BRACES.search(pattern)
        if found is None:
            plain.append(pattern)
            continue
        before, after = pattern[: found.start()], pattern[found.end() :]
        choices = found[1].split(",")
        globs.refuse_too_many(choices, where=where)
        if len(choices) * len(pattern) > _MAX_EXPANDED_CHARS:
            raise MembersError(f"{where} holds more than {_MAX_EXPANDED_CHARS} characters of globs")
        pending += [f"{before}{text}{after}" for text in reversed(choices)]
    return plain
