"""The end of a terminal's screen: lines that stay, and below them a part that is drawn again and
again, also when the terminal is resized meanwhile.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from rich.console import ConsoleDimensions
from rich.control import Control
from rich.segment import ControlType, Segment, Segments

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console, RenderableType
    from rich.text import Text

    from releasekit.report.screen import Size

    Draw = Callable[[int, int], RenderableType]

# No screen shows more than that of what stays.
_KEPT_LINES: Final = 300
# Between two drawings, so that a burst of lines does not take the processor from the release.
_REST_S: Final = 0.04


class Region:
    """`draw` is asked for what fits the given columns and rows, `every_s` seconds and whenever
    something was said; with `every_s` of 0 only then, in the thread that says it.
    """

    def __init__(self, console: Console, draw: Draw, size: Size, *, every_s: float) -> None:
        self._console = console
        self._draw = draw
        self._size = size
        self._every_s = every_s
        self._said: deque[Text] = deque()
        self._above: deque[Text] = deque(maxlen=_KEPT_LINES)
        self._rows: list[int] = []  # the width of each that was drawn
        self._width = 0
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._redraw, name="releasekit-live", daemon=True)

    def start(self) -> None:
        if self._every_s:
            self._thread.start()
        self.wake()

    def say(self, line: Text) -> None:
        """Above what is redrawn, for good."""
        self._said.append(line)
        self.wake()

    def wake(self) -> None:
        """There is something else to draw."""
        self._woken.set()
        if not self._every_s:
            self._show()

    def stop(self) -> None:
        """What was said stays, the rest is gone. May be called again, and at any time."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._show(last=True)

    def _redraw(self) -> None:
        while not self._stopped.wait(_REST_S):
            self._woken.wait(self._every_s - _REST_S)
            self._woken.clear()
            self._show()

    def _show(self, *, last: bool = False) -> None:
        with self._lock:
            width, height = self._size()
            self._console.size = ConsoleDimensions(width, height)
            drawn = [] if last else self._render(width, height)
            with self._console:  # in one write
                again = self._erase(width, height, room=height - len(drawn))
                said = [self._said.popleft() for _ in range(len(self._said))]
                for line in (*again, *said):
                    self._print(line, width)
                self._above.extend(said)
                for number, row in enumerate(drawn):
                    above = [Segment.line()] if number else []
                    self._console.print(Segments([*above, *row]), end="")
            self._rows = [Segment.get_line_length(row) for row in drawn]
            self._width = width

    def _render(self, width: int, height: int) -> list[list[Segment]]:
        """One column is left free: some terminals begin a line when the last one is filled."""
        options = self._console.options.update(width=max(1, width - 1), height=None)
        rows = self._console.render_lines(self._draw(width - 1, height), options, pad=False)
        return rows[-max(1, height - 1) :]

    def _print(self, line: Text, width: int) -> None:
        for row in line.wrap(self._console, width, overflow="fold"):
            self._console.print(row, soft_wrap=True)

    def _erase(self, width: int, height: int, *, room: int) -> list[Text]:
        """Returns the lines that went with it, and have to be printed again.

        On a terminal that has become narrower, longer rows have been broken, or cut off: it cannot
        know where its own begin. So all of them go, as if they were broken, and what stays comes
        again. At worst this takes some lines from before the run off the screen.
        """
        if not self._rows:
            return []
        if width >= self._width or max(self._rows) <= width:
            self._up(len(self._rows))
            return []
        above = [row for line in self._above for row in line.wrap(self._console, self._width)]
        widths = [*(row.cell_len for row in above), *self._rows]
        self._up(min(height, sum(max(1, -(-each // width)) for each in widths)))
        again: list[Text] = []
        for line in reversed(self._above):
            room -= len(line.wrap(self._console, width, overflow="fold"))
            if room < 0:
                break
            again.insert(0, line)
        return again

    def _up(self, rows: int) -> None:
        """Erase so many, from the one where the cursor is."""
        line = (ControlType.ERASE_IN_LINE, 2)
        above = [code for _ in range(rows - 1) for code in ((ControlType.CURSOR_UP, 1), line)]
        self._console.control(Control(ControlType.CARRIAGE_RETURN, line, *above))
