"""How a repository ties its packages together (npm, pnpm, yarn or Bun workspaces, or not at all),
and which directories belong to that.

Globs name directories as npm's map-workspaces reads them: it follows no links, and skips
node_modules. https://github.com/npm/map-workspaces
"""

from __future__ import annotations

import os
import re
import reprlib
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, field

from releasekit.ecosystems.npm import manifest
from releasekit.ecosystems.shared.crates import read_toml
from releasekit.ecosystems.shared.destinations import NamedRegistry
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.errors import ManifestError, MembersError
from releasekit.fields import replace
from releasekit.host.files import read_head, read_parsed, read_text
from releasekit.state.directory import NAME
from releasekit.text.globs import Glob, Search, decide, refuse_too_many
from releasekit.text.yaml_text import MAX_YAML_BYTES, parse_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Membership, Standing


Tool = Literal["npm", "pnpm", "yarn", "yarn1", "bun"]
MANIFEST: Final = "package.json"
PNPM: Final = "pnpm-workspace.yaml"
YARN: Final = ".yarnrc.yml"
_BUNFIG: Final = "bunfig.toml"
_NPMRC: Final = ".npmrc"
_YARN1: Final = ".yarnrc"
_SETTINGS: Final[Mapping[Tool, str]] = {"pnpm": PNPM, "yarn": YARN, "bun": _BUNFIG}
# The first that is there, where package.json names no tool.
_SIGNS: Final[Sequence[tuple[str, str]]] = (
    (PNPM, "pnpm"),
    (YARN, "yarn"),
    ("package-lock.json", "npm"),
    ("pnpm-lock.yaml", "pnpm"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("yarn.lock", "yarn"),  # Bun writes one, too: https://bun.sh/docs/pm/lockfile
)
_PNPMFILES: Final = (".pnpmfile.cjs", ".pnpmfile.mjs")
_HOOK: Final = "beforePacking"
_QUOTED: Final = " \t\"'"
# Of a lock file: in the first lines, that of yarn 2 or later has `__metadata`.
_MAX_LOCK_HEAD: Final = 4096
_LERNA: Final = "lerna.json"
_LICENSE: Final = re.compile(r"LICEN[CS]E(?:\..+)?")
# Any of them makes a directory the root of packages.
FILES: Final = (MANIFEST, PNPM)
_MAX_EXPANDED_CHARS: Final = 1_000_000
_SEARCH: Final = Search(
    markers=(MANIFEST,), skipped=frozenset({"node_modules", "bower_components", ".git", NAME})
)
# https://github.com/pnpm/pnpm/blob/main/pnpm11/workspace/project-manifest-reader/src/index.ts
_PNPM_SEARCH: Final = replace(_SEARCH, markers=(MANIFEST, "package.json5", "package.yaml"))
_BRACES: Final = re.compile(r"\{([^{},]*+,[^{}]*+)\}")


class WorkspaceFiles(Struct, frozen=True):
    """What the files in `root` say. `tool` is "yarn" from version 2 on; "yarn1" packs as npm does.
    `catalogs` maps a catalog's name to the ranges in it. `licenses` are files of `root` that pnpm
    and lerna put into packages without a license. `registries` maps a scope (`@acme`), or "" for
    all packages, to where the settings of its tool say that they go. `usual` is what these say
    where the `publishConfig` of a package says nothing. `scriptless` is where they say that no
    scripts run, `repacks` what of them packs otherwise than is known here, and `packs_directory`
    says that `publishConfig.directory` counts.
    """

    root: Path
    tool: Tool = "npm"
    members: tuple[Glob, ...] = ()
    catalogs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    licenses: tuple[str, ...] = ()
    registries: Mapping[str, NamedRegistry] = field(default_factory=dict)
    usual: Mapping[str, str] = field(default_factory=dict)
    scriptless: str = ""
    repacks: str = ""
    packs_directory: bool = False

    @property
    def catalogs_file(self) -> Path:
        return self.root / {"pnpm": PNPM, "yarn": YARN}.get(self.tool, MANIFEST)

    def find_standing(self, directory: Path) -> Standing:
        """What they say of a directory, without looking there."""
        if not directory.is_relative_to(self.root):
            return ""
        parts = directory.relative_to(self.root).parts
        is_member = decide(self.members, parts)
        if is_member is None or not _SEARCH.skipped.isdisjoint(parts):
            return ""
        return "member" if is_member else "excluded"


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
    top = root / MANIFEST
    document = manifest.read_manifest(top) if top.is_file() else {}
    tool = _choose_tool(root, document)
    path = root / _SETTINGS.get(tool, _NPMRC)
    settings = _read_settings(path) if tool in _SETTINGS and path.is_file() else {}
    lerna = root / _LERNA
    publish = _read_lerna(lerna)
    # What yarn takes of .npmrc are registries and logins alone; `bun publish` reads no `tag` and no
    # `access`, but a workspace of Bun is published by npm as often.
    rc = root / (_YARN1 if tool == "yarn1" else _NPMRC)
    lines = _read_npmrc(rc) if tool != "yarn" else {}
    registries = dict(_find_registries(root, tool, settings))
    if url := text_in(publish, "registry"):
        registries[""] = NamedRegistry(str(lerna), "command.publish.registry", url)
    usual = {
        "tag": text_in(publish, "distTag") or lines.get("tag", ""),
        "access": text_in(settings, "npmPublishAccess") or lines.get("access", ""),
    }
    silent = {
        f"{lerna}: command.publish.ignoreScripts": publish.get("ignoreScripts"),
        f"{path}: ignoreScripts": tool == "pnpm" and settings.get("ignoreScripts"),
        f"{path}: install.ignoreScripts": tool == "bun" and settings.get("ignoreScripts"),
        f"{rc}: ignore-scripts": lines.get("ignore-scripts") == "true",
    }
    if tool == "pnpm" and path.is_file():  # https://pnpm.io/pnpm-workspace_yaml
        found = _parse_patterns(settings.get("packages", []), where=f"{path}: packages")
        # What pnpm excludes stays excluded, wherever it stands.
        members = tuple(sorted(found, key=lambda glob: glob.negated))
    else:
        patterns = document.get("workspaces", [])
        # yarn 1 and Bun: https://classic.yarnpkg.com/lang/en/docs/workspaces/
        if isinstance(patterns, dict):
            patterns = patterns.get("packages", [])
        members = _parse_patterns(patterns, where=f"{top}: workspaces")
    catalogs = (
        _find_catalogs(settings, path) if tool in {"pnpm", "yarn"} else _find_bun_catalogs(document)
    )
    licensed = (root / PNPM).is_file() or lerna.is_file()
    return WorkspaceFiles(
        root,
        tool,
        members,
        catalogs,
        list_licenses(root, any_case=tool != "pnpm") if licensed else (),
        registries,
        {key: value for key, value in usual.items() if value},
        next((where for where, said in silent.items() if said is True), ""),
        (tool == "pnpm" and _find_hook(root, settings, lines)) or _find_contents(lerna, publish),
        tool == "pnpm" or lerna.is_file(),
    )


def find_registries(home: WorkspaceFiles, directory: Path) -> Mapping[str, NamedRegistry]:
    """With those of the files beside a package, which npm and Bun ignore for a member."""
    if directory == home.root or (
        home.tool in {"npm", "bun"} and home.find_standing(directory) == "member"
    ):
        return home.registries
    path = directory / _SETTINGS.get(home.tool, _NPMRC)
    settings = _read_settings(path) if home.tool in {"yarn", "bun"} and path.is_file() else {}
    return {**home.registries, **_find_registries(directory, home.tool, settings)}


def _choose_tool(root: Path, document: Mapping[str, object]) -> Tool:
    """The one that packs there: what corepack starts, since pnpm and corepack refuse to be another.
    https://github.com/nodejs/corepack#when-authoring-packages,
    https://docs.npmjs.com/cli/v11/configuring-npm/package-json#devengines
    """
    name, _, version = text_in(document, "packageManager").partition("@")
    engine = table_in(table_in(document, "devEngines"), "packageManager")
    name, version = (name, version) if name else (text_in(engine, "name"), "")
    signs = (tool for file, tool in _SIGNS if (root / file).is_file())
    # A pnpm-workspace.yaml that alone lists the packages is believed.
    if not name or ("workspaces" not in document and (root / PNPM).is_file()):
        name, version = next(signs, ""), ""
    if name == "pnpm":
        return "pnpm"
    if name == "bun":
        return "bun"
    if name != "yarn":
        return "npm"
    # Yarn 1 starts the one that a .yarnrc.yml names.
    if (root / YARN).is_file() or (version and not version.startswith("1.")):
        return "yarn"
    lock = root / "yarn.lock"
    is_new = not version and lock.is_file() and b"__metadata:" in read_head(lock, _MAX_LOCK_HEAD)
    return "yarn" if is_new else "yarn1"


def parse_globs(patterns: Iterable[str], *, where: str) -> list[Glob]:
    """One glob for each alternative of their braces; raises ConfigError for one that leads out."""
    return [
        Glob.parse(text, where=where, signed=True) for text in _expand_braces(patterns, where=where)
    ]


def find_directories(
    root: Path, members: Sequence[Glob], *, where: str, tool: Tool = "npm"
) -> list[Path]:
    """Directories with a manifest that the globs name, the last one that fits deciding."""
    positive = [glob for glob in members if not glob.negated]
    search = _PNPM_SEARCH if tool == "pnpm" else _SEARCH
    found = search.directories(root, positive, where=where)
    return [each for each in found if decide(members, each.relative_to(root).parts)]


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


def _find_hook(root: Path, settings: Mapping[str, object], lines: Mapping[str, str]) -> str:
    """https://pnpm.io/pnpmfile#hooksbeforepackingpkg-pkg--promisepkg, in the files that its setting
    names: https://pnpm.io/settings#pnpmfile
    """
    given = settings.get("pnpmfile") or lines.get("pnpmfile") or [*_PNPMFILES]
    names = given if isinstance(given, list) else [given]
    for path in (root / name for name in names if isinstance(name, str)):
        if path.is_file() and _HOOK in read_text(path, max_bytes=MAX_YAML_BYTES):
            return f"{path} has a hook `{_HOOK}`"
    return ""


def _find_contents(path: Path, publish: Mapping[str, object]) -> str:
    """https://github.com/lerna/lerna/blob/main/libs/commands/publish/README.md#--contents-dir"""
    contents = text_in(publish, "contents")
    return f"{path}: command.publish.contents is {contents!r}" if contents.strip("./") else ""


def _find_registries(
    directory: Path, tool: Tool, settings: Mapping[str, object]
) -> Mapping[str, NamedRegistry]:
    """Of yarn 1, .npmrc is stronger than its own file, and weaker than that of Bun.
    https://github.com/yarnpkg/yarn/blob/master/src/registries/npm-registry.js (getRegistry),
    https://bun.sh/docs/pm/npmrc
    """
    if tool == "yarn":
        return _find_yarn_registries(settings, directory / YARN)
    found: dict[str, NamedRegistry] = {}
    for name in (_YARN1, _NPMRC) if tool == "yarn1" else (_NPMRC,):
        path = directory / name
        for key, value in _read_npmrc(path).items():
            scope, colon, last = key.rpartition(":")
            if last == "registry" and scope.startswith("@") is bool(colon):
                found[scope] = NamedRegistry(str(path), key, value)
    return {**found, **_find_bun_registries(settings, directory)} if tool == "bun" else found


def _read_npmrc(path: Path) -> dict[str, str]:
    """Or a .yarnrc, which has blanks between; the last line of a key counts.
    https://docs.npmjs.com/cli/v11/configuring-npm/npmrc,
    https://classic.yarnpkg.com/lang/en/docs/yarnrc/
    """
    if not path.is_file():
        return {}
    lines = read_text(path, max_bytes=MAX_YAML_BYTES).splitlines()
    parted = (line.strip().partition(" " if path.name == _YARN1 else "=") for line in lines)
    found = ((key.strip(_QUOTED), value.strip(_QUOTED)) for key, _, value in parted)
    return {key: value for key, value in found if value}


def _read_lerna(path: Path) -> Mapping[str, object]:
    """What `lerna publish` takes, the strongest last.
    https://lerna.js.org/docs/api-reference/configuration
    """
    document = manifest.read_manifest(path) if path.is_file() else {}
    commands = table_in(document, "command")
    return {**document, **table_in(commands, "version"), **table_in(commands, "publish")}


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


def _find_bun_registries(
    settings: Mapping[str, object], directory: Path
) -> dict[str, NamedRegistry]:
    """https://bun.sh/docs/runtime/bunfig#install-registry"""
    scopes = table_in(settings, "scopes")
    given = {f"@{key.removeprefix('@')}": (f"install.scopes.{key}", scopes[key]) for key in scopes}
    given[""] = "install.registry", settings.get("registry")
    return {
        scope: NamedRegistry(str(directory / _BUNFIG), key, url)
        for scope, (key, value) in given.items()
        if (url := value if isinstance(value, str) else text_in(value, "url"))
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


def _find_bun_catalogs(document: Mapping[str, object]) -> dict[str, Mapping[str, str]]:
    """Of a package.json: those below `workspaces` alone, if there are any. What is no catalog is
    not read, as Bun reads none there, and others may mean something else by it.
    https://bun.sh/docs/pm/catalogs,
    https://github.com/oven-sh/bun/blob/main/src/install/lockfile/CatalogMap.rs (parse_append)
    """
    inner = table_in(document, "workspaces")
    table = document if inner.keys().isdisjoint({"catalog", "catalogs"}) else inner
    tables: dict[str, object] = {**table_in(table, "catalogs")}
    tables["default"] = {**table_in(tables, "default"), **table_in(table, "catalog")}
    return {
        name: {key: spec for key, spec in entries.items() if isinstance(spec, str)}
        for name, entries in tables.items()
        if isinstance(entries, dict)
    }


@lru_cache(maxsize=4)
def parse_catalogs(text: str, path: Path) -> Mapping[str, Mapping[str, str]]:
    """Of an earlier version of the file at `path`; none where that could not be read."""
    try:
        if path.name == MANIFEST:
            return _find_bun_catalogs(manifest.parse_manifest(text))
        document = parse_yaml(text[:MAX_YAML_BYTES])
        return _find_catalogs(document, path) if isinstance(document, dict) else {}
    except (ValueError, RecursionError, ManifestError):
        return {}


def _read_settings(path: Path) -> Mapping[str, object]:
    """Of Bun, those of `bun install`, which others of its commands follow."""
    if path.name == _BUNFIG:
        return table_in(read_toml(path), "install")
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
        refuse_too_many([*pending, *plain], where=where)
        pattern = pending.pop()
        found = _BRACES.search(pattern)
        if found is None:
            plain.append(pattern)
            continue
        before, after = pattern[: found.start()], pattern[found.end() :]
        choices = found[1].split(",")
        refuse_too_many(choices, where=where)
        if len(choices) * len(pattern) > _MAX_EXPANDED_CHARS:
            raise MembersError(f"{where} holds more than {_MAX_EXPANDED_CHARS} characters of globs")
        pending += [f"{before}{text}{after}" for text in reversed(choices)]
    return plain
