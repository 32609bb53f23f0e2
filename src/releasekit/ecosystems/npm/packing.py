"""The main program's side of the packer: one node process, asked for one tarball at a time."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from releasekit.aio import GroupClosed
from releasekit.ecosystems.shared.documents import text_in
from releasekit.ecosystems.shared.jsonlines import Conversation, Ended, conversation
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


class Packer:
    """Started at its first use, or before, in `group`; any number of packages may be under way."""

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

    def start(self) -> None:
        """Beforehand; where that fails, its first use says why. Without effect before `group` is
        open.
        """
        if self._group.is_open:
            self._early = self._group.start(self._ready())

    async def _ready(self) -> None:
        with contextlib.suppress(BuildFailed, CommandFailed, GroupClosed):
            await self._started()

    async def pack(self, request: Mapping[str, object]) -> tuple[str, str]:
        """Name and version of what was packed; raises BuildFailed.

        A caller that is cancelled takes the process with it, and the scripts that it runs.
        """
        said = await self._asked_twice(request)
        return str(said.get("name")), str(said.get("version"))

    async def pack_quietly(self, request: Mapping[str, object]) -> tuple[str, str] | None:
        """As `pack`, without a log to write to; None for what takes one, because it runs scripts
        or cannot be packed.
        """
        said = await self._asked_twice(request)
        if said.get("takesLog"):
            return None
        return str(said.get("name")), str(said.get("version"))

    async def _asked_twice(self, request: Mapping[str, object]) -> dict[str, Any]:
        try:
            return await self._asked(request)
        except Ended:
            # Somebody else's cancellation, or a crash: once more, in a process of its own.
            return await self._asked(request)

    async def follow_up(self, request: Mapping[str, object]) -> None:
        """Run the scripts named in `events`, never again what may have had its effect.

        Raises BuildFailed. A caller that is cancelled takes the process with it.
        """
        await self._asked(request)

    async def _asked(self, request: Mapping[str, object]) -> dict[str, Any]:
        process = await self._started()
        try:
            return await process.ask(request)
        except asyncio.CancelledError:
            await process.aclose()
            raise

    async def _started(self) -> Conversation:
        async with self._starting:
            if self._process is None or self._process.ended:
                node, npm = (self._processes.which(tool) or "" for tool in ("node", "npm"))
                if not node or not npm:
                    raise BuildFailed(
                        f"{'node' if not node else 'npm'} is not on PATH",
                        hint=INSTALL,
                        problem=Problem.BUILD_TOOL,
                    )
                argv = [node, str(_PROGRAM), npm]
                packer = conversation(
                    "its packer ended",
                    argv,
                    processes=self._processes,
                    cwd=self._root,
                    env=self._env,
                )
                self._process = await self._group.enter(packer)
            return self._process


# Since npm 9 a list of files comes from a tree:
# https://github.com/npm/npm-packlist/releases/tag/v6.0.0
OLDEST: Final = 9
_MAX_BYTES: Final = 1024 * 1024
INSTALL: Final = (
    f"npm packages are packed by npm's own rules: install Node.js with npm {OLDEST} or later "
    "(actions/setup-node does), or leave npm out with `ecosystem`."
)


def missing_tool(packages: Sequence[Package], processes: Processes) -> ConfigError | None:
    """Why none of `packages` could be packed; reads a file at most."""
    if all(package.prebuilt for package in packages):
        return None
    for tool in ("node", "npm"):
        if processes.which(tool) is None:
            return ConfigError(f"npm: {tool} is not on PATH", hint=INSTALL)
    version = _version_of(Path(processes.which("npm") or ""))
    major = version.partition(".")[0]
    if major.isdecimal() and int(major) < OLDEST:
        return ConfigError(f"npm: the npm on PATH is {version}, too old to pack with", hint=INSTALL)
    return None


def _version_of(npm: Path) -> str:
    """Of the package that the program belongs to; empty where it lies elsewhere, as with shims."""
    try:
        manifest = npm.resolve().parents[1] / "package.json"
        document = parse_json(read_head(manifest, _MAX_BYTES))
    except (OSError, ValueError, IndexError):
        return ""
    return text_in(document, "version") if text_in(document, "name") == "npm" else ""
