"""Requirements as cargo has them.

https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from releasekit.ecosystems.shared.semver import BUILD, NUMBER, PRE, Version, identifiers

_COMPARATOR: Final = re.compile(
    rf"(=|>=|<=|>|<|~|\^)?\s*(?:({NUMBER})|[*xX])(?:\.(?:({NUMBER})|[*xX]))?"
    rf"(?:\.(?:({NUMBER})|[*xX]))?(?:-({PRE}))?(?:\+{BUILD})?"
)
_WILDCARD: Final = re.compile(r"[*xX]")


@dataclass(frozen=True, slots=True)
class Comparator:
    """One condition; the parts behind the last one that is written are None."""

    operator: str
    major: int | None
    minor: int | None
    patch: int | None
    pre: tuple[int | str, ...]

    @property
    def triple(self) -> tuple[int, int, int]:
        return self.major or 0, self.minor or 0, self.patch or 0

    def matches(self, version: Version) -> bool:
        """https://docs.rs/semver/latest/semver/enum.Op.html"""
        if self.major is None:
            return True
        low = Version(self.triple, self.pre)
        match self.operator:
            case ">":
                return version > low and version.release >= self._end(low)
            case ">=":
                return version >= low
            case "<":
                return version < low
            case "<=":
                return version <= low or version.release < self._end(low)
            case "=":
                return self._begins(version, 3)
            case "~":
                return version >= low and self._begins_loosely(version, 2)
            case _:
                return version >= low and self._begins_loosely(version, self._caret())

    def _end(self, low: Version) -> tuple[int, int, int]:
        """The first version behind all that a shortened one stands for."""
        if self.minor is None:
            return low.release[0] + 1, 0, 0
        return (low.release[0], low.release[1] + 1, 0) if self.patch is None else low.release

    def _begins(self, version: Version, parts: int) -> bool:
        exact = self.patch is None or version.pre == self.pre
        return exact and self._begins_loosely(version, parts)

    def _begins_loosely(self, version: Version, parts: int) -> bool:
        ours = (self.major, self.minor, self.patch)[:parts]
        return all(it in {None, its} for it, its in zip(ours, version.release, strict=False))

    def _caret(self) -> int:
        """How many leading parts a compatible version shares: up to the first that is not 0."""
        for parts, it in enumerate((self.major, self.minor, self.patch), start=1):
            if it:
                return parts
        return 3


@dataclass(frozen=True, slots=True)
class Requirement:
    """What stands in `version = "…"`."""

    comparators: tuple[Comparator, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError."""
        if text.strip() in {"*", "x", "X"}:
            return cls(())
        found = []
        for part in text.split(","):
            match = _COMPARATOR.fullmatch(part.strip())
            if match is None:
                raise ValueError(f"{text!r} is not a version requirement")
            operator, major, minor, patch, pre = match.groups()
            if operator is None:
                operator = "=" if _WILDCARD.search(part.split("-")[0]) else "^"
            parts = [None if part is None else int(part) for part in (major, minor, patch)]
            found.append(Comparator(operator, parts[0], parts[1], parts[2], identifiers(pre)))
        return cls(tuple(found))

    def matches(self, version: Version) -> bool:
        """A prerelease only where a comparator names one of the same release.

        https://docs.rs/semver/latest/semver/struct.VersionReq.html#method.matches
        """
        if not all(comparator.matches(version) for comparator in self.comparators):
            return False
        return not version.pre or any(
            comparator.pre and comparator.triple == version.release
            for comparator in self.comparators
        )


def normalised(requirement: str) -> str:
    """As cargo itself writes a requirement into the index: `1.2` becomes `^1.2`."""
    parts = []
    for part in requirement.split(","):
        text = part.strip()
        bare = text.lstrip("=<>~^")
        operator = text[: len(text) - len(bare)]
        if not operator and not _WILDCARD.search(bare.split("-")[0]):
            operator = "^"
        parts.append(f"{operator}{bare.strip()}")
    return ", ".join(parts)
