"""TOML as text, for edits that leave everything else as it is.

A string that stands there once is taken for the one that is meant. Else tomlkit, which takes ten
times as long, finds where it is and how it is spelled. Everything but the edits is copied from the
text as it was, and the result is parsed to check that it says what was meant.
"""

from __future__ import annotations

import contextlib
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import tomlkit

from releasekit.errors import PlanError
from releasekit.problems import Problem
from releasekit.text import bounds
from releasekit.text.splice import splice

# The keys, and the index in an array, that lead to a value.
Where = tuple[str | int, ...]
Span = tuple[int, int]
# Given the text and the place of a string in it, quotes included: what to write, and where.
Edit = Callable[[str, Span], tuple[Span, str]]

_LITERAL: Final = re.compile(r"""["][^"\\\n]*+["]|'[^'\n]*+'""")


def parse_toml(text: str) -> dict[str, Any]:
    """Floats stay text, because `nan` does not equal itself and documents are compared."""
    return bounds.parse_toml(text.removeprefix("\ufeff"), parse_float=str)


def find_value(document: object, where: Where) -> Any:
    """The value there, or None."""
    for key in where:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def edit_strings(
    text: str, edits: Mapping[Where, Edit], *, wanted: Mapping[str, object], of: str
) -> str:
    """`text` with these edits of strings in it.

    Raises PlanError, about the manifest `of` a package, if the result does not say `wanted`.
    """
    for find in (_find_unique, _spans):
        with contextlib.suppress(ValueError):
            found = find(text, tuple(edits))
            edited = splice(text, (edits[where](text, span) for where, span in found.items()))
            if parse_toml(edited) == wanted:
                return edited
    raise PlanError(
        f"{of}: its dependencies cannot be pinned the way they are written",
        hint="Write them in plain form, or write their versions by hand.",
        problem=Problem.CANNOT_PIN,
    )


def put_string(value: str, text: str, span: Span) -> tuple[Span, str]:
    """An edit, once it has its value: between the quotes that stand there."""
    quote = text[span[0]]
    return span, f"{quote}{value}{quote}"


def find_strings(text: str, wheres: Iterable[Where]) -> dict[Where, Span]:
    """What is between the quotes of these strings, leaving out those that are not there, or are not
    spelled as they are meant.
    """
    document = parse_toml(text)
    values = {where: find_value(document, where) for where in wheres}
    spans = _spans(text, [where for where, value in values.items() if isinstance(value, str)])
    inner = {where: (start + 1, end - 1) for where, (start, end) in spans.items()}
    return {where: span for where, span in inner.items() if text[slice(*span)] == values[where]}


def _find_unique(text: str, wheres: Sequence[Where]) -> dict[Where, Span]:
    """As `_spans`, for strings without escapes that nothing else in `text` looks like."""
    document: Any = parse_toml(text)
    places: dict[str, Span | None] = {}
    for literal in _LITERAL.finditer(text):
        value = literal[0][1:-1]
        places[value] = None if value in places else literal.span()
    found = {}
    for where in wheres:
        value = document
        for key in where:
            value = value[key]
        if span := places.get(value):
            found[where] = span
    return found


def _spans(text: str, wheres: Sequence[Where]) -> dict[Where, Span]:
    """Start and end of the strings at `wheres`, leaving out those that cannot be found."""
    whole = text.removeprefix("\ufeff")
    mark = "mark"
    while mark in whole:
        mark += "-"
    document = tomlkit.parse(whole)
    written = tomlkit.dumps(document)
    literals = []
    for number, (*outer, key) in enumerate(wheres):
        parent: Any = document
        for name in outer:
            parent = parent[name]
        literals.append(parent[key].as_string())
        parent[key] = tomlkit.string(f"{mark}{number}", literal=True)
    between = re.split(rf"'{mark}(\d+)'", tomlkit.dumps(document))
    found, at = {}, 0
    for kept, number in zip(between[::2], map(int, between[1::2]), strict=False):
        start, at = at + len(kept), at + len(kept) + len(literals[number])
        place = start if written == whole else _place(whole, written, start, at)
        if place is not None:
            place += len(text) - len(whole)
            found[wheres[number]] = place, place + at - start
    return found


def _place(text: str, written: str, start: int, end: int) -> int | None:
    """Where in `text` to find what is at `start` of the text that tomlkit has written.

    It moves the `[[tables]]` of an array together, as they are, if others are between them. So this
    looks for the shortest stretch of text before it that occurs only once.
    https://github.com/python-poetry/tomlkit/pull/601
    """

    def tells(before: int) -> bool:
        part = written[start - before : end]
        return text.find(part, text.find(part) + 1) < 0

    before = bisect_left(range(start), True, key=tells)
    place = text.find(written[start - before : end])
    return None if place < 0 else place + before
