"""Versions as each ecosystem writes them: which one is later, and which one is next at a level."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from packaging.version import InvalidVersion, Version

from releasekit.decided import Level
from releasekit.text.semver import MAX_CHARS, VERSION
from releasekit.text.version_order import version_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from releasekit.decided import Zero
    from releasekit.text.version_order import VersionKey

# A version that begins with such a number says when, not how much has changed.
_FIRST_YEAR: Final = 1900
_MAVEN: Final = re.compile(r"([0-9]+(?:\.[0-9]+)*)([-._+A-Za-z0-9]*)")
_SNAPSHOT: Final = re.compile(r"[-.]?snapshot", re.IGNORECASE)
# https://maven.apache.org/pom.html#version-order-specification: a1 is alpha-1, and a alone is not.
_BEFORE: Final = re.compile(
    r"[-._]?(?<![A-Za-z])(?:(?:alpha|beta|milestone|rc|cr)[-.]?[0-9]*+|[abm][0-9]++)(?![A-Za-z])",
    re.IGNORECASE,
)
# What counts the releases of one version does not stay with the next.
_AFTER: Final = re.compile(r"(?:[-.]?sp[-.]?[0-9]*|-[0-9]+)\Z", re.IGNORECASE)


class Parts(Struct, frozen=True):
    """`head` stands before the numbers, as an epoch does; `tail` is what every later version keeps
    behind them. A placeholder is what a tree has between releases, and nobody releases.
    """

    canonical: str
    numbers: tuple[int, ...]
    head: str = ""
    tail: str = ""
    is_prerelease: bool = False
    is_placeholder: bool = False

    def spell(self, numbers: Sequence[int]) -> str:
        return f"{self.head}{'.'.join(map(str, numbers))}{self.tail}"


class Numbering(Struct, frozen=True):
    """The versions of an ecosystem; `take_apart` gives None for what is none. Each method raises
    ValueError for that. `labels` are those that a prerelease may have, with what stands for each
    before its number; empty where any may.
    """

    take_apart: Callable[[str], Parts | None]
    labels: Mapping[str, str] = field(default_factory=dict)

    def read(self, version: str) -> Parts:
        parts = self.take_apart(version) if len(version) <= MAX_CHARS else None
        if parts is None:
            raise ValueError(f"{version[:MAX_CHARS]!r} is not a version")
        return parts

    def check(self, version: str) -> str:
        """Its canonical spelling."""
        return self.read(version).canonical

    def order(self, version: str) -> VersionKey:
        """Sorts versions, also those of several ecosystems."""
        return version_key(self.check(version))

    def bump(self, version: str, level: Level, zero: Zero) -> str:
        """The next stable version, spelled like `version`; without a level, as `stable`. Raises
        ValueError for a date, which no level leads on from.
        """
        parts = self.read(version)
        numbers = parts.numbers
        if level is Level.NONE:
            return self.stable(version)
        if numbers[0] >= _FIRST_YEAR:
            raise ValueError(f"{version} is a date, and no level says which version follows it")
        position = _find_position(numbers, level, zero)
        if parts.is_prerelease and not any(numbers[position + 1 :]):
            return parts.spell(numbers)
        kept = [*numbers, 0, 0][:position]
        behind = [0] * (len(numbers) - position - 1)
        return parts.spell([*kept, [*numbers, 0, 0][position] + 1, *behind])

    def stable(self, version: str) -> str:
        """`version` itself, or what it is a prerelease of, spelled like it."""
        parts = self.read(version)
        return parts.spell(parts.numbers) if parts.is_prerelease else version

    def prerelease(self, version: str, label: str, number: int) -> str:
        """Of a stable version."""
        parts = self.read(version)
        return f"{self._spell_label(parts, label)}{number}{parts.tail}"

    def find_number(self, version: str, label: str, target: str) -> int:
        """Which prerelease of a stable version it is: from 1, or from 0 where another tool decided
        it; -1 for any other version.
        """
        parts = self.read(target)
        before, after = map(re.escape, (self._spell_label(parts, label), parts.tail))
        found = re.fullmatch(rf"{before}([0-9]{{1,9}}){after}(?:\+.*)?", self.check(version))
        number = int(found[1]) if found else -1
        if not found and self.labels and (last := re.search(r"[0-9]{1,9}$", version)):
            # What Maven has as -M1 or -RC1 has its number as well.
            # https://maven.apache.org/pom.html#version-order-specification
            same = self.order(version) == self.order(self.prerelease(target, label, int(last[0])))
            number = int(last[0]) if same else -1
        # 1.3.0.dev0 holds the place of a version.
        return number or (-1 if self.read(version).is_placeholder else 0)

    def _spell_label(self, parts: Parts, label: str) -> str:
        if self.labels and label not in self.labels:
            raise ValueError(f"a prerelease is called one of {', '.join(self.labels)}")
        joint = self.labels.get(label, f"-{label}.")
        return f"{parts.head}{'.'.join(map(str, parts.numbers))}{joint}"

    def respell(self, version: str, numbers: Sequence[int]) -> str:
        """Other numbers, spelled like `version`."""
        parts = self.read(version)
        needed = max((count for count, number in enumerate(numbers, 1) if number), default=1)
        count = max(needed, len(parts.numbers))
        return self.check(parts.spell([*numbers, *[0] * count][:count]))


def _find_position(numbers: Sequence[int], level: Level, zero: Zero) -> int:
    """Which number a level raises. Below 1.0.0, `shift` raises the one that `^` keeps, and the ones
    behind it.
    """
    position = Level.MAJOR - level
    if numbers[0] or zero == "literal":
        return position
    if zero == "minor":
        return max(position, 1)
    leading = next((place for place, number in enumerate(numbers) if number), 2)
    return min(position + leading, 2)


def _take_python(version: str) -> Parts | None:
    """https://packaging.python.org/en/latest/specifications/version-specifiers/"""
    try:
        parsed = Version(version)
    except InvalidVersion:
        return None
    return Parts(
        canonical=str(parsed),
        numbers=parsed.release,
        head=f"{parsed.epoch}!" if parsed.epoch else "",
        # That of a development release names its commit, and no later version.
        tail=f"+{parsed.local}" if parsed.local and not parsed.is_devrelease else "",
        is_prerelease=parsed.is_prerelease,
        is_placeholder=parsed.is_devrelease,
    )


