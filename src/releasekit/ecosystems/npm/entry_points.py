"""Files that a package.json promises and the tarball around it does not hold.

Usually the package was not built, or `files` leaves out what was. What counts is what Node.js and
TypeScript look for: https://nodejs.org/api/packages.html#package-entry-points
and https://www.typescriptlang.org/docs/handbook/declaration-files/publishing.html
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any, Final

from releasekit.ecosystems.npm.manifest import list_bundled
from releasekit.ecosystems.npm.tarball import has_bundled, read_artifact, refuse_unresolvable
from releasekit.ecosystems.shared.documents import table_in
from releasekit.ecosystems.shared.packages import not_a_package
from releasekit.errors import ConfigError
from releasekit.model import PackageWarning, WarningName
from releasekit.report.text import few
from releasekit.text.globs import Patterns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from releasekit.model import Artifact, Package

# A package may define further conditions for its tests, which lead to sources that are not
# published; users set these.
# https://nodejs.org/api/packages.html#conditional-exports
_CONDITIONS: Final = frozenset(
    (
        *("browser", "bun", "default", "deno", "edge-light", "import", "module", "module-sync"),
        *("node", "production", "react-native", "require", "types", "worker", "workerd"),
    )
)
# What is tried for a path by Node.js https://nodejs.org/api/modules.html#all-together, by bundlers
# https://webpack.js.org/configuration/resolve/#resolveextensions, by TypeScript
# https://www.typescriptlang.org/docs/handbook/modules/reference.html#extensionless-relative-paths
_NODE: Final = (".js", ".json", ".node")
_TYPES: Final = (".d.ts", ".ts", ".tsx", ".d.mts", ".d.cts")
_TRIED: Final[Mapping[str, Sequence[str]]] = {
    "main": _NODE,
    "module": (".mjs", *_NODE),
    "types": _TYPES,
    "typings": _TYPES,
}
# https://github.com/npm/npm-packlist/blob/main/lib/index.js
ALWAYS_PACKED: Final = re.compile(
    r"package\.json|(?:copying|licen[cs]e|readme)(?:\..*)?", re.IGNORECASE
)
# All names, each compared with each pattern: a second of work.
_MAX_COMPARED_CHARS: Final = 100_000_000


def find_warnings(package: Package, artifacts: Sequence[Artifact]) -> Iterator[PackageWarning]:
    """Blocks. Raises PackageError for a file that is not a tarball."""
    for artifact in artifacts:
        what = f"{package}: {artifact.filename}"
        tarball = read_artifact(artifact, what)
        try:
            refuse_unresolvable(tarball, what)
        except ConfigError as error:  # a script may have written anything
            raise not_a_package(str(error)) from error
        if patterns := count_excessive_patterns(tarball.manifest, tarball.names):
            yield PackageWarning(
                name=WarningName.MISSING_FILES,
                message=f"its package.json names {patterns} patterns, too many to look for "
                f"each of them among the {len(tarball.names)} files of the tarball",
            )
        elif missing := find_missing_files(tarball.manifest, tarball.names):
            yield PackageWarning(
                name=WarningName.MISSING_FILES,
                message=f"its package.json names {few(missing)}, which the tarball does not hold: "
                "build it first, or correct `files`",
            )


def count_excessive_patterns(document: Mapping[str, Any], names: Collection[str]) -> int:
    """How many it names, where `find_missing_files` would take too long; else 0."""
    patterns = {path for _, path in _list_named(document) if _is_pattern(path)}
    return len(patterns) if len(patterns) * sum(map(len, names)) > _MAX_COMPARED_CHARS else 0


def find_missing_files(document: Mapping[str, Any], names: Collection[str]) -> list[str]:
    """Each as `key "path"`, once; `names` are the files of the tarball, relative to its root."""
    missing = list_missing(document, names)
    # Whoever bundles all of them leaves out those of other platforms, and works without.
    optional = table_in(document, "optionalDependencies")
    bundled = [name for name in list_bundled(document) if name in optional]
    missing += (("bundleDependencies", name) for name in bundled if not has_bundled(names, name))
    return [f'{key} "{path}"' for key, path in missing]


def list_missing(document: Mapping[str, Any], names: Collection[str]) -> list[tuple[str, str]]:
    """Each file that is not among these `names`, once, by the key that leads there."""
    missing: dict[tuple[str, str], None] = {}
    for key, extensions in _TRIED.items():
        path = document.get(key)
        # Packages of types alone have an empty one.
        if isinstance(path, str) and path:
            ends = ("", *extensions, *(f"/index{extension}" for extension in extensions))
            if not any(posixpath.normpath(f"{path}{end}") in names for end in ends):
                missing[key, path] = None
    for key, path in dict.fromkeys(_list_named(document)):
        wanted = posixpath.normpath(path)
        there = _matches(path, names) if _is_pattern(path) else wanted in names
        if not there:
            missing[key, path] = None
    return [*missing, *(("files", path) for path in _list_in_vain(document.get("files"), names))]


def _list_in_vain(files: object, names: Collection[str]) -> list[str]:
    """All of `files` where they name no file: one in ten packages lists some that do not exist, and
    works without.
    """
    listed = [
        each
        for each in (files if isinstance(files, list) else ())
        if isinstance(each, str)
        and not each.startswith("!")
        and not ALWAYS_PACKED.fullmatch(each.removeprefix("./").removeprefix("/"))
    ]
    # As npm compares them.
    patterns = Patterns.parse((each.lower() for each in listed), rooted=True)
    takes_all = any(not glob.segments for glob, _ in patterns.globs)
    if takes_all or patterns.too_many_for(names) or any(patterns.names(n.lower()) for n in names):
        return []
    return listed


def _list_named(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    commands = document.get("bin")
    paths = commands.values() if isinstance(commands, dict) else [commands]
    yield from (("bin", path) for path in paths if isinstance(path, str))
    yield from (("exports", path) for path in list_entry_points(document.get("exports")))


def list_entry_points(exports: object) -> Iterator[str]:
    """All paths that lead users into the package; of a list, the first path counts."""
    pending = [exports]
    while pending:
        target = pending.pop()
        if isinstance(target, str):
            yield target
        elif isinstance(target, list):
            pending.append(next((each for each in target if isinstance(each, str)), None))
        elif isinstance(target, dict):
            led = [key for key in target if key.startswith(".") or key in _CONDITIONS]
            pending += [target[key] for key in reversed(led)]


def _is_pattern(path: str) -> bool:
    return path.endswith("/") or "*" in path


def _matches(pattern: str, names: Collection[str]) -> bool:
    """All its stars stand for the same text. A path that ends with a slash is a directory, which
    Node.js took up to version 16.
    https://nodejs.org/api/packages.html#subpath-patterns
    """
    text = posixpath.normpath(f"{pattern}*" if pattern.endswith("/") else pattern)
    first, *others = text.split("*")
    fixed, stars = len(text) - len(others), len(others)
    for name in names:
        length, rest = divmod(len(name) - fixed, stars)
        star = name[len(first) : len(first) + length]
        if length > 0 and not rest and name == first + star + star.join(others):
            return True
    return False
