"""JSON of strangers: as a whole where it is short, else entry by entry, so that no page keeps the
interpreter to itself or takes many times its size in memory. All that is wrong is a ValueError.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

# For one object that says something, which takes a loop 0.05 s at most. Lists of all there is are
# read by `entries`.
MAX_BYTES: Final = 256 * 1024
# Of one entry, for as long as which the interpreter does nothing else: 0.1 s at most. A manifest of
# a version, or a line of an index, has some ten kilobytes.
MAX_ENTRY_BYTES: Final = 2 * 1024 * 1024
MAX_DEPTH: Final = 100
# What Python makes of a value takes 130 bytes at most, besides its text: 130 MB for so many.
# Results of 10,000 packages have 630,000.
MAX_VALUES: Final = 1_000_000
# As a text, which takes four bytes for each character where one of them is an emoji.
MAX_TEXT_BYTES: Final = 64 * 1024 * 1024
# Of names and values that are read one by one: a hundred bytes for each, in the largest of pages.
MAX_ENTRIES: Final = 300_000
_FIRST_BYTES: Final = 2 * 1024
_SPACE: Final = re.compile(rb"[ \t\n\r]*+")
_TEXT_SPACE: Final = re.compile(r"[ \t\n\r]*+")
# What begins a character that takes four, or two bytes in Python's texts; a smaller one takes one.
_BEGINS_WIDE: Final = ((4, re.compile(rb"[\xf0-\xff]")), (2, re.compile(rb"[\xc4-\xff]")))
# An escaped half of a pair of surrogates. Where the other half is missing, Python makes of it a
# text that cannot be encoded. https://www.rfc-editor.org/rfc/rfc8259#section-8.2
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_HALF_IN_BYTES: Final = re.compile(_HALF.pattern.encode())
_ALONE: Final = re.compile("[\ud800-\udfff]")


def format_json(document: object, default: Callable[[Any], object] | None = None) -> str:
    """As `json.dumps` with an indent of 1, in a quarter of the time: that one is in Python."""
    text = json.dumps(document, default=default)
    try:
        return msgspec.json.format(text, indent=1)
    except msgspec.DecodeError:  # halves of surrogate pairs, NaN and infinity
        return json.dumps(document, indent=1, default=default)


def parse_json(
    data: str | bytes, *, max_bytes: int | None = MAX_BYTES, max_values: int = MAX_VALUES
) -> Any:
    """The document, in which a half of a surrogate pair is U+FFFD, and nothing is NaN.

    None for `max_bytes` is for files, which are read outside of the event loop.
    """
    if max_bytes is not None and len(data) > max_bytes:
        raise ValueError(f"more than {max_bytes} bytes")
    refuse_many(data, max_values)
    text = data if isinstance(data, str) else _text_of(data)
    value, end = _decoded(text, _after_space(text, 0))
    if _after_space(text, end) < len(text):
        raise ValueError("there is more behind its end")
    return value


def refuse_many(data: str | bytes, max_values: int) -> None:
    """Raises ValueError for JSON that may stand for more values than that."""
    if count_values(data) > max_values:
        raise ValueError(f"it holds more than {max_values} values")


def count_values(data: str | bytes) -> int:
    """As many values as JSON may stand for, counted before any of them is made: each but the first
    follows a comma or a bracket. Those within texts count too.
    """
    if isinstance(data, str):
        return data.count(",") + data.count("[") + data.count("{")
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def _text_of(data: bytes) -> str:
    if 4 * len(data) > MAX_TEXT_BYTES:
        width = next((width for width, begins in _BEGINS_WIDE if begins.search(data)), 1)
        if width * len(data) + 3 * _count_widened(data) > MAX_TEXT_BYTES:
            raise ValueError(f"as a text it takes more than {MAX_TEXT_BYTES} bytes")
    return data.decode("utf-8-sig")


def _count_widened(data: bytes) -> int:
    """The bytes of the strings that hold an escaped character of four bytes, each with its quotes:
    an escape makes wide what it is in, and not all of the text.
    """
    if not _HALF_IN_BYTES.search(data):
        return 0
    # Then every quotation mark begins or ends a string, and `\u` is an escape.
    plain = data.replace(rb"\\", b"__").replace(rb"\"", b"__")
    count = end = 0
    while half := _HALF_IN_BYTES.search(plain, end):
        start = plain.rfind(b'"', end, half.start())
        end = plain.find(b'"', half.end()) + 1 or len(plain)
        count += end - max(start, 0)
    return count


def _after_space(text: str, at: int) -> int:
    found = _TEXT_SPACE.match(text, at)
    return found.end() if found else at


def read_entries(data: bytes, keys: Collection[str]) -> Iterator[tuple[str, str | None, Any]]:
    """What the lists and objects at these keys of an object hold, one after the other: the key, the
    name ("" in a list), and the value. The first of each key has None for a name, and the list or
    object without what is in it.
    """
    reader = _Reader(data)
    if not reader.takes(b"{"):
        raise ValueError("not a JSON object")
    for key in reader.names(b"}"):
        if key not in keys:
            reader.value()
        elif reader.takes(b"["):
            yield key, None, []
            for value in reader.items():
                yield key, "", value
        elif reader.takes(b"{"):
            yield key, None, {}
            for name in reader.names(b"}"):
                yield key, name, reader.value()
        else:
            yield key, None, reader.value()
    reader.check_end()


class _Reader:
    """At one place of a document, in bytes: as text it may be four times as large."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 3 if data.startswith(codecs.BOM_UTF8) else 0
        self._count = 0

    def takes(self, mark: bytes) -> bool:
        """Whether this comes next; if so, it is behind us now."""
        self._at = self._space_end()
        found = self._data.startswith(mark, self._at)
        self._at += found
        return found

    def names(self, closing: bytes) -> Iterator[str]:
        """Of the members of an object whose values the caller reads."""
        if self.takes(closing):
            return
        while True:
            name = self.value()
            if not isinstance(name, str) or not self.takes(b":"):
                raise ValueError(f"no member of an object at byte {self._at}")
            yield name
            if not self._goes_on(closing):
                return

    def items(self) -> Iterator[Any]:
        if self.takes(b"]"):
            return
        while True:
            yield self.value()
            if not self._goes_on(b"]"):
                return

    def value(self) -> Any:
        start, size = self._space_end(), _FIRST_BYTES
        self._count += 1
        if self._count > MAX_ENTRIES:
            raise ValueError(f"more than {MAX_ENTRIES} entries")
        while True:
            piece = self._data[start : start + size]
            last = start + size >= len(self._data)
            text, _ = codecs.utf_8_decode(piece, "strict", last)
            try:
                value, end = _decoded(text)
            except ValueError:
                if last:
                    raise
            else:
                # A number at the end may go on.
                if last or end < len(text):
                    self._at = start + (end if text.isascii() else len(text[:end].encode()))
                    return value
            if size >= MAX_ENTRY_BYTES:
                raise ValueError(f"an entry of more than {MAX_ENTRY_BYTES} bytes")
            size = min(8 * size, MAX_ENTRY_BYTES)

    def check_end(self) -> None:
        if self._space_end() < len(self._data):
            raise ValueError("there is more behind its end")

    def _goes_on(self, closing: bytes) -> bool:
        if self.takes(b","):
            return True
        if self.takes(closing):
            return False
        raise ValueError(f"neither a comma nor an end at byte {self._at}")

    def _space_end(self) -> int:
        found = _SPACE.match(self._data, self._at)
        return found.end() if found else self._at


def _decoded(text: str, start: int = 0) -> tuple[Any, int]:
    """The value that is at `start` of `text`, and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError as error:
        raise ValueError("JSON nested too deeply") from error
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        # https://docs.python.org/3/library/stdtypes.html#integer-string-conversion-length-limitation
        words = "a number of thousands of digits" if "digits" in str(error) else str(error)
        raise ValueError(words) from error
    if text.count("[", start, end) + text.count("{", start, end) > MAX_DEPTH:
        _check_depth(value)
    return (_encodable(value) if _HALF.search(text, start, end) else value), end


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise ValueError("JSON nested too deeply")


def _encodable(value: Any) -> Any:
    """Lists and objects are changed in place: memory would not hold all of them twice."""
    match value:
        case str():
            return _ALONE.sub("\ufffd", value)
        case list():
            for index, each in enumerate(value):
                value[index] = _encodable(each)
        case dict():
            for key in list(value):  # each is put behind the others: their order stays
                value[_encodable(key)] = _encodable(value.pop(key))
        case _:
            pass
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant}, which is not JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)
