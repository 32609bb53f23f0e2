"""How the packages of an ecosystem are split over several jobs, and which part one job has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct, field

from releasekit.errors import ConfigError, did_you_mean
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

# A matrix makes at most 256 jobs.
# https://docs.github.com/en/actions/reference/limits
MOST: Final = 256
_SHARD: Final = re.compile(r"([1-9][0-9]{0,2})/([1-9][0-9]{0,2})", re.ASCII)


class ShardCounts(Struct, frozen=True):
    """`everywhere` holds for ecosystems that `of` does not name; 0 where nothing is split."""

    everywhere: int = 0
    of: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, parts: Iterable[str], ecosystems: Collection[str], label: str) -> Self:
        """From `4`, or `pypi=4`; raises ConfigError that names `label`."""
        found: dict[str, int] = {}
        for part in parts:
            name, given, count = part.rpartition("=")
            name = name.strip()
            if given and name not in ecosystems:
                known = ", ".join(ecosystems)
                raise ConfigError(
                    f"{label}: {name[:60]!r} is not an ecosystem{did_you_mean(name, ecosystems)}",
                    hint=f"Write a number, or ECOSYSTEM=NUMBER with one of {known}.",
                    problem=Problem.UNKNOWN_NAME,
                )
            text = count.strip()
            if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= MOST):
                raise ConfigError(
                    f"{label}: {text[:60]!r} is not a number of jobs; write one from 1 to {MOST}, "
                    "or ECOSYSTEM=NUMBER",
                    problem=Problem.SHARDS,
                )
            number = int(text)
            if found.setdefault(name, number) != number:
                raise ConfigError(
                    f"{label}: {found[name]} and {number} jobs for "
                    f"{name or 'every ecosystem'}; write one of them",
                    problem=Problem.SHARDS,
                )
        return cls(found.pop("", 0), found)

    def __bool__(self) -> bool:
        return bool(self.everywhere or self.of)

    def count(self, ecosystem: str) -> int:
        return self.of.get(ecosystem, self.everywhere)


class Shard(Struct, frozen=True):
    """The part `number` of `count`; as text `2/4`."""

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str, label: str) -> Self:
        match = _SHARD.fullmatch(text)
        if match is None or not int(match[1]) <= int(match[2]) <= MOST:
            raise ConfigError(
                f"{label}: {text[:60]!r} is not a part of a plan; write NUMBER/COUNT, like 2/4",
                problem=Problem.SHARDS,
            )
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"
