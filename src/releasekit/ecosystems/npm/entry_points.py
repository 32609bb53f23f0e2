"""Files that a package.json promises and the tarball around it does not hold.

Mostly a package that nobody has built, or a `files` list that leaves out what was. What is asked
for is what Node.js and TypeScript look for: https://nodejs.org/api/packages.html#package-entry-points
and https://www.typescriptlang.org/docs/handbook/declaration-files/publishing.html
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any, Final

from releasekit.ecosystems.npm.tarball import read_tarball
from releasekit.ecosystems.shared.documents import table_in
from releasekit.ecosystems.shared.packed import Patterns
from releasekit.host.artifact_reader import open_artifact
from releasekit.model import PackageWarning, WarningName
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from releasekit.model import Artifact, Package

# A package may have conditions of its own for its own tests, which lead to sources that are not
# published; these are the ones that others use.
# https://nodejs.org/api/packages.html#conditional-exports
_CONDITIONS: Final = frozenset(
    (
        *("browser", "bun", "default", "deno", "edge-light", "import", "module", "module-sync"),
        *("node", "production", "react-native", "require", "types", "worker", "workerd"),
    )
)
# What is tried for a path: by Node.js https://nodejs.org/api/modules.html#all-together, by bundlers
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
# Of all names, each held against each pattern: a second of work.
_MAX_COMPARED_CHARS: Final = 100_000_000


def warnings_of(package: Package, artifacts: Sequence[Artifact]) -> Iterator[PackageWarning]:
    """Blocks. Raises PackageError for a file that is no tarball."""
    for artifact in artifacts:
        with open_artifact(artifact) as file, file.raw() as raw:
            contained = read_tarball(raw, f"{package}: {artifact.filename}")
        if patterns := too_many_patterns(contained.manifest, contained.names):
            yield PackageWarning(
                name=WarningName.MISSING_FILES,
                message=f"its package.json names {patterns} patterns, too many to look for "
                f"each of them among the {len(contained.names)} files of the tarball",
            )
        elif missing := missing_files(contained.manifest, contained.names):
            yield PackageWarning(
                name=WarningName.MISSING_FILES,
                message=f"its package.json names {few(missing)}, which the tarball does not hold: "
                "build it first, or correct `files`",
            )


def too_many_patterns(document: Mapping[str, Any], names: Collection[str]) -> int:
    """How many it names, where `missing_files` would take too long; else 0."""
    patterns = {path for _, path in _named(document) if _is_pattern(path)}
    return len(patterns) if len(patterns) * sum(map(len, names)) > _MAX_COMPARED_CHARS else 0


def missing_files(document: Mapping[str, Any], names: Collection[str]) -> list[str]:
    """Each as `key "path"`, once; `names` are the files of the tarball, relative to its root."""
    missing: dict[str, None] = {}
    for key, extensions in _TRIED.items():
        path = document.get(key)
        # An empty one says nothing, as that of packages of types alone.
        if isinstance(path, str) and path and not _is_there(path, extensions, names):
            missing[f'{key} "{path}"'] = None
    for key, path in dict.fromkeys(_named(document)):
        wanted = posixpath.normpath(path)
        there = _matches(path, names) if _is_pattern(path) else wanted in names
        if not there:
            missing[f'{key} "{path}"'] = None
    missing |= {f'files "{path}"': None for path in _listed_in_vain(document.get("files"), names)}
    return [*missing]


def _listed_in_vain(files: object, names: Collection[str]) -> list[str]:
    """All of `files` where nothing is packed because of them: one in ten packages lists some that
    it does without.
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


def _is_there(path: str, extensions: Sequence[str], names: Collection[str]) -> bool:
    ends = ("", *extensions, *(f"/index{extension}" for extension in extensions))
    return any(posixpath.normpath(f"{path}{end}") in names for end in ends)


def _named(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    commands = table_in(document, "bin").values()
    yield from (("bin", path) for path in commands if isinstance(path, str))
    yield from (("exports", path) for path in entry_points(document.get("exports")))


def entry_points(exports: object) -> Iterator[str]:
    """Everything that others are led to; of a list, the first one that is a path counts."""
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
    """All its stars stand for the same. What ends with a slash is a directory, which Node.js took
    up to version 16.

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
