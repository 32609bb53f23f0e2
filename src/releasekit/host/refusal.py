"""Why a launcher did not become the child that it was started for."""

from __future__ import annotations

import asyncio
import os
from typing import Self

from releasekit.errors import CommandFailed
from releasekit.problems import Problem


class Refusal:
    """The pipe over which a launcher says why there is no child; a context."""

    def __init__(self) -> None:
        self._ours, self.theirs = os.pipe()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._ours)
        self.started()

    def started(self) -> None:
        """The launcher has its end now."""
        if self.theirs >= 0:
            os.close(self.theirs)
            self.theirs = -1

    async def check(self, command: str, program: str) -> None:
        """Wait until the program has taken over; raises CommandFailed if it does not."""
        self.started()
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(self._ours, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._ours)
        step, _, number = os.read(self._ours, 100).decode().partition(" ")
        if not step:
            return
        error = OSError(int(number), os.strerror(int(number)), program)
        if step == "start":
            raise CommandFailed(
                f"{command} cannot be started: {error}", problem=Problem.CANNOT_START
            ) from error
        raise CommandFailed(
            f"{command} cannot be sandboxed: {error.strerror}",
            hint="`build-sandbox: off` runs builds without.",
            problem=Problem.CANNOT_START,
        ) from error
