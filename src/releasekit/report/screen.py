"""The terminal of a person who watches: whether there is one, its size, and text that fits it."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TextIO

    Size = Callable[[], tuple[int, int]]


def has_screen(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether a person watches it, who needs no log."""
    return not environment.get("CI") and environment.get("TERM") != "dumb" and stream.isatty()


def size_of(stream: TextIO, environment: Mapping[str, str]) -> Size:
    """Asks the terminal each time for its columns and rows: what COLUMNS and LINES say was true at
    the start.
    """

    def size() -> tuple[int, int]:
        try:
            columns, rows = os.get_terminal_size(stream.fileno())
        except (OSError, ValueError):  # no terminal of ours, or one that hung up
            columns = rows = 0
        told = (environment.get("COLUMNS", ""), environment.get("LINES", ""))
        width, height = (int(text) if text.isdecimal() else 0 for text in told)
        return columns or width or 80, rows or height or 24

    return size


def fit_lines(text: str, stream: TextIO, environment: Mapping[str, str], *, indent: int = 2) -> str:
    """`text`, with lines that are too long for the terminal broken between words, and what follows
    indented; as it is where `stream` is no terminal. A path that has no room stays whole.
    """
    if not has_screen(stream, environment):
        return text
    width, _ = size_of(stream, environment)()
    rows: list[str] = []
    for line in text.split("\n"):
        words = line.lstrip(" ")
        broken = textwrap.wrap(
            words,
            width,
            initial_indent=" " * (len(line) - len(words)),
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        rows += broken or [""]
    return "\n".join(rows)
