"""Ranges as node-semver has them: https://github.com/npm/node-semver"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from releasekit.ecosystems.shared.ranges import PARTIAL, Comparator, satisfied

if TYPE_CHECKING:
    from releasekit.ecosystems.shared.semver import Version

_COMPARATOR: Final = re.compile(rf"(?P<operator>[<>]=?|=|~>?|\^)?[v=\s]*(?:{PARTIAL})?")
_HYPHEN: Final = re.compile(r"\s*(\S+)\s+-\s+(\S+)\s*")


@dataclass(frozen=True, slots=True)
class Range:
    """Alternatives, each a list of comparators that all have to hold."""

    alternatives: tuple[tuple[Comparator, ...], ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError for what is no range: a dist-tag, a URL, a path."""
        return cls(tuple(_comparators(part) for part in text.split("||")))

    def __contains__(self, version: Version) -> bool:
        return any(satisfied(each, version, skips=_skips) for each in self.alternatives)

    @property
    def open(self) -> bool:
        """Whether it says nothing: `*`, or an empty string."""
        return any(
            all(comparator.low is comparator.high is None for comparator in comparators)
            for comparators in self.alternatives
        )


def _comparators(text: str) -> tuple[Comparator, ...]:
    if hyphen := _HYPHEN.fullmatch(text):
        low, high = hyphen.groups()
        return _comparator(f">={low}"), _comparator(f"<={high}")
    # An operator may stand apart from its version.
    joined = re.sub(r"(?<=[<>=~^])\s+", "", text)
    return tuple(_comparator(word) for word in joined.split())


def _comparator(text: str) -> Comparator:
    found = _COMPARATOR.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no range")
    return Comparator.from_match(found["operator"] or "=", found)


def _skips(comparator: Comparator, prerelease: Version) -> bool:
    """`>=1.2` begins with 1.2.0, whatever prereleases of that are asked for beside it.

    https://github.com/npm/node-semver/blob/main/classes/range.js (replaceXRange)
    """
    low = comparator.low
    return comparator.is_shortened and low is not None and low.release == prerelease.release