def _take_semver(version: str) -> Parts | None:
    found = VERSION.fullmatch(version)
    if found is None:
        return None
    pre = found["pre"] or ""
    return Parts(
        canonical=version,
        numbers=(int(found[1]), int(found[2]), int(found[3])),
        is_prerelease=bool(pre),
        is_placeholder=pre.partition(".")[0].lower() in {"dev", "snapshot"},
    )


def _take_go(version: str) -> Parts | None:
    """With the `v` of its tags or without. https://go.dev/ref/mod#versions"""
    return _take_semver(version.removeprefix("v")) if "+" not in version else None


def _take_maven(version: str) -> Parts | None:
    """https://maven.apache.org/pom.html#version-order-specification"""
    found = _MAVEN.fullmatch(version)
    if found is None:
        return None
    released = _SNAPSHOT.sub("", found[2])
    stable = _BEFORE.sub("", released)
    return Parts(
        canonical=version,
        numbers=tuple(map(int, found[1].split("."))),
        tail=_AFTER.sub("", stable),
        is_prerelease=stable != found[2],
        is_placeholder=released != found[2],
    )


_SEMVER: Final = Numbering(_take_semver)
# https://packaging.python.org/en/latest/specifications/version-specifiers/#pre-releases
_OF_PYTHON: Final = {"rc": "rc", "beta": "b", "b": "b", "alpha": "a", "a": "a", "dev": ".dev"}
_OF_MAVEN: Final = {each: f"-{each}." for each in ("rc", "beta", "alpha", "milestone")}
_OTHERS: Final = {
    "pypi": Numbering(_take_python, _OF_PYTHON),
    "go": Numbering(_take_go),
    "maven": Numbering(_take_maven, _OF_MAVEN),
}


def numbering_of(ecosystem: str) -> Numbering:
    """That of Semantic Versioning for ecosystems that are not known here."""
    return _OTHERS.get(ecosystem, _SEMVER)
