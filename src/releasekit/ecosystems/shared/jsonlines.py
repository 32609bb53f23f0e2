"""Numbered questions to a child process, which answers in any order, in lines of JSON."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from typing import TYPE_CHECKING, Any, Final

from releasekit.errors import BuildFailed
from releasekit.text.escape import clip, visible
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.host.process import Child, Processes

_MAX_VALUES: Final = 200_000
_SHOWN: Final = 200


class Ended(BuildFailed):
    """The child is gone, and the question unanswered."""


class Conversation:
    """Matches answers to questions, of which any number may be under way. `gone` is the message of
    the error once the child has ended.
    """

    child: Child

    def __init__(self, gone: str) -> None:
        self._gone = gone
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._tail: tuple[str, ...] = ()
        self.ended = False

    async def ask(
        self, question: Mapping[str, object], *, cancellable: bool = False
    ) -> dict[str, Any]:
        """Raises BuildFailed for an answer with an `error`, and Ended.

        When the caller is cancelled, the answer is dropped; a child that understands it gets a
        `cancel` (`cancellable`).
        """
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        if self.ended:
            answer.set_exception(self._unanswered())
        else:
            self._waiting[number] = answer
            self.child.send(json.dumps({**question, "id": number}))
        try:
            said = await answer
        except asyncio.CancelledError:
            if cancellable:
                self.child.send(json.dumps({"cancel": number}))
            raise
        except Ended:
            self.child.close()
            raise
        if "error" in said:
            raise BuildFailed(str(said["error"]))
        return said

    def receive(self, line: str) -> None:
        if self.ended:
            return  # the rest of its output may be millions of lines
        try:
            said = parse_json(line, max_bytes=None, max_values=_MAX_VALUES)
            answer = self._waiting.pop(said["id"])
        except (ValueError, LookupError, TypeError):
            # Otherwise a caller would wait for ever.
            self.end((f"this is not an answer: {clip(visible(line), _SHOWN)}",))
        else:
            if not answer.done():  # else its caller was cancelled
                answer.set_result(said)

    def end(self, tail: tuple[str, ...]) -> None:
        """The child has ended, with `tail` as its last output: no more answers come."""
        self.ended = True
        self._tail = self._tail or tail
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(self._unanswered())
        self._waiting.clear()

    async def aclose(self) -> None:
        """End the child; open questions remain unanswered."""
        self.ended = True
        try:
            await self.child.aclose()
        finally:
            self.end(())

    def _unanswered(self) -> Ended:
        return Ended(self._gone, log=self._tail)


@contextlib.asynccontextmanager
async def conversation(
    gone: str,
    argv: Sequence[str],
    *,
    processes: Processes,
    cwd: Path,
    env: Mapping[str, str | None],
) -> AsyncIterator[Conversation]:
    """Start a child to talk with, and end it at the end."""
    talk = Conversation(gone)
    talk.child = await processes.start(argv, cwd=cwd, env=env, receive=talk.receive, ended=talk.end)
    async with contextlib.aclosing(talk):
        yield talk
