"""The main program's side of the packer: one node process, asked for one tarball at a time."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from releasekit.errors import BuildFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.host.process import Child, Processes

_PROGRAM: Final = Path(__file__).with_name("packer.cjs")


class Packer:
    """Started at its first use; any number of packages may be under way."""

    def __init__(self, processes: Processes, *, root: Path, env: Mapping[str, str]) -> None:
        self._processes = processes
        self._root = root
        self._env = env
        self._starting = asyncio.Lock()
        self._process: _Process | None = None

    async def pack(self, request: Mapping[str, object]) -> tuple[str, str]:
        """Name and version of what was packed; raises BuildFailed.

        A caller that is cancelled takes the process with it, and the scripts that it runs.
        """
        try:
            said = await self._asked(request)
        except _Ended:
            # Somebody else's cancellation, or a crash: once more, in a process of its own.
            said = await self._asked(request)
        return str(said.get("name")), str(said.get("version"))

    async def follow_up(self, request: Mapping[str, object]) -> None:
        """Run the scripts named in `events`, never again what may have had its effect.

        Raises BuildFailed. A caller that is cancelled takes the process with it.
        """
        await self._asked(request)

    async def _asked(self, request: Mapping[str, object]) -> dict[str, Any]:
        process = await self._started()
        try:
            said = await process.ask(request)
        except asyncio.CancelledError:
            await process.end()
            raise
        if "error" in said:
            raise BuildFailed(str(said["error"]))
        return said

    async def aclose(self) -> None:
        if self._process is not None:
            await self._process.end()

    async def _started(self) -> _Process:
        async with self._starting:
            if self._process is None or self._process.ended:
                node, npm = (self._processes.which(it) or "" for it in ("node", "npm"))
                if not node or not npm:
                    raise BuildFailed(
                        f"{'node' if not node else 'npm'} is not on PATH",
                        hint="npm packages are packed by npm's own rules: install Node.js with "
                        "npm, with actions/setup-node for instance.",
                    )
                process = _Process()
                process.child = await self._processes.start(
                    [node, str(_PROGRAM), npm],
                    cwd=self._root,
                    env=self._env,
                    receive=process.receive,
                    ended=process.closed,
                )
                self._process = process
            return self._process


class _Ended(BuildFailed):
    """The process is gone, and the question unanswered."""


class _Process:
    """Who waits for which answer of one process."""

    child: Child

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.ended = False

    async def ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self.child.send(json.dumps({**request, "id": number}))
        return await answer

    def receive(self, line: str) -> None:
        said = json.loads(line)
        answer = self._waiting.pop(said["id"])
        if not answer.done():  # pragma: no branch - its caller was cancelled that very moment
            answer.set_result(said)

    def closed(self, tail: tuple[str, ...]) -> None:
        self.ended = True
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(_Ended("its packer ended", log=tail))
        self._waiting.clear()

    async def end(self) -> None:
        self.ended = True
        await self.child.end()
