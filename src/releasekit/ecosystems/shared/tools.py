"""The program that packs packages of an ecosystem: whether it is there, and not too old."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.config.declaration import read_version
from releasekit.errors import CommandFailed, ConfigError, PlanError
from releasekit.problems import Problem
from releasekit.text.cause import find_cause

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.config.declaration import Tool
    from releasekit.host.process import Processes

# A proxy of rustup may have to install a toolchain first.
_PATIENCE_S: Final = 120.0


async def find_tool(
    tool: Tool,
    processes: Processes,
    *,
    ecosystem: str,
    cwd: Path,
    program: str = "",
    known: str = "",
    env: Mapping[str, str | None] | None = None,
) -> str:
    """Its name and version. `program` is what stands in for the one on PATH; it is asked nothing
    where the version is `known`, as from a file beside it.

    Raises ConfigError where it is missing or says no version, and PlanError where it is too old.
    """
    program = program or tool.program
    if processes.which(program) is None:
        raise _missing(tool, f"{ecosystem}: {program} is not on PATH")
    if not known:
        asked = f"{ecosystem}: `{tool.program} {tool.asked}`"
        try:
            done = await processes.run(
                [program, tool.asked], cwd=cwd, env=env, timeout_s=_PATIENCE_S
            )
        except CommandFailed as error:
            raise _missing(tool, f"{asked} fails: {find_cause(error.log) or error}") from error
        known = read_version(done.stdout)
        if not known:
            raise _missing(tool, f"{asked} prints no version")
    if not tool.admits(known):
        raise PlanError(
            f"{ecosystem}: {program} is {known}, too old to build with: {tool.version} or later is "
            "needed",
            hint=tool.install,
            problem=Problem.TOOL_TOO_OLD,
        )
    return f"{tool.program} {known}"


def _missing(tool: Tool, message: str) -> ConfigError:
    return ConfigError(message, hint=tool.install, problem=Problem.TOOL_MISSING)
