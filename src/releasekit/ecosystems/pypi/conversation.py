"""The main program's side of a build worker: what it is asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from releasekit.ecosystems.pypi import worker
from releasekit.ecosystems.shared.jsonlines import conversation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from releasekit.ecosystems.pypi.manifest import BuildSystem
    from releasekit.ecosystems.shared.jsonlines import Conversation
    from releasekit.host.process import Processes

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

    def question(self) -> Mapping[str, object]:
        return {
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Requirements that have to be installed first; else METADATA, or the names of built files:
    where a backend allows it, the sdist comes together with its wheel.
    """

    requires: tuple[str, ...] = ()
    sdist: str = ""
    wheel: str = ""
    metadata: str = ""


def started(
    processes: Processes, python: Path, *, cwd: Path, env: Mapping[str, str]
) -> AbstractAsyncContextManager[Conversation]:
    """A running worker."""
    argv = [str(python), "-I", "-B", "-X", "utf8", worker.__file__]
    return conversation("its build worker ended", argv, processes=processes, cwd=cwd, env=env)


async def ask(there: Conversation, request: Request) -> Answer:
    """Raises BuildFailed when the hook did; a cancelled caller's build is killed."""
    said = await there.ask(request.question(), cancellable=True)
    return Answer(
        requires=tuple(map(str, said.get("requires", ()))),
        sdist=str(said.get("sdist", "")),
        wheel=str(said.get("wheel", "")),
        metadata=str(said.get("metadata", "")),
    )
