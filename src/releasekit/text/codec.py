"""Dataclasses as JSON, both ways, from the annotations of their fields.

What is read may be from anybody: a ValueError names the place in it and what is wrong there.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    NamedTuple,
    NoReturn,
    Self,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Struct

from releasekit.fields import Mark
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

S = TypeVar("S")
T = TypeVar("T", bound=Struct)
# What a value of a type is called, and whether JSON's is one; each float is a number of seconds.
_SCALARS: Final[Mapping[object, tuple[str, Callable[[Any], bool]]]] = {
    str: ("text", lambda value: type(value) is str),
    bool: ("true or false", lambda value: type(value) is bool),
    int: ("a whole number", lambda value: type(value) is int and 0 <= value < 2**63),
    float: ("a number of seconds", lambda value: type(value) in {int, float} and 0 <= value < 1e15),
}


def row_of(value: Struct, **instead: Mapping[str, object]) -> dict[str, object]:
    """Its fields in their order, each under its name, or the keys that `instead` has for it."""
    row: dict[str, object] = {}
    for name, codec in _codecs(type(value)).items():
        if name in instead:
            row |= instead[name]
        else:
            given = getattr(value, name)
            given = round(given, 3) if type(given) is float else given
            row[name] = codec.none if given is None else given
    return row


class Record(Struct, frozen=True):
    """`where` is the file and the path to this object in it: "results.json: packages[3]"."""

    where: str
    values: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str | bytes, where: str) -> Self:
        try:
            values = parse_json(text, max_bytes=None)
        except ValueError as error:
            raise ValueError(f"{where}: not valid JSON: {error}") from error
        return cls._of(values, where)

    @classmethod
    def _of(cls, values: object, where: str) -> Self:
        if not isinstance(values, dict):
            raise ValueError(f"{where}: must be an object, not {repr(values)[:60]}")  # noqa: TRY004
        return cls(where, values)

    def read(self, kind: type[T], **given: Any) -> T:
        """Its fields are `given`, or read as they are annotated."""
        for name, codec in _codecs(kind).items():
            if name not in given and (name in self.values or not codec.since):
                given[name] = codec.read(self, name)
        return kind(**given)

    def scalar(self, key: str, kind: type[S]) -> S:
        words, fits = _SCALARS[kind]
        value = self._get(key)
        return kind(value) if fits(value) else self._wrong(key, words)  # type: ignore[call-arg]

    def texts(self, key: str) -> tuple[str, ...]:
        values = self._list(key)
        if not all(type(value) is str for value in values):
            return self._wrong(key, "a list of texts")
        return tuple(values)

    def record(self, key: str) -> Self:
        return self._of(self._get(key), f"{self.where}: {key}")

    def optional(self, key: str) -> Self | None:
        """None in results of an earlier version, too."""
        return None if self.values.get(key) is None else self.record(key)

    def records(self, key: str) -> Iterator[Self]:
        """Once: drops each when it has been read, so that memory holds one form of all."""
        values = self._list(key)
        for index, value in enumerate(values):
            values[index] = None
            yield self._of(value, f"{self.where}: {key}[{index}]")

    def member(self, key: str, allowed: tuple[str, ...]) -> str:
        value = self.scalar(key, str)
        if value not in allowed:
            raise ValueError(f"{self.where}: {key!r} must be one of {', '.join(allowed)}")
        return value

    def choice(self, key: str, kind: type[Enum]) -> Enum:
        value = self.scalar(key, str)
        known = {str(each.value): each for each in kind}
        return known[value] if value in known else self._wrong(key, f"one of {', '.join(known)}")

    def texts_by_name(self, key: str) -> dict[str, str]:
        inner = self.record(key)
        return {name: inner.scalar(name, str) for name in inner.values}

    def _list(self, key: str) -> list[Any]:
        value = self._get(key)
        return value if isinstance(value, list) else self._wrong(key, "a list")

    def _get(self, key: str) -> Any:
        if key not in self.values:
            raise ValueError(f"{self.where}: {key!r} is missing")
        return self.values[key]

    def _wrong(self, key: str, expected: str) -> NoReturn:
        found = repr(self.values[key])[:60]
        raise ValueError(f"{self.where}: {key!r} must be {expected}, not {found}")


class _Codec(NamedTuple):
    """How a field is read, whether earlier versions may lack it, and what stands for None."""

    read: Callable[[Record, str], Any]
    since: bool
    none: str | None = None


@cache
def _codecs(kind: type) -> Mapping[str, _Codec]:
    marked = get_type_hints(kind, include_extras=True)
    return {
        name: _codec(hint, since=Mark.SINCE in getattr(marked[name], "__metadata__", ()))
        for name, hint in get_type_hints(kind).items()
    }


def _codec(hint: Any, *, since: bool) -> _Codec:
    if NoneType in (inner := get_args(hint)):
        kind = inner[0]
        if issubclass(kind, Enum):
            # Later versions may know more.
            known = {each.value: each for each in kind}
            return _Codec(lambda row, key: known.get(row.scalar(key, str)), since=True, none="")
        return _Codec(lambda row, key: (at := row.optional(key)) and at.read(kind), since=True)
    return _Codec(_reader(hint), since)


def _reader(hint: Any) -> Callable[[Record, str], Any]:
    origin, inner = get_origin(hint), get_args(hint)
    if hint in _SCALARS:
        return lambda row, key: row.scalar(key, hint)
    if origin is tuple and inner[0] is str:
        return Record.texts
    if origin is tuple:
        return lambda row, key: tuple(each.read(inner[0]) for each in row.records(key))
    if origin is Mapping:
        return Record.texts_by_name
    if inner:
        # A literal, or several.
        words = inner if origin is Literal else sum(map(get_args, inner), ())
        return lambda row, key: row.member(key, words)
    if issubclass(hint, Enum):
        return lambda row, key: row.choice(key, hint)
    return lambda row, key: row.record(key).read(hint)
