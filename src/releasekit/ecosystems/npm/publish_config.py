"""`publishConfig` beyond registry, tag and access: fields that pnpm and yarn put in place of the
package's own when they pack, so that a workspace runs from its sources and users from what was
built.

https://pnpm.io/package_json#publishconfig and
https://yarnpkg.com/configuration/manifest#publishConfig
"""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.npm import manifest
from releasekit.errors import ManifestError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.ecosystems.npm.workspace import Tool

_YARN: Final = frozenset({"bin", "browser", "exports", "imports", "main", "module", "type"})
# https://github.com/pnpm/pnpm/blob/main/pnpm11/releasing/exportable-manifest/src/overridePublishConfig.ts
_PNPM: Final = _YARN | {
    "cpu", "engines", "es2015", "esnext", "libc", "os", "types", "typesVersions", "typings",
    "umd:main", "unpkg",
}  # fmt: skip
_FIELDS: Final[Mapping[Tool, frozenset[str]]] = {
    "npm": frozenset(),
    "pnpm": _PNPM,
    "yarn": _YARN,
}
_INDENT: Final = re.compile(r"\{\r?\n(?P<indent>[ \t]+)")


def packed_directory(config: Mapping[str, object], path: Path, tool: Tool) -> str:
    """Below the package, the directory that `tool` packs in its place; empty for the package's own.

    Raises ConfigError for one outside of it, or a `name` that only `tool` knows the package by.
    """
    if tool != "pnpm":
        return ""
    if "name" in config:
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


def with_publish_config(text: str, tool: Tool) -> str:
    """The same text where `tool` would leave it as it is."""
    document = manifest.parse_manifest(text)
    config = document.get("publishConfig")
    if not isinstance(config, dict):
        return text
    moved = {key: value for key, value in config.items() if key in _FIELDS[tool]}
    if not moved:
        return text
    kept = {key: value for key, value in config.items() if key not in moved}
    document = {**document, **moved, "publishConfig": kept}
    if not kept:
        del document["publishConfig"]
    found = _INDENT.search(text)
    indent = found["indent"] if found else None
    return json.dumps(document, indent=indent, ensure_ascii=False) + "\n"
