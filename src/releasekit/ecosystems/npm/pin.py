"""A package.json as it has to read once it is published, text to text: its in-repo dependencies,
and the fields of `publishConfig` that replace others.

`workspace:` and `catalog:` mean nothing outside the repository, so they are always replaced, as
pnpm and yarn do: https://pnpm.io/workspaces#publishing-workspace-packages
"""

from __future__ import annotations

import json
import operator
import re
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.decided import Edge
from releasekit.ecosystems.npm import manifest
from releasekit.ecosystems.npm.discover import (
    ECOSYSTEM,
    find_bundled,
    find_catalog_spec,
    find_kind,
    find_needed,
    is_ours,
)
from releasekit.ecosystems.npm.manifest import FIELDS, DeclaredDependency
from releasekit.ecosystems.npm.reference import Range, Reference, fill_in, find_carried
from releasekit.ecosystems.shared.packages import conflict
from releasekit.ecosystems.shared.semver import Version
from releasekit.errors import ManifestError, PlanError
from releasekit.host.files import exists
from releasekit.model import PackageId
from releasekit.problems import Problem
from releasekit.text.splice import splice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from releasekit.config.values import PinMode
    from releasekit.ecosystems.npm.discover import Found
    from releasekit.ecosystems.npm.manifest import NpmPackage
    from releasekit.ecosystems.npm.roots import Tool, WorkspaceFiles


# The names that lead to a member of an object.
Keys = tuple[str, ...]
# https://www.rfc-editor.org/rfc/rfc8259
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
MARKERS: Final = frozenset({"*", "^", "~"})
# Fields of `publishConfig` that pnpm and yarn put in place of the package's own when they pack, so
# that a workspace runs from its sources and users from what was built.
# https://pnpm.io/package_json#publishconfig and
# https://yarnpkg.com/configuration/manifest#publishConfig
# (its plugin for TypeScript adds the types:
# https://github.com/yarnpkg/berry/blob/master/packages/plugin-typescript/sources/index.ts)
_YARN: Final = frozenset(
    {"bin", "browser", "exports", "imports", "main", "module", "type", "types", "typings"}
)
# https://github.com/pnpm/pnpm/blob/main/pnpm11/releasing/exportable-manifest/src/overridePublishConfig.ts
_PNPM: Final = _YARN | {
    "cpu", "engines", "es2015", "esnext", "libc", "os", "typesVersions", "umd:main", "unpkg",
}  # fmt: skip
_FIELDS: Final[Mapping[Tool, frozenset[str]]] = {"pnpm": _PNPM, "yarn": _YARN}
_INDENT: Final = re.compile(r"\{\r?\n(?P<indent>[ \t]+)")


