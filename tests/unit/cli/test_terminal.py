from __future__ import annotations

import asyncio
import io
import os
import pty
import sys
from typing import TYPE_CHECKING

import pytest

from releasekit.cli.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """Of a terminal: the person's, and the program's."""
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def answered(ends: tuple[int, int], typed: bytes, question: str = "Why?") -> tuple[str, str]:
    ours, theirs = ends
    screen = Screen()
    os.write(ours, typed)
    return asyncio.run(Terminal(theirs, screen).ask(question)), screen.getvalue()


@pytest.mark.parametrize(
    ("typed", "answer", "shown"),
    [
        (b" 123456 \n", "123456", "Why?"),
        (b"\n", "", "Why?"),
        (b"\x04", "", "Why?\n"),  # Ctrl-D
        (b"\xff\n", "\ufffd", "Why?"),
    ],
)
def test_one_line_is_the_answer(
    typed: bytes, answer: str, shown: str, ends: tuple[int, int]
) -> None:
    assert answered(ends, typed) == (answer, shown)


@pytest.mark.parametrize(
    ("typed", "yes"), [(b"y\n", True), (b"YES\n", True), (b"\n", False), (b"yeah\n", False)]
)
def test_only_yes_is_yes(typed: bytes, yes: bool, ends: tuple[int, int]) -> None:
    ours, theirs = ends
    os.write(ours, typed)
    assert asyncio.run(Terminal(theirs, Screen()).confirm("Approve?")) is yes


def test_a_question_can_be_cancelled(ends: tuple[int, int]) -> None:
    """R28: nothing keeps the process waiting for an answer."""

    async def main() -> None:
        asking = asyncio.ensure_future(Terminal(ends[1], Screen()).ask("Why?"))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(main())


def test_a_code_and_a_page_are_asked_for(ends: tuple[int, int]) -> None:
    ours, theirs = ends
    screen = Screen()
    terminal = Terminal(theirs, screen)
    os.write(ours, b"123456\n")
    assert asyncio.run(terminal.code("npm asks\x1b[2J")) == "123456"
    terminal.open("https://www.npmjs.com/auth/cli/1?x=y")
    assert screen.getvalue() == (
        "npm asks\\x1b[2J\nOne-time code: Confirm it in your browser:\n"
        "  https://www.npmjs.com/auth/cli/1?x=y\n"
    )


def test_nobody_is_there_without_a_terminal(
    ends: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(ends[1], closefd=False) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert Terminal.at(Screen(), {}) is not None
        assert Terminal.at(Screen(), {"CI": "true"}) is None
        assert Terminal.at(io.StringIO(), {}) is None
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert Terminal.at(Screen(), {}) is None
    monkeypatch.setattr(sys, "stdin", None)
    assert Terminal.at(Screen(), {}) is None
