"""`publishConfig` beyond registry, tag and access: fields that another client puts in their place
when it packs, so that a workspace runs from its sources and others from what was built.

https://pnpm.io/package_json#publishconfig and
https://yarnpkg.com/configuration/manifest#publishConfig
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.npm import manifest
from releasekit.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.ecosystems.npm.workspace import Tool

_YARN: Final = frozenset({"bin", "browser", "exports", "imports", "main", "module", "type"})
# https://github.com/pnpm/pnpm/blob/main/releasing/exportable-manifest/src/overridePublishConfig.ts
_PNPM: Final = _YARN | {
    "cpu", "es2015", "esnext", "libc", "os", "types", "typesVersions", "typings", "umd:main",
    "unpkg",
}  # fmt: skip
_FIELDS: Final[Mapping[Tool, frozenset[str]]] = {
    "npm": frozenset(),
    "pnpm": _PNPM,
    "yarn": _YARN,
}
_INDENT: Final = re.compile(r"\{\r?\n(?P<indent>[ \t]+)")


def applied(text: str, tool: Tool) -> str:
    """The same text where `tool` would leave it as it is.

    Raises PlanError for a directory that only `tool` knows how to pack.
    """
    document = manifest.parse(text)
    config = document.get("publishConfig")
    if not isinstance(config, dict):
        return text
    if tool == "pnpm" and "directory" in config:
        raise PlanError(
            f"npm:{document.get('name')}: publishConfig.directory is {config['directory']!r}, and "
            "packages are packed from their own directory here",
            hint="List the built files in `files`, or publish this package with pnpm and leave it "
            "out with `exclude-packages`.",
        )
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
