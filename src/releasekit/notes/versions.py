"""Versions of any ecosystem in one order, good enough to say which came before."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# Numbers, then whatever is no release yet: semver's `-rc.1`, PEP 440's `rc1` and `.dev3`, Maven's
# `-SNAPSHOT` and `-M2`. https://semver.org/#spec-item-11,
# https://packaging.python.org/en/latest/specifications/version-specifiers/,
# https://maven.apache.org/pom.html#version-order-specification
_VERSION: Final = re.compile(r"[vV]?(?:\d+!)?(\d{1,18}(?:\.\d{1,18})*)(.*)", re.DOTALL)
_REST: Final = re.compile(r"[0-9A-Za-z.+_-]{0,200}")
_PARTS: Final = re.compile(r"\d{1,18}|[a-z]+")
# What follows a release, and does not come before it.
_AFTER: Final = re.compile(r"[.-]?(?:post|rev|r|ga|final|release|sp|jre|android)(?![a-z])")


@dataclass(frozen=True, slots=True, order=True)
class Order:
    """`<` is "came before"."""

    release: tuple[int, ...]
    is_stable: bool
    rest: tuple[tuple[int, int, str], ...]


def order(version: str) -> Order | None:
    """None for what is no version."""
    match = _VERSION.fullmatch(version)
    if match is None or not _REST.fullmatch(match[2]):
        return None
    numbers = [int(number) for number in match[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    rest = match[2].partition("+")[0].lower()
    is_stable = not rest or _AFTER.match(rest) is not None
    parts = tuple(
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in _PARTS.findall(rest)
    )
    return Order(tuple(numbers), is_stable, parts)


def is_stable(version: str) -> bool:
    """Whether it is a release; what is no version is none."""
    found = order(version)
    return found is not None and found.is_stable
