"""Edits of a text that leave everything else as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, AnyStr

if TYPE_CHECKING:
    from collections.abc import Iterable


def splice(text: AnyStr, edits: Iterable[tuple[tuple[int, int], AnyStr]]) -> AnyStr:
    """`text` with other text in the place of these spans (start and end), which do not overlap."""
    pieces: list[AnyStr] = []
    position = 0
    for (start, end), new in sorted(edits):
        pieces += [text[position:start], new]
        position = end
    pieces.append(text[position:])
    return text[:0].join(pieces)
