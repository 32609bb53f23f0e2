"""Ranges as node-semver has them: https://github.com/npm/node-semver"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from releasekit.ecosystems.shared.semver import BUILD, NUMBER, PRE, Version, identifiers

_PARTIAL: Final = re.compile(
    rf"[v=\s]*(?P<major>{NUMBER}|[xX*])?(?:\.(?P<minor>{NUMBER}|[xX*]))?"
    rf"(?:\.(?P<patch>{NUMBER}|[xX*]))?"
    rf"(?:-(?P<pre>{PRE}))?(?:\+{BUILD})?"
)
_COMPARATOR: Final = re.compile(r"(?P<operator>[<>]=?|=|~>?|\^|)\s*(?P<version>\S*)")
_HYPHEN: Final = re.compile(r"\s*(\S+)\s+-\s+(\S+)\s*")


@dataclass(frozen=True, slots=True)
class _Bound:
    operator: str
    version: Version

    def holds(self, version: Version) -> bool:
        match self.operator:
            case "<":
                return version < self.version
            case "<=":
                return version <= self.version
            case ">":
                return version > self.version
            case ">=":
                return version >= self.version
            case _:
                return version == self.version


@dataclass(frozen=True, slots=True)
class Range:
    """Alternatives, each a set of bounds that all have to hold."""

    alternatives: tuple[tuple[_Bound, ...], ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError for what is no range: a dist-tag, a URL, a path."""
        return cls(tuple(_bounds(part) for part in text.split("||")))

    def __contains__(self, version: Version) -> bool:
        return any(_satisfied(bounds, version) for bounds in self.alternatives)

    @property
    def open(self) -> bool:
        """Whether it says nothing: `*`, or an empty string."""
        return any(not bounds for bounds in self.alternatives)


def _satisfied(bounds: tuple[_Bound, ...], version: Version) -> bool:
    if not all(bound.holds(version) for bound in bounds):
        return False
    # A prerelease is only wanted by who names one of the same release.
    # https://github.com/npm/node-semver#prerelease-tags
    return not version.pre or any(
        bound.version.pre and bound.version.release == version.release for bound in bounds
    )


def _bounds(text: str) -> tuple[_Bound, ...]:
    if hyphen := _HYPHEN.fullmatch(text):
        low, high = hyphen.groups()
        return (*_comparator(">=", low), *_comparator("<=", high))
    # An operator may stand apart from its version.
    joined = re.sub(r"(?<=[<>=~^])\s+", "", text)
    bounds: list[_Bound] = []
    for part in joined.split():
        found = _COMPARATOR.fullmatch(part)
        if found is None:  # pragma: no cover - it takes any word
            raise ValueError(f"{text!r} is no range")
        bounds += _comparator(found["operator"], found["version"])
    return tuple(bounds)


def _comparator(operator: str, text: str) -> list[_Bound]:
    found = _PARTIAL.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no range")
    given = [int(found[name]) for name in _leading(found["major"], found["minor"], found["patch"])]
    low = Version(_filled(given), identifiers(found["pre"]) if len(given) == 3 else ())
    if not given:
        # "*", and what an operator makes of it: everything, or nothing at all.
        return [_Bound("<", Version((0, 0, 0), (0,)))] if operator in {"<", ">"} else []
    if operator == "^":
        return _between(low, given, _caret_position(given))
    if operator in {"~", "~>"}:
        return _between(low, given, min(1, len(given) - 1))
    if len(given) == 3:
        return [_Bound(operator or "=", low)]
    return _partial(operator, low, given)


def _partial(operator: str, low: Version, given: list[int]) -> list[_Bound]:
    """A comparator without a patch: ">1.2" is past all of 1.2, "<=1.2" goes to its end."""
    above = _bumped(given, len(given) - 1)
    match operator:
        case ">":
            return [_Bound(">=", Version(above.release))]
        case "<=":
            return [_Bound("<", above)]
        case "<":
            return [_Bound("<", Version(low.release, (0,)))]
        case ">=":
            return [_Bound(">=", low)]
        case _:
            return _between(low, given, len(given) - 1)


def _leading(*parts: str | None) -> list[str]:
    names = []
    for name, part in zip(("major", "minor", "patch"), parts, strict=True):
        if part is None or part in "xX*":
            break
        names.append(name)
    return names


def _caret_position(given: list[int]) -> int:
    """Which number may not change: the first that is not zero, or the last that is given."""
    for position, number in enumerate(given):
        if number:
            return position
    return len(given) - 1


def _between(low: Version, given: list[int], position: int) -> list[_Bound]:
    return [_Bound(">=", low), _Bound("<", _bumped(given, position))]


def _bumped(given: list[int], position: int) -> Version:
    """The lowest version, prereleases included, with a higher number at `position`."""
    return Version(_filled([*given[:position], given[position] + 1]), (0,))


def _filled(given: list[int]) -> tuple[int, int, int]:
    major, minor, patch = [*given, 0, 0, 0][:3]
    return major, minor, patch
