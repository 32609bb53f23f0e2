"""Versions of semver, parsed and ordered, and what one comparator of a range holds, such as `^1.2`
or `>=1.0.0-rc.1`. npm and cargo agree on it, except for prereleases of shortened versions; they
combine comparators differently.

https://semver.org/, https://github.com/npm/node-semver#ranges and
https://docs.rs/semver/latest/semver/enum.Op.html
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from releasekit.text.semver import BUILD, MAX_CHARS, NUMBER, PRE, VERSION

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence


# As cargo has it; what npm takes at most stands with its manifests.
# https://docs.rs/semver/latest/semver/struct.Version.html
_MAX_NUMBER: Final = 2**64 - 1


class Version(Struct, frozen=True):
    """`pre` holds the prerelease identifiers, numbers as int. `build` says nothing about order: two
    versions that differ in it are equal, and a registry takes only one of them.
    """

    release: tuple[int, int, int]
    pre: tuple[int | str, ...] = ()
    build: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError for an invalid version."""
        found = VERSION.fullmatch(text) if len(text) <= MAX_CHARS else None
        if found is None:
            raise ValueError(f"{text[:MAX_CHARS]!r} is not a version")
        release = (int(found[1]), int(found[2]), int(found[3]))
        if max(release) > _MAX_NUMBER:
            raise ValueError(f"{text!r} has a number above {_MAX_NUMBER}")
        return cls(release, identifiers(found["pre"]), found["build"] or "")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key()

    def __le__(self, other: Version) -> bool:
        return self._key() <= other._key()

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


# No number comes after a wildcard.
_PART: Final = rf"{NUMBER}|[xX*](?!\.[0-9])"
# A version whose last numbers may be missing, or be wildcards.
PARTIAL: Final = (
    rf"(?P<major>{_PART})(?:\.(?P<minor>{_PART})(?:\.(?P<patch>{_PART})"
    rf"(?:-(?P<pre>{PRE}))?)?)?(?:\+{BUILD})?"
)
_LOWEST: Final = Version((0, 0, 0), (0,))


class Comparator(Struct, frozen=True):
    """`numbers` end before the first that is missing: `1.2` stands for every 1.2.x."""

    operator: str
    numbers: tuple[int, ...]
    pre: tuple[int | str, ...]

    @classmethod
    def from_match(cls, operator: str, found: re.Match[str]) -> Self:
        """`found` is a match of `PARTIAL`."""
        parts = [part or "" for part in found.group("major", "minor", "patch")]
        numbers = tuple(int(part) for part in takewhile(str.isdigit, parts))
        return cls(operator, numbers, identifiers(found["pre"]) if len(numbers) == 3 else ())

    @property
    def is_shortened(self) -> bool:
        return len(self.numbers) < 3

    @property
    def release(self) -> tuple[int, int, int]:
        return _filled(self.numbers)

    @property
    def low(self) -> Version | None:
        """The first version that it holds, prereleases included."""
        if not self.numbers or self.operator in {"<", "<="}:
            return None
        return self._end if self.operator == ">" else self._start

    @property
    def high(self) -> Version | None:
        """The first version above all that it holds."""
        if not self.numbers:
            # "*" with an operator holds everything, or nothing.
            return _LOWEST if self.operator in {"<", ">"} else None
        match self.operator:
            case ">" | ">=":
                return None
            case "<":
                return self._start
            case "^":
                # The first number that is not zero may not change, or the last that is given.
                nonzero = (position for position, number in enumerate(self.numbers) if number)
                return self._bumped(next(nonzero, len(self.numbers) - 1))
            case "~" | "~>":
                return self._bumped(min(1, len(self.numbers) - 1))
            case _:
                return self._end

    def holds(self, version: Version) -> bool:
        low, high = self.low, self.high
        return (low is None or low <= version) and (high is None or version < high)

    @property
    def _start(self) -> Version:
        return Version(self.release, (0,) if self.is_shortened else self.pre)

    @property
    def _end(self) -> Version:
        """The first version above all that its version stands for."""
        if self.pre:
            return Version(self.release, (*self.pre, 0))
        return self._bumped(len(self.numbers) - 1)

    def _bumped(self, position: int) -> Version:
        """The first version with a higher number at `position`."""
        return Version(_filled((*self.numbers[:position], self.numbers[position] + 1)), (0,))


def satisfied(
    comparators: Sequence[Comparator],
    version: Version,
    *,
    skips: Callable[[Comparator, Version], bool],
) -> bool:
    """Whether all of them hold it. A prerelease fits if one of them names a prerelease of the same
    release, and none `skips` it.
    https://github.com/npm/node-semver#prerelease-tags and
    https://docs.rs/semver/latest/semver/struct.VersionReq.html#method.matches
    """
    if not all(comparator.holds(version) for comparator in comparators):
        return False
    if not version.pre:
        return True
    named = {comparator.release for comparator in comparators if comparator.pre}
    return version.release in named and not any(skips(each, version) for each in comparators)


def _filled(numbers: Sequence[int]) -> tuple[int, int, int]:
    major, minor, patch = [*numbers, 0, 0, 0][:3]
    return major, minor, patch
