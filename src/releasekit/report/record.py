"""A JSON object from a file that others may have written; error messages name the place in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NoReturn, Self, TypeVar, cast

from releasekit.errors import ConfigError
from releasekit.problems import Problem
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_Choice = TypeVar("_Choice", bound=StrEnum)
# Results of 10,000 packages are some 20 MB, with the last lines of each build.
MAX_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Record:
    """`where` is the file and the path to this object in it: "results.json: packages[3]"."""

    where: str
    values: Mapping[str, object]

    @classmethod
    def parse(cls, text: str | bytes, where: str) -> Self:
        if len(text) > MAX_BYTES:
            raise ConfigError(f"{where}: larger than {MAX_BYTES} bytes", problem=Problem.RESULTS)
        try:
            values: object = parse_json(text, max_bytes=None)
        except ValueError as error:
            raise ConfigError(
                f"{where}: not valid JSON: {error}", problem=Problem.RESULTS
            ) from error
        return cls._of(values, where)

    @classmethod
    def _of(cls, values: object, where: str) -> Self:
        if not isinstance(values, dict):
            raise ConfigError(
                f"{where}: must be an object, not {_shown(values)}", problem=Problem.RESULTS
            )
        return cls(where, cast("dict[str, object]", values))

    def text(self, key: str) -> str:
        value = self._get(key)
        return value if isinstance(value, str) else self._wrong(key, "text")

    def flag(self, key: str) -> bool:
        value = self._get(key)
        return value if isinstance(value, bool) else self._wrong(key, "true or false")

    def count(self, key: str) -> int:
        value = self._get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63:
            return value
        return self._wrong(key, "a whole number")

    def seconds(self, key: str) -> float:
        value = self._get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = float(value) if abs(value) < 1e15 else math.inf
            if 0 <= number < math.inf:
                return number
        return self._wrong(key, "a number of seconds")

    def choice(self, key: str, kind: type[_Choice]) -> _Choice:
        value = self.text(key)
        try:
            return kind(value)
        except ValueError:
            return self._wrong(key, "one of " + ", ".join(kind))

    def problem(self, key: str) -> Problem | None:
        """Earlier versions tell none, and later ones may know more."""
        told = self.text(key) if key in self.values else ""
        return next((problem for problem in Problem if problem == told), None)

    def texts(self, key: str) -> tuple[str, ...]:
        values = self._list(key)
        if not all(isinstance(value, str) for value in values):
            return self._wrong(key, "a list of texts")
        return tuple(cast("list[str]", values))

    def record(self, key: str) -> Self:
        return self._of(self._get(key), f"{self.where}: {key}")

    def mapping(self, key: str) -> dict[str, str]:
        """Names to texts."""
        inner = self.record(key)
        return {name: inner.text(name) for name in inner.values}

    def records(self, key: str) -> Iterator[Self]:
        """Once: each is let go when it has been read, so that no two forms of all are kept."""
        values = self._list(key)
        for index, value in enumerate(values):
            values[index] = None
            yield self._of(value, f"{self.where}: {key}[{index}]")

    def _list(self, key: str) -> list[object]:
        value = self._get(key)
        return value if isinstance(value, list) else self._wrong(key, "a list")

    def _get(self, key: str) -> object:
        if key not in self.values:
            raise ConfigError(f"{self.where}: {key!r} is missing", problem=Problem.RESULTS)
        return self.values[key]

    def _wrong(self, key: str, expected: str) -> NoReturn:
        raise ConfigError(
            f"{self.where}: {key!r} must be {expected}, not {_shown(self.values[key])}",
            problem=Problem.RESULTS,
        )


def _shown(value: object) -> str:
    return repr(value)[:60]