class Pins(Struct, frozen=True):
    """`versions` maps names to planned versions; `found` includes packages that are never
    published.
    """

    found: Found
    versions: Mapping[str, str]
    mode: PinMode

    def pin(self, text: str) -> str:
        """Raises PlanError for a requirement that only the workspace understands and that leads
        nowhere, or excludes the planned version.
        """
        project = self.found.by_name.get(read_name(text))
        if project is None:
            return text

        def change(path: Keys, spec: str) -> str:
            for field in FIELDS:
                if path[:-1] == (field,):
                    return self._pin_spec(DeclaredDependency(field, path[-1], spec), project)
            return spec

        return replace_strings(text, change)

    def _read_spec(self, declared: DeclaredDependency, project: NpmPackage) -> str:
        reference = Reference.parse(declared.key, declared.spec)
        if reference.kind != "catalog":
            return declared.spec
        if spec := find_catalog_spec(self.found.home(project).catalogs, reference):
            return spec
        hint = "Add it to the catalog, or write a range."
        raise _make_error(project, declared, "that catalog has no such entry", hint)

    def _pin_spec(self, declared: DeclaredDependency, project: NpmPackage) -> str:
        spec = self._read_spec(declared, project)
        reference = Reference.parse(declared.key, spec)
        if reference.kind == "jsr":
            # As pnpm and yarn pack it; users name the registry of the scope @jsr.
            # https://pnpm.io/package-sources#jsr-registry, https://jsr.io/docs/npm-compatibility
            return f"npm:{reference.name}{'@' if reference.wanted else ''}{reference.wanted}"
        needed = find_needed(declared, project, self.found)
        if needed is None and reference.kind == "workspace":
            reason = f"no package of this workspace is named {reference.name!r}"
            hint = "List it in the workspace, correct the name, or write a range."
            raise _make_error(project, declared, reason, hint)
        if needed is None or needed is project:
            if project.is_installed(declared):
                _refuse_local(project, declared, reference, spec, own=needed is project)
            return spec
        if declared.key in project.bundled and reference.kind not in {"workspace", "path"}:
            return spec
        version = self.versions.get(needed.name, needed.version)
        if not is_ours(reference, version):
            return spec
        if declared.field != "devDependencies" and _is_excluded(version, reference):
            requirement = f"{declared.key} {declared.spec!r}"
            raise conflict(f"npm:{project.name}", requirement, reference.name, version)
        wanted = self._choose_range(reference, declared, version)
        if wanted is None:
            return spec
        return f"npm:{needed.name}@{wanted}" if needed.name != declared.key else wanted

    def list_edges(self) -> Iterator[Edge]:
        """As `Versioning.list_edges`, where `versions` are those that were released."""
        for project in self.found.by_name.values():
            if project.is_private:
                continue
            for bundled in find_bundled(project, self.found):
                released = self.versions.get(bundled.name, bundled.version)
                if bundled.is_private or not released:
                    continue
                yield Edge(
                    dependent=PackageId(ECOSYSTEM, project.name),
                    on=PackageId(ECOSYSTEM, bundled.name),
                    requirement=released,
                    admits=partial(operator.eq, released),
                )
            for declared in filter(project.is_installed, project.declared):
                needed = find_needed(declared, project, self.found)
                if needed is None or needed is project or needed.is_private:
                    continue
                reference = self.found.resolve(declared, project)
                # A dist-tag or a URL says nothing of versions, and pinning refuses a bad catalog.
                tells = reference.kind in {"workspace", "range", "path"}
                if not tells or not is_ours(reference, needed.version):
                    continue
                released = self.versions.get(needed.name, needed.version)
                wanted = self._choose_range(reference, declared, released)
                asked = reference.wanted if wanted is None else wanted
                yield Edge(
                    dependent=PackageId(ECOSYSTEM, project.name),
                    on=PackageId(ECOSYSTEM, needed.name),
                    kind=find_kind(declared, project),
                    requirement=asked,
                    admits=partial(_holds, Range.parse(asked)),
                )

    def _choose_range(
        self, reference: Reference, declared: DeclaredDependency, version: str
    ) -> str | None:
        """The range to write, None for what stays as it is."""
        # A peer's range is wide on purpose: the user who installs both decides.
        mode = self.mode if declared.field in {"dependencies", "optionalDependencies"} else "none"
        exact = mode == "exact"
        match reference.kind:
            case "elsewhere":
                return version if exact and version else None
            case "path":
                return version or "*"
            case "workspace" if reference.wanted in MARKERS:
                marker = "" if exact else reference.wanted.removeprefix("*")
                return f"{marker}{version}" if version else "*"
            case _ if exact or (mode == "auto" and Range.parse(reference.wanted).is_open):
                return version
            case "workspace":
                return fill_in(reference.wanted, version)
            case _:
                return None


def _make_error(
    project: NpmPackage, declared: DeclaredDependency, reason: str, hint: str
) -> PlanError:
    return PlanError(
        f"npm:{project.name}: {declared.key} is {declared.spec!r}, and {reason}",
        hint=hint,
        problem=Problem.NO_SUCH_DEPENDENCY,
    )


