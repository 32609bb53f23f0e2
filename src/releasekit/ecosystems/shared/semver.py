"""Versions of semver, parsed and ordered; ranges differ between ecosystems.

https://semver.org/
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import total_ordering
from typing import Final, Self

# https://github.com/npm/node-semver/blob/main/internal/constants.js
MAX_CHARS: Final = 256
NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_PRE: Final = rf"(?:{NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
PRE: Final = rf"{_PRE}(?:\.{_PRE})*"
BUILD: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION: Final = re.compile(
    rf"({NUMBER})\.({NUMBER})\.({NUMBER})(?:-(?P<pre>{PRE}))?(?:\+(?P<build>{BUILD}))?"
)


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """`pre` holds the prerelease identifiers, numbers as int. `build` says nothing about order: two
    versions that differ in it are equal, and a registry takes only one of them.
    """

    release: tuple[int, int, int]
    pre: tuple[int | str, ...] = ()
    build: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError for an invalid version."""
        found = _VERSION.fullmatch(text) if len(text) <= MAX_CHARS else None
        if found is None:
            raise ValueError(f"{text[:MAX_CHARS]!r} is not a version")
        release = (int(found[1]), int(found[2]), int(found[3]))
        return cls(release, identifiers(found["pre"]), found["build"] or "")

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key()

    def _key(self) -> tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]:
        # Numbers come before words, and a release after all its prereleases.
        # https://semver.org/#spec-item-11
        pre = tuple(
            (False, each, "") if isinstance(each, int) else (True, 0, each) for each in self.pre
        )
        return self.release, not self.pre, pre


def identifiers(text: str | None) -> tuple[int | str, ...]:
    """The identifiers of a prerelease, in their order; empty for None."""
    words = text.split(".") if text else []
    return tuple(int(word) if word.isdigit() else word for word in words)
