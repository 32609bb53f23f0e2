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
from releasekit.host import contents
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
# What Node.js tries for `main`: https://nodejs.org/api/modules.html#all-together
_TRIED: Final = ("", ".js", ".json", ".node", "/index.js", "/index.json", "/index.node")
_FILES: Final = ("module", "types", "typings")


def warnings_of(package: Package, artifacts: Sequence[Artifact]) -> Iterator[PackageWarning]:
    """Blocks. Raises PackageError for a file that is no tarball."""
    for artifact in artifacts:
        with contents.opened(artifact) as file, file.raw() as raw:
            contained = read_tarball(raw, f"{package}: {artifact.filename}")
        if missing := missing_files(contained.manifest, contained.names):
            yield PackageWarning(
                name=WarningName.MISSING_FILES,
                message=f"its package.json names {few(missing)}, which the tarball does not hold: "
                "build it first, or correct `files`",
            )


def missing_files(document: Mapping[str, Any], names: Collection[str]) -> list[str]:
    """Each as `key "path"`, once; `names` are the files of the tarball, relative to its root."""
    missing = []
    main = document.get("main")
    if isinstance(main, str) and not any(
        posixpath.normpath(f"{main}{end}") in names for end in _TRIED
    ):
        missing.append(f'main "{main}"')
    for key, path in _named(document):
        wanted = posixpath.normpath(path)
        there = _matches(wanted, names) if "*" in wanted else wanted in names
        if not there and f'{key} "{path}"' not in missing:
            missing.append(f'{key} "{path}"')
    return missing


def _named(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in _FILES:
        if isinstance(document.get(key), str):
            yield key, document[key]
    commands = table_in(document, "bin").values()
    yield from (("bin", path) for path in commands if isinstance(path, str))
    yield from (("exports", path) for path in _targets(document.get("exports")))


def _targets(exports: object) -> Iterator[str]:
    """Everything that others are led to; of a list, the first one that is a path counts."""
    if isinstance(exports, str):
        yield exports
    elif isinstance(exports, list):
        yield from _targets(next((each for each in exports if isinstance(each, str)), None))
    elif isinstance(exports, dict):
        for key, target in exports.items():
            if key.startswith(".") or key in _CONDITIONS:
                yield from _targets(target)


def _matches(pattern: str, names: Collection[str]) -> bool:
    """https://nodejs.org/api/packages.html#subpath-patterns"""
    parts = [re.escape(part) for part in pattern.split("*")]
    wanted = re.compile(".+".join(parts))
    return any(wanted.fullmatch(name) for name in names)
