"""Versions as Go writes them: `v1.2.3`, `v1.2.3-rc.1`. https://go.dev/ref/mod#versions"""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(
    r"v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
    r"(?:\.(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(\+[0-9A-Za-z.-]+)?"
)
# https://go.dev/ref/mod#pseudo-versions
_PSEUDO: Final = re.compile(r".*[.-](?:[0-9]+\.)*[0-9]{14}-[0-9A-Fa-f]{12}")

# Major, minor, patch, "is a release", identifiers of the prerelease.
Key = tuple[int, int, int, int, tuple[tuple[int, int, str], ...]]


def is_release_version(version: str) -> bool:
    """Whether a tag may have this version: no build metadata, no pseudo-version."""
    match = _VERSION.fullmatch(version)
    return match is not None and not match[5] and _PSEUDO.fullmatch(version) is None


def key(version: str) -> Key:
    """For sorting and comparing, by precedence; what is no version comes first.

    https://semver.org/#spec-item-11
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return -1, 0, 0, 0, ()
    identifiers = tuple(
        (0, int(it), "") if it.isdigit() else (1, 0, it) for it in (match[4] or "").split(".") if it
    )
    return int(match[1]), int(match[2]), int(match[3]), int(not identifiers), identifiers


def major(version: str) -> int:
    return key(version)[0]
