"""What one dependency of a package.json asks for: a range, a package of the workspace, a path, …

Ranges are as node-semver has them: https://github.com/npm/node-semver
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, Self

from releasekit.ecosystems.shared.semver import PARTIAL, Comparator, satisfied

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
        """Raises ValueError for everything else: a dist-tag, a URL, a path."""
        return cls(_parse_alternatives(text))

    def __contains__(self, version: Version) -> bool:
        return any(satisfied(each, version, skips=_skips) for each in self.alternatives)

    @property
    def is_open(self) -> bool:
        """Whether it says nothing: `*`, or an empty string."""
        return any(
            all(comparator.low is comparator.high is None for comparator in comparators)
            for comparators in self.alternatives
        )


# A workspace asks for the same few ranges again and again.
@lru_cache(maxsize=1024)
def _parse_alternatives(text: str) -> tuple[tuple[Comparator, ...], ...]:
    return tuple(_parse_comparators(part) for part in text.split("||"))


def _parse_comparators(text: str) -> tuple[Comparator, ...]:
    if hyphen := _HYPHEN.fullmatch(text):
        low, high = hyphen.groups()
        return _parse_comparator(f">={low}"), _parse_comparator(f"<={high}")
    # An operator may stand apart from its version.
    joined = re.sub(r"(?<=[<>=~^])\s+", "", text)
    return tuple(_parse_comparator(word) for word in joined.split())


def _parse_comparator(text: str) -> Comparator:
    found = _COMPARATOR.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a range")
    return Comparator.from_match(found["operator"] or "=", found)


def _skips(comparator: Comparator, prerelease: Version) -> bool:
    """`>=1.2` begins with 1.2.0, even where prereleases of that are asked for beside it.
    https://github.com/npm/node-semver/blob/main/classes/range.js (replaceXRange)
    """
    low = comparator.low
    return comparator.is_shortened and low is not None and low.release == prerelease.release


Kind = Literal["workspace", "catalog", "range", "path", "elsewhere"]
_ALIAS: Final = re.compile(r"(?P<name>@?[^@/]+(?:/[^@/]+)?)@(?P<rest>.*)", re.DOTALL)
_PATH: Final = re.compile(r"(?:file|link|portal):(?P<path>.*)", re.DOTALL)
_RELATIVE: Final = re.compile(r"\.{1,2}(?:/.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reference:
    """`name` is the package it leads to (empty where only its path says), `wanted` the range, the
    marker (`^`, `~`, `*`), the catalog's name or the path.
    """

    kind: Kind
    name: str
    wanted: str

    @classmethod
    def parse(cls, key: str, spec: str) -> Reference:
        """https://pnpm.io/workspaces#workspace-protocol-workspace, https://pnpm.io/catalogs,
        https://docs.npmjs.com/cli/using-npm/package-spec
        """
        spec = spec.strip()
        if spec.startswith("catalog:"):
            return cls("catalog", key, spec.removeprefix("catalog:").strip() or "default")
        if spec.startswith("workspace:"):
            wanted = spec.removeprefix("workspace:").strip()
            if _RELATIVE.fullmatch(wanted):
                return cls("path", "", wanted)
            name, wanted = _split_alias(key, wanted, bare=False)
            # Yarn takes anything else for a path from the root, and publishes the version there:
            # https://github.com/yarnpkg/berry/blob/master/packages/plugin-pack/sources/index.ts
            known = wanted in {"^", "~"} or (wanted != "" and is_range(wanted))
            return cls("workspace", name, wanted if known else "*")
        if path := _PATH.fullmatch(spec):
            return cls("path", "", path["path"])
        if spec.startswith("npm:"):
            name, wanted = _split_alias(key, spec.removeprefix("npm:"))
            return cls("range" if is_range(wanted) else "elsewhere", name, wanted)
        if is_range(spec):
            return cls("range", key, spec)
        # A dist-tag of this package, or the URL or the repository of any package.
        return cls("elsewhere", "" if re.search(r"[:/]", spec) else key, spec)


def is_range(text: str) -> bool:
    try:
        Range.parse(text)
    except ValueError:
        return False
    return True


def _split_alias(key: str, text: str, *, bare: bool = True) -> tuple[str, str]:
    """Name and range of "name@range"; `bare`: a lone word is a name."""
    if found := _ALIAS.fullmatch(text):
        return found["name"], found["rest"]
    return (text, "*") if bare else (key, text)
