"""Requirements as cargo has them.

https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from releasekit.ecosystems.shared.semver import PARTIAL, Comparator, satisfied

if TYPE_CHECKING:
    from releasekit.ecosystems.shared.semver import Version

_COMPARATOR: Final = re.compile(rf"(?P<operator>=|>=|<=|>|<|~|\^)?\s*{PARTIAL}")
_WILDCARD: Final = re.compile(r"[*xX]")


@dataclass(frozen=True, slots=True)
class Requirement:
    """What stands in `version = "…"`."""

    comparators: tuple[Comparator, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError."""
        comparators = []
        for part in text.split(","):
            found = _COMPARATOR.fullmatch(part.strip())
            if found is None:
                raise ValueError(f"{text!r} is not a version requirement")
            operator = found["operator"] or _default_operator(part)
            comparators.append(Comparator.from_match(operator, found))
        return cls(tuple(comparators))

    def matches(self, version: Version) -> bool:
        return satisfied(self.comparators, version, skips=_skips)


def _skips(comparator: Comparator, prerelease: Version) -> bool:
    """`1.2` stands for no prerelease of 1.2, but `^1.2` does not look at what comes after.

    https://github.com/dtolnay/semver/blob/master/src/eval.rs
    """
    numbers = comparator.numbers
    begins_so = prerelease.release[: len(numbers)] == numbers
    return comparator.is_shortened and comparator.operator != "^" and begins_so


def normalised(requirement: str) -> str:
    """As cargo itself writes a requirement into the index: `1.2+next` becomes `^1.2`."""
    parts = []
    for part in requirement.split(","):
        text = part.partition("+")[0].strip()
        bare = text.lstrip("=<>~^")
        operator = text[: len(text) - len(bare)] or _default_operator(bare)
        parts.append(f"{operator}{bare.strip()}")
    return ", ".join(parts)


def _default_operator(text: str) -> str:
    """`1.2` is `^1.2`, while `1.*` stands for what it says."""
    numbers = re.split(r"[-+]", text, maxsplit=1)[0]
    return "" if _WILDCARD.search(numbers) else "^"
