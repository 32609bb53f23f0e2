"""What packs npm packages: node and npm, which are looked for before anything is built, and the
main program's side of the packer, one node process that makes one tarball at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from releasekit.aio import GroupClosed
from releasekit.config.declaration import read_version
from releasekit.ecosystems.npm import TOOL
from releasekit.ecosystems.shared.documents import text_in
from releasekit.ecosystems.shared.jsonlines import Conversation, Ended, conversation
from releasekit.ecosystems.shared.tools import find_tool
from releasekit.errors import BuildFailed, CommandFailed, ConfigError
from releasekit.host.files import read_head
from releasekit.problems import Problem
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.aio import Group
    from releasekit.host.process import Processes
    from releasekit.model import Package

_PROGRAM: Final = Path(__file__).with_name("packer.cjs")
# Of V8's young generation, which else grows by 48 MB over some hundred packages.
# https://nodejs.org/api/cli.html#--max-semi-space-sizesize-in-mib
_SMALL: Final = "--max-semi-space-size=1"
_MAX_BYTES: Final = 1024 * 1024


async def find_npm(packages: Sequence[Package], processes: Processes, root: Path) -> str:
    """As `Target.find_tool`."""
    if all(package.prebuilt for package in packages):
        return ""
    node, npm = (processes.which(tool) for tool in ("node", "npm"))
    if node is None:
        raise ConfigError(
            "npm: node is not on PATH", hint=TOOL.install, problem=Problem.TOOL_MISSING
        )
    known = await asyncio.to_thread(_find_version, Path(npm)) if npm else ""
    return await find_tool(TOOL, processes, ecosystem="npm", cwd=root, known=known)


def _find_version(npm: Path) -> str:
    """Of the package that the program belongs to, which starts slowly; empty where it lies
    elsewhere, as with shims.
    """
    try:
        manifest = npm.resolve().parents[1] / "package.json"
        document = parse_json(read_head(manifest, _MAX_BYTES))
    except (OSError, ValueError, IndexError):
        return ""
    return read_version(text_in(document, "version")) if text_in(document, "name") == "npm" else ""


class Packer:
    """Starts in `group`, at its first use or before; any number of packages may be under way."""

    def __init__(
        self, processes: Processes, *, root: Path, env: Mapping[str, str], group: Group
    ) -> None:
        self._group = group
        self._processes = processes
        self._root = root
        self._env = env
        self._starting = asyncio.Lock()
        self._process: Conversation | None = None
        self._early: asyncio.Task[None] | None = None

    def start_early(self) -> None:
        """A failure here is silent; the first use retries it and reports the error. Does nothing
        before `group` is open.
        """

        async def start() -> None:
            with contextlib.suppress(BuildFailed, CommandFailed, GroupClosed):
                await self._start()

        if self._group.is_open:
            self._early = self._group.start(start())

    async def pack(self, request: Mapping[str, object]) -> dict[str, Any]:
        """The `name` and `version` of what was packed. For a request without a `log` it may be
        `takesLog`: the package runs scripts, or cannot be packed.

        Raises BuildFailed. A caller that is cancelled ends the process, and the scripts that it
        runs.
        """
        try:
            return await self._ask(request)
        except Ended:
            # Another package was cancelled, or the process crashed: try once more in a new one.
            return await self._ask(request)

    async def follow_up(self, request: Mapping[str, object]) -> None:
        """Run the scripts named in `events`, once: one that fails may have had its effect.

        Raises BuildFailed. A caller that is cancelled ends the process.
        """
        await self._ask(request)

    async def _ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        process = await self._start()
        try:
            return await process.ask(request)
        except asyncio.CancelledError:
            await process.aclose()
            raise

    async def _start(self) -> Conversation:
        async with self._starting:
            if self._process is None or self._process.ended:
                node, npm = (self._processes.which(tool) or "" for tool in ("node", "npm"))
                if not node or not npm:
                    raise BuildFailed(
                        f"{'node' if not node else 'npm'} is not on PATH",
                        hint=TOOL.install,
                        problem=Problem.BUILD_TOOL,
                    )
                packer = conversation(
                    "its packer ended",
                    [node, _SMALL, str(_PROGRAM), npm],
                    processes=self._processes,
                    cwd=self._root,
                    env=self._env,
                )
                self._process = await self._group.enter(packer)
            return self._process
