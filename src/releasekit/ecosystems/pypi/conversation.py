"""The main program's side of a build worker: requests out, answers in, by number."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from releasekit.ecosystems.pypi import worker
from releasekit.errors import BuildFailed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.ecosystems.pypi.manifest import BuildSystem
    from releasekit.host.process import Child, Processes

Operation = Literal["sdist", "wheel", "metadata"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One hook to call. `source` is a source tree, and for a wheel the sdist to unpack.

    `installed` are the answers of get_requires_for_build_* that the environment fulfils; `hidden`
    is the path in the tree that must never be part of an sdist, empty when there is none.
    """

    operation: Operation
    source: Path
    into: Path
    scratch: Path
    log: Path
    build_system: BuildSystem
    config_settings: Mapping[str, str]
    environment: Mapping[str, str]
    installed: tuple[str, ...] = ()
    hidden: str = ""

    def line(self, number: int) -> str:
        return json.dumps(
            {
                "id": number,
                "operation": self.operation,
                "source": str(self.source),
                "into": str(self.into),
                "scratch": str(self.scratch),
                "log": str(self.log),
                "backend": self.build_system.backend,
                "backend_path": self.build_system.backend_path,
                "config_settings": dict(self.config_settings),
                "environment": dict(self.environment),
                "installed": self.installed,
                "hidden": self.hidden,
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Requirements that have to be installed first; else METADATA, or the names of built files:
    where a backend allows it, the sdist comes together with its wheel.
    """

    requires: tuple[str, ...] = ()
    sdist: str = ""
    wheel: str = ""
    metadata: str = ""


class Worker:
    """A running worker; any number of requests may be under way."""

    def __init__(self, child: Child, answers: _Answers) -> None:
        self._child = child
        self._answers = answers

    @classmethod
    async def start(
        cls, processes: Processes, python: Path, *, cwd: Path, env: Mapping[str, str]
    ) -> Self:
        answers = _Answers()
        child = await processes.start(
            [str(python), "-I", "-B", "-X", "utf8", worker.__file__],
            cwd=cwd,
            env=env,
            receive=answers.receive,
            ended=answers.end,
        )
        return cls(child, answers)

    @property
    def gone(self) -> bool:
        return self._answers.ended

    async def ask(self, request: Request) -> Answer:
        """Raises BuildFailed when the hook did; a cancelled caller's build is killed."""
        number, answer = self._answers.expect()
        self._child.send(request.line(number))
        try:
            return await answer
        except asyncio.CancelledError:
            self._child.send(json.dumps({"cancel": number}))
            raise

    async def end(self) -> None:
        await self._child.end()


class _Answers:
    """Who waits for which answer."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self.ended = False

    def expect(self) -> tuple[int, asyncio.Future[Answer]]:
        number = next(self._numbers)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if self.ended:
            answer.set_exception(BuildFailed("its build worker ended"))
        else:
            self._waiting[number] = answer
        return number, answer

    def receive(self, line: str) -> None:
        said = json.loads(line)
        answer = self._waiting.pop(said["id"])
        if answer.done():  # its caller was cancelled
            return
        if "error" in said:
            answer.set_exception(BuildFailed(str(said["error"])))
            return
        answer.set_result(
            Answer(
                requires=tuple(map(str, said.get("requires", ()))),
                sdist=str(said.get("sdist", "")),
                wheel=str(said.get("wheel", "")),
                metadata=str(said.get("metadata", "")),
            )
        )

    def end(self, tail: tuple[str, ...]) -> None:
        self.ended = True
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(BuildFailed("its build worker ended", log=tail))
        self._waiting.clear()
