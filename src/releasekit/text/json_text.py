"""JSON of strangers: as a whole where it is short, else entry by entry, so that no page keeps the
interpreter to itself or takes many times its size in memory. All that is wrong is a ValueError.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

# For one object that says something, which takes a loop 0.05 s at most. Lists of all there is are
# read by `entries`.
MAX_BYTES: Final = 256 * 1024
# Of one entry, for as long as which the interpreter does nothing else: 0.1 s at most. A manifest of
# a version, or a line of an index, has some ten kilobytes.
MAX_ENTRY_BYTES: Final = 2 * 1024 * 1024
MAX_DEPTH: Final = 100
# Of names and values that are read one by one: a hundred bytes for each, in the largest of pages.
MAX_ENTRIES: Final = 300_000
_FIRST_BYTES: Final = 2 * 1024
_SPACE: Final = re.compile(rb"[ \t\n\r]*+")
# An escaped half of a pair of surrogates. Where the other half is missing, Python makes of it a
# text that cannot be encoded. https://www.rfc-editor.org/rfc/rfc8259#section-8.2
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(data: bytes, *, max_bytes: int = MAX_BYTES) -> Any:
    """The document, in which a half of a surrogate pair is U+FFFD, and nothing is NaN."""
    if len(data) > max_bytes:
        raise ValueError(f"more than {max_bytes} bytes")
    text = data.decode("utf-8-sig").strip(" \t\n\r")
    value, end = _decoded(text)
    if end < len(text):
        raise ValueError("there is more behind its end")
    return value


def entries(data: bytes, keys: Collection[str]) -> Iterator[tuple[str, str | None, Any]]:
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
        self._at = self._space_end()
        if self._at < len(self._data):
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


def _decoded(text: str) -> tuple[Any, int]:
    """The value that `text` begins with, and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text)
    except RecursionError as error:
        raise ValueError("JSON nested too deeply") from error
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        # https://docs.python.org/3/library/stdtypes.html#integer-string-conversion-length-limitation
        words = "a number of thousands of digits" if "digits" in str(error) else str(error)
        raise ValueError(words) from error
    if text.count("[", 0, end) + text.count("{", 0, end) > MAX_DEPTH:
        _check_depth(value)
    return (_encodable(value) if _HALF.search(text, 0, end) else value), end


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
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_encodable(each) for each in value]
        case dict():
            return {_encodable(key): _encodable(each) for key, each in value.items()}
        case _:
            return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant}, which is no JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)
