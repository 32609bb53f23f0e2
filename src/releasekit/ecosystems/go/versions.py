"""Versions as Go writes them, `v1.2.3`, and where to find that of a module: go.mod has no place
for it. https://go.dev/ref/mod#versions
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.go import gomod
from releasekit.ecosystems.shared.semver import Version
from releasekit.errors import ConfigError, ManifestError
from releasekit.problems import Problem

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.go import Options

# https://go.dev/ref/mod#pseudo-versions
_PSEUDO: Final = re.compile(r".*[.-](?:[0-9]+\.)*[0-9]{14}-[0-9A-Fa-f]{12}")
_NONE: Final = Version((-1, 0, 0))
# `const Version = "1.2.3"`, `"version": "1.2.3"`, `version = "1.2.3"`.
_ASSIGNED: Final = re.compile(
    r"""\bversion["']?\s*(?::=|=|:)\s*["'`](v?[0-9]+\.[0-9]+\.[0-9][0-9A-Za-z.+-]*)["'`]""",
    re.IGNORECASE,
)


def parse_version(version: str) -> Version:
    """For sorting and comparing, by precedence; what is no version comes first."""
    try:
        return Version.parse(version.removeprefix("v")) if version.startswith("v") else _NONE
    except ValueError:
        return _NONE


def is_release_version(version: str) -> bool:
    """Whether a tag may have this version: no build metadata, no pseudo-version."""
    parsed = parse_version(version)
    return parsed is not _NONE and not parsed.build and _PSEUDO.fullmatch(version) is None


def version_of(module: str, directory: Path, root: Path, options: Options) -> str:
    """The version of a module with its `v`, as releasekit.toml or a version file says; empty when
    nothing does. Raises ConfigError for a version file without a version.
    """
    where = directory.relative_to(root).as_posix()
    named = options.versions.get(where) or options.versions.get(module)
    if named is None and options.version_file:
        levels = [each for each in (directory, *directory.parents) if each.is_relative_to(root)]
        for path in (level / options.version_file for level in levels):
            if path.is_file():
                return _with_v(read_version(path))
    return _with_v(named or options.version)


def refuse_unknown(options: Options, known: set[str]) -> None:
    """Raises ConfigError for an entry of `versions` that names no module: a typo must not leave a
    module unpublished.
    """
    for key in options.versions:
        if key not in known:
            raise ConfigError(
                f"{options.where()} versions names {key!r}, which is no module here",
                hint='Write its directory, "." for the root, or its module path.',
                problem=Problem.UNKNOWN_NAME,
            )


def read_version(path: Path) -> str:
    """The version a file holds: its only line, or the first value of a `version`."""
    text = gomod.read_text(path).strip()
    if is_release_version(_with_v(text)):
        return text
    match = _ASSIGNED.search(text)
    if match is None:
        raise ManifestError(
            f"{path} holds no version",
            hint='Write one line like 1.2.3, or an assignment like `const Version = "1.2.3"`.',
        )
    return match[1]


def _with_v(version: str) -> str:
    return f"v{version}" if version and version[0].isdigit() else version
