"""Versions as Go writes them: `v1.2.3`, `v1.2.3-rc.1`. https://go.dev/ref/mod#versions"""

from __future__ import annotations

import re
from typing import Final

from releasekit.ecosystems.shared.semver import Version

# https://go.dev/ref/mod#pseudo-versions
_PSEUDO: Final = re.compile(r".*[.-](?:[0-9]+\.)*[0-9]{14}-[0-9A-Fa-f]{12}")
_NONE: Final = Version((-1, 0, 0))


def parse(version: str) -> Version:
    """For sorting and comparing, by precedence; what is no version comes first."""
    try:
        return Version.parse(version.removeprefix("v")) if version.startswith("v") else _NONE
    except ValueError:
        return _NONE


def is_release_version(version: str) -> bool:
    """Whether a tag may have this version: no build metadata, no pseudo-version."""
    parsed = parse(version)
    return parsed is not _NONE and not parsed.build and _PSEUDO.fullmatch(version) is None
