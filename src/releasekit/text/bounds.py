"""Text that was written to be expensive: refused before a parser gets to it, or once it is parsed
and before anybody walks through it. Every ValueError says which bound it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

import tomli

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")
# The deepest manifest in tests/world has 7 levels, the longest dotted key 6 parts.
MAX_DEPTH: Final = 100
MAX_KEY_PARTS: Final = 50
# Of tables, keys and values of TOML, each of which takes a parser a kilobyte at most. A megabyte of
# ordinary manifest has half as many.
MAX_MARKS: Final = 150_000
# YAML's aliases let a small file stand for any number of values.
MAX_VALUES: Final = 1_000_000
# Python turns no integer of more than 4,300 digits into text, not even for a message:
# https://docs.python.org/3/library/stdtypes.html#integer-string-conversion-length-limitation
MAX_BITS: Final = 4_096
# Parsers take quadratic time for the parts of a key, and real files have few. A text in quotes
# may look like a key; words that are joined by as many dots are not to be expected there either.
_LONG_KEY: Final = re.compile(
    r"(?<![A-Za-z0-9_.-])"
    r"""(?:(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+)"""
    rf"{{{MAX_KEY_PARTS}}}"
)


def parse_toml(
    text: str,
    parse_float: Callable[[str], Any] = float,
    loads: Callable[..., dict[str, Any]] = tomli.loads,
) -> dict[str, Any]:
    """TOML 1.1, unless `loads` reads another one. Raises ValueError (that of a parser is one) in
    time that grows with the text and no faster.

    https://github.com/hukkin/tomli/blob/master/CHANGELOG.md (2.4.0)
    """
    if _LONG_KEY.search(text):
        raise ValueError(f"a key has more than {MAX_KEY_PARTS} parts")
    if sum(map(text.count, "[{,=.")) > MAX_MARKS:
        raise ValueError(f"it holds more than {MAX_MARKS} tables, keys and values")
    try:
        return check_bounds(loads(text, parse_float=parse_float))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def check_bounds(document: T) -> T:
    """What a parser made, if it is safe to walk through, to compare and to show."""
    level: list[object] = [document]
    count = 0
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for value in level:
            below.extend(_inside(value))
            if count + len(below) > MAX_VALUES:
                raise ValueError(f"it stands for more than {MAX_VALUES} values")
        if not below:
            return document
        count += len(below)
        level = below
    raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")


def _inside(value: object) -> Iterable[object]:
    match value:
        case dict():
            return (*value, *value.values())
        case list() | tuple() | set():
            return value
        case str() if "\0" in value:
            raise ValueError("it holds a NUL character")
        case int() if value.bit_length() > MAX_BITS:
            raise ValueError(f"it holds a number of more than {MAX_BITS} bits")
    return ()
