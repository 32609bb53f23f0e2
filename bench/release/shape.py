"""What is released: packages in levels, each of which needs two of the level below."""

from __future__ import annotations

from typing import Final

Needs = "Mapping[str, tuple[str, ...]]"
LEVELS: Final = 6
VERSION: Final = "1.0.0"


def levels_of(packages: int) -> int:
    """Ten packages have no room for six levels with two needs each."""
    return LEVELS if packages >= 2 * LEVELS else max(1, packages // 2)


def shape(packages: int) -> dict[str, tuple[str, ...]]:
    """Names with those they need, in an order that publishes what is needed first."""
    levels = levels_of(packages)
    rows: list[list[str]] = [[] for _ in range(levels)]
    for number in range(packages):
        level = number * levels // packages
        rows[level].append(f"bench-{level}-{len(rows[level])}")
    made: dict[str, tuple[str, ...]] = {}
    for level, names in enumerate(rows):
        below = rows[level - 1] if level else []
        for at, name in enumerate(names):
            needs = {below[place % len(below)] for place in (at, at + 1)} if below else ()
            made[name] = tuple(sorted(needs))
    return made
