"""The crates of one workspace in several calls of cargo, so that the first of them are uploaded
while others are packaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.model import Package

# Cargo reads the whole workspace for each call, so each has twice as many as the one before.
MOST_IN_FIRST: Final = 16


def chunked(packages: Sequence[Package]) -> list[list[Package]]:
    """`packages`, which are in publish order: first what needs none of the others."""
    ids = {package.id for package in packages}
    first: list[Package] = []
    later: list[Package] = []
    for package in packages:
        waits = any(need.on in ids for need in package.dependencies)
        (later if waits else first).append(package)
    ordered, size = [*first, *later], min(len(first), MOST_IN_FIRST)
    chunks = []
    while ordered and size:
        chunks.append(ordered[:size])
        ordered, size = ordered[size:], 2 * size
    return [*chunks, ordered] if ordered else chunks
