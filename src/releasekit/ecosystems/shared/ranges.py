"""What one comparator of a range holds, such as `^1.2` or `>=1.0.0-rc.1`. npm and cargo mean the
same by it, but for prereleases of shortened versions; how they combine comparators differs.

https://github.com/npm/node-semver#ranges and https://docs.rs/semver/latest/semver/enum.Op.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from releasekit.ecosystems.shared.semver import BUILD, NUMBER, PRE, Version, identifiers

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

_PART: Final = rf"{NUMBER}|[xX*]"
# A version whose last numbers may be missing, or be wildcards.
PARTIAL: Final = (
    rf"(?P<major>{_PART})(?:\.(?P<minor>{_PART})(?:\.(?P<patch>{_PART})"
    rf"(?:-(?P<pre>{PRE}))?)?)?(?:\+{BUILD})?"
)
_LOWEST: Final = Version((0, 0, 0), (0,))


@dataclass(frozen=True, slots=True)
class Partial:
    """`numbers` are those before the first that is missing: `1.2` stands for every 1.2.x."""

    numbers: tuple[int, ...]
    pre: tuple[int | str, ...] = ()

    @classmethod
    def from_match(cls, found: re.Match[str]) -> Self:
        """Of a match of `PARTIAL`."""
        numbers: list[int] = []
        for part in found.group("major", "minor", "patch"):
            if part is None or not part.isdigit():
                break
            numbers.append(int(part))
        return cls(tuple(numbers), identifiers(found["pre"]) if len(numbers) == 3 else ())

    @property
    def is_shortened(self) -> bool:
        return len(self.numbers) < 3

    @property
    def release(self) -> tuple[int, int, int]:
        return _filled(self.numbers)

    @property
    def lowest(self) -> Version:
        """Of all that it stands for, prereleases included."""
        return Version(self.release, (0,) if self.is_shortened else self.pre)

    @property
    def end(self) -> Version:
        """The lowest version above all that it stands for."""
        if self.pre:
            return Version(self.release, (*self.pre, 0))
        return self.bumped(len(self.numbers) - 1)

    def bumped(self, position: int) -> Version:
        """The lowest version, prereleases included, with a higher number at `position`."""
        return Version(_filled((*self.numbers[:position], self.numbers[position] + 1)), (0,))


@dataclass(frozen=True, slots=True)
class Comparator:
    """Every version from `low` on that is below `high`. `prereleases_of` is the release of which it
    names a prerelease.
    """

    low: Version | None = None
    high: Version | None = None
    prereleases_of: tuple[int, int, int] | None = None

    @classmethod
    def from_operator(cls, operator: str, partial: Partial) -> Self:
        """No operator means `=`."""
        if not partial.numbers:
            # "*", and what an operator makes of it: everything, or nothing at all.
            return cls(high=_LOWEST if operator in {"<", ">"} else None)
        named = partial.release if partial.pre else None
        match operator:
            case "<":
                return cls(None, partial.lowest, named)
            case "<=":
                return cls(None, partial.end, named)
            case ">":
                return cls(partial.end, None, named)
            case ">=":
                return cls(partial.lowest, None, named)
            case "^":
                return cls(partial.lowest, partial.bumped(_caret_position(partial)), named)
            case "~" | "~>":
                position = min(1, len(partial.numbers) - 1)
                return cls(partial.lowest, partial.bumped(position), named)
            case _:
                return cls(partial.lowest, partial.end, named)

    def __contains__(self, version: Version) -> bool:
        return (self.low is None or self.low <= version) and (
            self.high is None or version < self.high
        )


def satisfied(comparators: Sequence[Comparator], version: Version) -> bool:
    """Whether all of them hold it. A prerelease is wanted only by who names one of its release.

    https://github.com/npm/node-semver#prerelease-tags and
    https://docs.rs/semver/latest/semver/struct.VersionReq.html#method.matches
    """
    return all(version in comparator for comparator in comparators) and (
        not version.pre
        or any(comparator.prereleases_of == version.release for comparator in comparators)
    )


def _caret_position(partial: Partial) -> int:
    """Which number may not change: the first that is not zero, or the last that is given."""
    nonzero = (position for position, number in enumerate(partial.numbers) if number)
    return next(nonzero, len(partial.numbers) - 1)


def _filled(numbers: Sequence[int]) -> tuple[int, int, int]:
    major, minor, patch = [*numbers, 0, 0, 0][:3]
    return major, minor, patch
