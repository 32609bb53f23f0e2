"""How a repository ties its packages together: npm, pnpm or yarn workspaces, or not at all."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from releasekit.ecosystems.npm import globs, manifest
from releasekit.errors import ConfigError
from releasekit.host.files import read_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.ecosystems.shared.globs import Glob

Tool = Literal["npm", "pnpm", "yarn"]
PNPM: Final = "pnpm-workspace.yaml"
YARN: Final = ".yarnrc.yml"
_MAX_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class WorkspaceFiles:
    """`tool` is "yarn" from version 2 on; version 1 packs as npm does. `catalogs` maps a catalog's
    name to the ranges in it.
    """

    tool: Tool
    members: tuple[Glob, ...] = ()
    catalogs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def read_workspace_files(root: Path) -> WorkspaceFiles:
    """What the files in `root` say; raises ConfigError naming file and key."""
    if (root / PNPM).is_file():
        return _pnpm(root)
    top = root / globs.MANIFEST
    document = manifest.read_manifest(top) if top.is_file() else {}
    patterns = document.get("workspaces", [])
    if isinstance(patterns, dict):  # yarn 1: https://classic.yarnpkg.com/lang/en/docs/workspaces/
        patterns = patterns.get("packages", [])
    settings = _yaml(root / YARN) if (root / YARN).is_file() else {}
    return WorkspaceFiles(
        "yarn" if (root / YARN).is_file() else "npm",
        _globs(patterns, where=f"{top}: workspaces"),
        _catalogs(settings, root / YARN),
    )


def _pnpm(root: Path) -> WorkspaceFiles:
    """https://pnpm.io/pnpm-workspace_yaml"""
    path = root / PNPM
    document = _yaml(path)
    found = _globs(document.get("packages", []), where=f"{path}: packages")
    # What pnpm excludes stays excluded, wherever it stands.
    ordered = sorted(found, key=lambda glob: glob.negated)
    return WorkspaceFiles("pnpm", tuple(ordered), _catalogs(document, path))


def _globs(patterns: object, *, where: str) -> tuple[Glob, ...]:
    if not isinstance(patterns, list) or not all(
        isinstance(pattern, str) and pattern for pattern in patterns
    ):
        # Not in full: with YAML's aliases a small file stands for any amount of text.
        raise ConfigError(f"{where} is {reprlib.repr(patterns)}", hint="Write a list of globs.")
    return tuple(globs.parse(patterns, where=where))


def _catalogs(document: Mapping[str, object], path: Path) -> dict[str, Mapping[str, str]]:
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
            raise ConfigError(
                f"{path}: catalog {name!r} is {reprlib.repr(entries)}, not a table of ranges"
            )
        found[str(name)] = {str(key): str(spec) for key, spec in entries.items()}
    return found


def _yaml(path: Path) -> dict[str, object]:
    # Only workspaces that have such a file pay for it.
    import yaml  # noqa: PLC0415

    data = read_file(path, max_bytes=_MAX_BYTES)
    try:
        document = yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{path} is not valid YAML: {reason}") from error
    if not isinstance(document, dict | None):
        raise ConfigError(f"{path} is {type(document).__name__}, not a table")
    return {str(key): value for key, value in (document or {}).items()}
