"""A terminal that is really drawn: what a person sees, whatever was written to get there."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import pyte

if TYPE_CHECKING:
    from collections.abc import Sequence


class Terminal(StringIO):
    """A stream that says it is one; `encoding` is what it can write."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True

    def taken(self) -> str:
        """What was written since the last time."""
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text


class Cutting(pyte.Screen):
    """As xterm and the Linux console: what has no room in a narrower window is cut off."""

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__(columns, rows)
        self._stream = pyte.Stream(self)

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """The cursor stays where it is in the text, which is not so with pyte itself."""
        lines, columns = lines or self.lines, columns or self.columns
        self.redraw([row[:columns] for row in self.rows], lines, columns, at=self.cursor.y)

    def redraw(self, rows: Sequence[str], lines: int, columns: int, *, at: int) -> None:
        """`at` is which of `rows` the cursor is in; those above it move off the screen."""
        cut = max(0, at + 1 - lines)
        super().resize(lines, columns)
        self.reset()
        for number, row in enumerate(rows[cut : cut + lines]):
            self.cursor_position(number + 1, 1)
            self.draw(row)
        self.cursor_position(at - cut + 1, len(rows[at]) + 1)

    def take(self, text: str) -> None:
        """As a terminal gets it, with a carriage return before each line feed."""
        self._stream.feed(text.replace("\r\n", "\n").replace("\n", "\r\n"))

    @property
    def rows(self) -> list[str]:
        return [row.rstrip() for row in self.display]

    @property
    def shown(self) -> list[str]:
        """Without the empty rows at the end."""
        return "\n".join(self.rows).rstrip("\n").split("\n")


class Breaking(Cutting):
    """As most terminals of a desktop, and tmux: rows that are too long are broken into several."""

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        lines, columns = lines or self.lines, columns or self.columns
        rows: list[str] = []
        at = 0
        for number, row in enumerate(self.rows):
            rows += [row[i : i + columns] for i in range(0, len(row), columns)] or [""]
            if number == self.cursor.y:
                at = len(rows) - 1
        self.redraw(rows, lines, columns, at=at)


def drawn(text: str, columns: int = 100, rows: int = 40) -> list[str]:
    """The screen that `text` leaves behind."""
    screen = Cutting(columns, rows)
    screen.take(text)
    return screen.shown