def _refuse_local(
    project: NpmPackage, declared: DeclaredDependency, reference: Reference, spec: str, *, own: bool
) -> None:
    """Raises PlanError for what leads to nothing that users can install."""
    if reference.kind == "path" and not exists(project.directory / reference.wanted):
        hint = "Correct the path, or write a range."
        raise _make_error(project, declared, "the path does not exist", hint)
    # Of what lies in the package, only its tarball tells whether it goes along.
    is_carried = reference.kind == "path" and not own and find_carried(spec)
    if reference.kind in {"path", "unknown", "workspace"} and not is_carried:
        raise PlanError(
            f"{project.manifest}: {declared.field}.{declared.key} is {spec!r}, which users "
            "cannot install",
            hint="Write a version range, and publish what it leads to; or bundle it "
            "(bundleDependencies). Only devDependencies may stay as they are.",
            problem=Problem.CANNOT_PIN,
        )


def _is_excluded(version: str, reference: Reference) -> bool:
    """Whether a range of `workspace:` excludes it, which pnpm and yarn resolve here alone.
    https://pnpm.io/workspaces#workspace-protocol-workspace
    """
    if not version or reference.kind != "workspace" or reference.wanted in MARKERS:
        return False
    asked = Range.parse(reference.wanted)
    return not asked.is_open and Version.parse(version) not in asked


def _holds(asked: Range, version: str) -> bool:
    return Version.parse(version) in asked


def read_name(text: str) -> str:
    """The name of the package in a manifest."""
    return str(manifest.parse_manifest(text).get("name"))


def replace_strings(text: str, change: Callable[[Keys, str], str]) -> str:
    """`text`, which is valid JSON, with `change` (path, value) applied to every string value."""
    edits = []
    for path, span in find_strings(text):
        value = json.loads(text[slice(*span)])
        new = change(path, value)
        if new != value:
            edits.append((span, json.dumps(new, ensure_ascii=False)))
    return splice(text, edits)


def find_strings(text: str) -> Iterator[tuple[Keys, tuple[int, int]]]:
    """Path and place, quotes included, of each string that is a member of an object."""
    path: list[str | None] = []  # None for a list
    key = ""
    expects_key = False
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{" | "[" as opening:
                path.append(key if opening == "{" else None)
                expects_key = opening == "{"
            case "}" | "]":
                path.pop()
                expects_key = False
            case ",":
                expects_key = bool(path) and path[-1] is not None
            case ":":
                expects_key = False
            case word if word[0] == '"':
                if expects_key:
                    key = json.loads(word)
                elif path and None not in path:
                    # The outermost object has no name.
                    yield (*map(str, path[1:]), key), token.span()


def find_packed_directory(config: Mapping[str, object], path: Path, home: WorkspaceFiles) -> str:
    """The directory below the package that is packed in its place; empty for the package's own.

    Raises ConfigError for one outside of it, or a `name` that only pnpm knows the package by.
    """
    if not home.packs_directory:
        return ""
    if "name" in config and home.tool == "pnpm":
        raise ManifestError(
            f"{path}: publishConfig.name is {config['name']!r}, and a package has one name here",
            hint="Name the package as it is published, or leave it out with `exclude-packages`.",
        )
    given = config.get("directory", "")
    if not isinstance(given, str) or given.startswith("/") or ".." in given.split("/"):
        raise ManifestError(
            f"{path}: publishConfig.directory is {given!r}, which is not inside the package",
            hint='Write a path relative to the package, without "..": "dist".',
        )
    return "/".join(PurePosixPath(given).parts)


def apply_publish_config(text: str, tool: Tool) -> str:
    """The same text where `tool` would leave it as it is."""
    document = manifest.parse_manifest(text)
    config = document.get("publishConfig")
    if not isinstance(config, dict):
        return text
    moved = {key: value for key, value in config.items() if key in _FIELDS.get(tool, ())}
    if not moved:
        return text
    kept = {key: value for key, value in config.items() if key not in moved}
    document = {**document, **moved, "publishConfig": kept}
    if not kept:
        del document["publishConfig"]
    found = _INDENT.search(text)
    indent = found["indent"] if found else None
    return json.dumps(document, indent=indent, ensure_ascii=False) + "\n"
