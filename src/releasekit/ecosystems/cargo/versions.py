"""Versions and requirements as cargo has them.

https://semver.org/ and https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

_NUMBER: Final = r"0|[1-9][0-9]*"
_IDENTIFIERS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION: Final = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_IDENTIFIERS}))?(?:\+({_IDENTIFIERS}))?"
)
_COMPARATOR: Final = re.compile(
    rf"(=|>=|<=|>|<|~|\^)?\s*(?:({_NUMBER})|[*xX])(?:\.(?:({_NUMBER})|[*xX]))?"
    rf"(?:\.(?:({_NUMBER})|[*xX]))?(?:-({_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?"
)
_WILDCARD: Final = re.compile(r"[*xX]")

# Ordered as semver orders it: a release comes after its prereleases, a number before a word.
Key = tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]


@dataclass(frozen=True, slots=True)
class Version:
    """`build` says nothing about order: a registry takes a version once, whatever its build."""

    major: int
    minor: int
    patch: int
    pre: str = ""
    build: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError."""
        match = _VERSION.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a version")
        major, minor, patch, pre, build = match.groups()
        return cls(int(major), int(minor), int(patch), pre or "", build or "")

    @property
    def key(self) -> Key:
        identifiers = self.pre.split(".") if self.pre else []
        return (
            self.major,
            self.minor,
            self.patch,
            not self.pre,
            tuple(
                (not it.isdigit(), int(it) if it.isdigit() else 0, it if not it.isdigit() else "")
                for it in identifiers
            ),
        )

    @property
    def triple(self) -> tuple[int, int, int]:
        return self.major, self.minor, self.patch


@dataclass(frozen=True, slots=True)
class Comparator:
    """One condition; the parts behind the last one that is written are None."""

    operator: str
    major: int | None
    minor: int | None
    patch: int | None
    pre: str

    @property
    def triple(self) -> tuple[int, int, int]:
        return self.major or 0, self.minor or 0, self.patch or 0

    def matches(self, version: Version) -> bool:
        """https://docs.rs/semver/latest/semver/enum.Op.html"""
        if self.major is None:
            return True
        low = Version(*self.triple, self.pre)
        match self.operator:
            case ">":
                return version.key > low.key and version.triple >= self._end(low)
            case ">=":
                return version.key >= low.key
            case "<":
                return version.key < low.key
            case "<=":
                return version.key <= low.key or version.triple < self._end(low)
            case "=":
                return self._begins(version, 3)
            case "~":
                return version.key >= low.key and self._begins_loosely(version, 2)
            case _:
                return version.key >= low.key and self._begins_loosely(version, self._caret())

    def _end(self, low: Version) -> tuple[int, int, int]:
        """The first version behind all that a shortened one stands for."""
        if self.minor is None:
            return low.major + 1, 0, 0
        return (low.major, low.minor + 1, 0) if self.patch is None else low.triple

    def _begins(self, version: Version, parts: int) -> bool:
        exact = self.patch is None or version.pre == self.pre
        return exact and self._begins_loosely(version, parts)

    def _begins_loosely(self, version: Version, parts: int) -> bool:
        ours = (self.major, self.minor, self.patch)[:parts]
        return all(it in {None, its} for it, its in zip(ours, version.triple, strict=False))

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
            parts = [int(it) if it is not None else None for it in (major, minor, patch)]
            found.append(Comparator(operator, parts[0], parts[1], parts[2], pre or ""))
        return cls(tuple(found))

    def matches(self, version: Version) -> bool:
        """A prerelease only where a comparator names one of the same release.

        https://docs.rs/semver/latest/semver/struct.VersionReq.html#method.matches
        """
        if not all(comparator.matches(version) for comparator in self.comparators):
            return False
        return not version.pre or any(
            comparator.pre and comparator.triple == version.triple
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
