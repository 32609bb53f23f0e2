"""Questions to the person at the terminal."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Final, Self

from releasekit.text.escape import visible

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

_MAX_ANSWER_BYTES: Final = 4_096


class Terminal:
    """A `Prompter` on stdin and stdout; the event loop goes on while the person thinks."""

    def __init__(self, descriptor: int, out: TextIO) -> None:
        self._descriptor = descriptor
        self._out = out

    @classmethod
    def at(cls, out: TextIO, environment: Mapping[str, str]) -> Self | None:
        """None unless both stdin and `out` are terminals outside of CI."""
        given: TextIO | None = sys.stdin  # None where that was closed
        if given is None or environment.get("CI") or not (given.isatty() and out.isatty()):
            return None
        return cls(given.fileno(), out)

    def say(self, line: str) -> None:
        print(visible(line), file=self._out, flush=True)

    async def ask(self, question: str) -> str:
        """One stripped line; empty at the end of input."""
        print(question, end="", file=self._out, flush=True)
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[bytes] = loop.create_future()

        def read() -> None:
            loop.remove_reader(self._descriptor)
            answered.set_result(os.read(self._descriptor, _MAX_ANSWER_BYTES))

        # Not in a thread, which cannot be stopped while it reads.
        loop.add_reader(self._descriptor, read)
        try:
            data = await answered
        finally:
            loop.remove_reader(self._descriptor)
        if not data.endswith(b"\n"):
            print(file=self._out, flush=True)
        return data.decode(errors="replace").strip()

    async def confirm(self, question: str) -> bool:
        return (await self.ask(f"{question} [y/N] ")).lower() in {"y", "yes"}

    async def code(self, why: str) -> str:
        self.say(why)
        return await self.ask("One-time code: ")

    def open(self, page: str) -> None:
        # With its query, which is worth nothing without being signed in.
        print(f"Confirm it in your browser:\n  {visible(page)}", file=self._out, flush=True)
