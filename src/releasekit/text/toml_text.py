"""TOML as text, for edits that leave everything else as it is.

tomlkit tells where a string stands and how it is spelled; all but the edits is cut from the text
as it was, and what comes out has to say what was meant.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tomlkit

from releasekit.errors import PlanError

# The keys, and the index in an array, that lead to a value.
Where = tuple[str | int, ...]
Span = tuple[int, int]
# Given the text and where in it a string stands, quotes included: what to write, and over what.
Edit = Callable[[str, Span], tuple[Span, str]]


def parse_toml(text: str) -> dict[str, Any]:
    """Floats stay text: of two documents that say `nan`, none would equal the other."""
    return tomllib.loads(text.removeprefix("\ufeff"), parse_float=str)


def value_at(document: object, where: Where) -> Any:
    """None where there is nothing."""
    for key in where:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def changed(
    text: str, edits: Mapping[Where, Edit], *, wanted: Mapping[str, object], of: str
) -> str:
    """`text` with these edits of strings in it.

    Raises PlanError, about the manifest `of` a package, when it does not say `wanted` then.
    """
    found = _spans(text, tuple(edits))
    edited = _spliced(text, (edits[where](text, span) for where, span in found.items()))
    try:
        said = parse_toml(edited)
    except tomllib.TOMLDecodeError:
        said = {}
    if said != wanted:
        raise PlanError(
            f"{of}: its dependencies cannot be pinned the way they are written",
            hint="Write them plainly, or their versions by hand.",
        )
    return edited


def _spans(text: str, wheres: Sequence[Where]) -> dict[Where, Span]:
    """Start and end of the strings at `wheres`; without those for which that cannot be told."""
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
    """Where in `text` that stands which is at `start` of what tomlkit has written.

    It moves the `[[tables]]` of an array together, whole, where others stand between them. So the
    least of what stands before is looked for that tells one place from all others.
    https://github.com/python-poetry/tomlkit/pull/601
    """

    def tells(before: int) -> bool:
        part = written[start - before : end]
        return text.find(part, text.find(part) + 1) < 0

    before = bisect_left(range(start), True, key=tells)
    place = text.find(written[start - before : end])
    return None if place < 0 else place + before


def _spliced(text: str, edits: Iterable[tuple[Span, str]]) -> str:
    pieces, done = [], 0
    for (start, end), new in sorted(edits):
        pieces += [text[done:start], new]
        done = end
    return "".join([*pieces, text[done:]])
