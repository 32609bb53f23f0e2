"""Requirements as cargo has them.

https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from releasekit.ecosystems.shared.ranges import PARTIAL, Comparator, Partial, satisfied

if TYPE_CHECKING:
    from releasekit.ecosystems.shared.semver import Version

_COMPARATOR: Final = re.compile(rf"(?P<operator>=|>=|<=|>|<|~|\^)?\s*{PARTIAL}")
_WILDCARD: Final = re.compile(r"[*xX]")


@dataclass(frozen=True, slots=True)
class Requirement:
    """What stands in `version = "…"`. `shortened` are the numbers of versions such as `1.2`, of
    which no prerelease is ever wanted.
    """

    comparators: tuple[Comparator, ...]
    shortened: frozenset[tuple[int, ...]]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError."""
        comparators, shortened = [], set()
        for part in text.split(","):
            found = _COMPARATOR.fullmatch(part.strip())
            if found is None:
                raise ValueError(f"{text!r} is not a version requirement")
            operator = found["operator"] or _default_operator(part)
            partial = Partial.from_match(found)
            comparators.append(Comparator.from_operator(operator, partial))
            # A caret looks no further than the numbers it is given; the others compare the
            # prerelease with none. https://github.com/dtolnay/semver/blob/master/src/eval.rs
            if partial.is_shortened and operator != "^":
                shortened.add(partial.numbers)
        return cls(tuple(comparators), frozenset(shortened))

    def matches(self, version: Version) -> bool:
        if version.pre and any(
            version.release[: len(numbers)] == numbers for numbers in self.shortened
        ):
            return False
        return satisfied(self.comparators, version)


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
