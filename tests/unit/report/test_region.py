from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from processes import PATIENCE_S
from releasekit.report.region import Region
from screens import Breaking, Cutting, Terminal

if TYPE_CHECKING:
    from rich.console import RenderableType

SIZES = st.tuples(st.integers(20, 140), st.integers(9, 40))


class Site:
    """A region on a screen that is resized, with `live` rows as long as the screen allows."""

    def __init__(self, kind: type[Cutting], columns: int, rows: int, live: int = 4) -> None:
        self.screen = kind(columns, rows)
        self.stream = Terminal()
        self.live = live
        self.rounds = 0
        console = Console(file=self.stream, force_terminal=True, _environ={"TERM": "xterm"})
        self.region = Region(console, self.draw, self.size, every_s=0)

    def size(self) -> tuple[int, int]:
        return self.screen.columns, self.screen.lines

    def draw(self, width: int, height: int) -> RenderableType:
        self.rounds += 1
        rows = [f"live {number} " + "x" * (width - 7) for number in range(self.live - 1)]
        return Text("\n".join([*rows, f"end {self.rounds}"]))

    def show(self) -> None:
        self.screen.take(self.stream.taken())

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        self.region.wake()
        self.show()

    def say(self, line: str) -> None:
        self.region.say(Text(line))
        self.show()

    def is_in_order(self) -> None:
        """One live part, at the end, and above it the last of what was said, each once."""
        shown = self.screen.shown
        live = [f"live {number} " for number in range(self.live - 1)]
        assert [row[:7] for row in shown[-self.live : -1]] == live
        assert shown[-1] == f"end {self.rounds}"
        above = [row for row in shown[: -self.live] if row]
        said = [row for row in above if row.startswith("said")]
        assert not [row for row in above if row.startswith(("live", "x", "end"))]
        assert said == sorted(set(said))


@pytest.mark.parametrize("kind", [Cutting, Breaking])
@settings(max_examples=40)
@given(start=SIZES, sizes=st.lists(SIZES, max_size=4), said=st.integers(0, 50))
def test_no_row_is_left_behind_when_the_terminal_changes_its_size(
    kind: type[Cutting], start: tuple[int, int], sizes: list[tuple[int, int]], said: int
) -> None:
    """R40"""
    site = Site(kind, *start)
    site.region.start()
    for number in range(said):
        site.region.say(Text(f"said {number:02}"))
    site.show()
    for size in sizes:
        site.resize(*size)
        site.is_in_order()
        site.say(f"said {said:02}")
        said += 1
        site.is_in_order()


@pytest.mark.parametrize("kind", [Cutting, Breaking])
def test_what_was_said_is_still_there_after_a_narrower_window(kind: type[Cutting]) -> None:
    """R40"""
    site = Site(kind, 120, 20)
    site.region.start()
    for number in range(5):
        site.say(f"said {number}")
    site.resize(30, 20)
    assert site.screen.shown[:-4] == [f"said {number}" for number in range(5)]
    site.region.stop()
    site.show()
    assert site.screen.shown == [f"said {number}" for number in range(5)]


def test_a_full_screen_is_filled_again_with_the_last_of_it() -> None:
    site = Site(Breaking, 120, 12)
    site.region.start()
    for number in range(30):
        site.say(f"said {number:02}")
    site.resize(40, 12)
    assert site.screen.shown[:-4] == [f"said {number:02}" for number in range(22, 30)]


def test_lines_that_do_not_fit_are_broken_and_not_lost() -> None:
    site = Site(Cutting, 40, 20)
    site.region.start()
    site.say("said " + "word " * 20)
    assert " ".join(site.screen.shown[:-4]).split() == ["said", *["word"] * 20]


def test_a_screen_of_few_rows_shows_the_end_of_what_is_drawn() -> None:
    site = Site(Cutting, 40, 3)
    site.region.start()
    site.show()
    site.say("said 1")
    assert site.screen.shown[-1] == f"end {site.rounds}"
    assert len(site.screen.shown) <= 3


def test_the_drawing_thread_draws_by_itself_and_ends() -> None:
    """R29"""
    drawn = threading.Semaphore(0)

    def draw(width: int, height: int) -> Text:
        drawn.release()
        return Text("live")

    stream = Terminal()
    console = Console(file=stream, force_terminal=True, _environ={"TERM": "xterm"})
    before = set(threading.enumerate())
    region = Region(console, draw, lambda: (80, 24), every_s=0.05)
    region.start()
    (thread,) = set(threading.enumerate()) - before
    for _ in range(3):
        assert drawn.acquire(timeout=PATIENCE_S)
    region.say(Text("at the very end"))
    region.stop()
    region.stop()
    assert not thread.is_alive()
    screen = Cutting(80, 24)
    screen.take(stream.taken())
    assert screen.shown == ["at the very end"]
