"""Whether modules build for those who require them: each from its zip, with the modules of the same
release beside it, which no proxy has yet.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import shlex
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.aio import gather_all
from releasekit.config.declaration import read_version
from releasekit.ecosystems.go import TOOL, gomod
from releasekit.ecosystems.shared.artifacts import no_place, write_new
from releasekit.ecosystems.shared.tools import find_tool
from releasekit.errors import CommandFailed
from releasekit.host import durable
from releasekit.host.files import read_head

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from releasekit.errors import BuildFailed
    from releasekit.host.process import Processes
    from releasekit.model import Package, PackageId
    from releasekit.state.run_logs import Logs

VERIFY_OFF: Final = (
    "If it builds on other machines only, or needs what go cannot download here, `[go] verify = "
    "false` publishes modules without building them."
)

_MAX_BYTES: Final = 1024
# Of a single program, go writes the executable here, unless something else has its name.
_BUILD: Final = ("go", "build", "-mod=readonly", "-o", os.devnull, "./...")
_EACH: Final = f'for place do cd "$place" && {shlex.join(_BUILD)} || exit; done'
# Each compiles on all CPUs already.
_MOST_LOOPS: Final = 4


async def find_go(processes: Processes, root: Path) -> str:
    """As `Target.find_tool`. Where go.mod asks for a later one, go would fetch that first; any that
    fetches does. https://go.dev/doc/toolchain
    """
    go = processes.which(TOOL.program)
    known = await asyncio.to_thread(_find_version, Path(go)) if go else ""
    local = {"GOTOOLCHAIN": "local"}
    return await find_tool(TOOL, processes, ecosystem="go", cwd=root, known=known, env=local)


def _find_version(go: Path) -> str:
    """Of the installation that the program was built for; empty where it lies elsewhere, as shims
    do. https://github.com/golang/go/blob/go1.26.0/src/cmd/dist/build.go (findgoversion)
    """
    try:
        text = read_head(go.resolve().parents[1] / "VERSION", _MAX_BYTES).decode()
    except (OSError, ValueError, IndexError):
        return ""
    return read_version(text) if text.startswith("go") else ""


class Verifier(Struct, frozen=True, kw_only=True):
    """`directory` is where modules are unpacked. Builds can write there, so nothing is read from
    it. At most `build_concurrency` modules are built at a time.
    """

    processes: Processes
    logs: Logs
    directory: Path
    environment: Mapping[str, str]
    build_concurrency: int

    def unpack(self, zipped: bytes) -> None:
        """Blocks; raises BuildFailed. The names in a module's zip begin with its path and version.

        https://go.dev/ref/mod#zip-files
        """
        try:
            with zipfile.ZipFile(io.BytesIO(zipped)) as archive:
                for name in archive.namelist():
                    durable.make_directory((self.directory / name).parent, sync=False)
                    write_new(self.directory / name, archive.read(name))
        except OSError as error:
            raise no_place(error) from error

    def prepare(
        self, package: Package, mod: str, beside: Collection[tuple[str, str]]
    ) -> Path | None:
        """Where it can be built with `mod` as its published go.mod; None if its zip alone cannot
        be, as go.mod names a directory. Those `beside` it, by path and version, are unpacked too:
        what it needs, directly or not. Blocks; raises BuildFailed.
        """
        replaced = gomod.parse_mod(mod, "go.mod").replaces
        if any(gomod.is_directory(each.target) for each in replaced):
            return None  # with `pin: none`; its zip has no such directory, nor has a proxy's
        place = self._place(package.id.name, package.version)
        # Quoted, as a path may hold spaces. https://go.dev/ref/mod#go-mod-file-lexical
        lines = [
            f"replace {path} {version} => {json.dumps(str(self._place(path, version)))}\n"
            for path, version in beside
        ]
        try:
            durable.replace(place / "go.mod", "\n".join([mod, *lines]).encode())
        except OSError as error:
            raise no_place(error) from error
        return place

    async def build_all(self, places: Mapping[PackageId, Path]) -> bool:
        """Whether the packages of all modules build, leaving out tests. Go runs once for each, so
        that none sees the requirements of another.
        """
        # What others need comes first, so each loop gets some of every level.
        modules = [*places.items()]
        loops = min(self.build_concurrency, _MOST_LOOPS, len(modules))
        parts = (dict(modules[first::loops]) for first in range(loops))
        return all(await gather_all(map(self._build_each, parts)))

    async def _build_each(self, places: Mapping[PackageId, Path]) -> bool:
        """In one sandbox, as it takes as long to set that up as to build a small module."""
        log = self.logs.fresh("build", next(iter(places)))
        argv = ["sh", "-c", _EACH, "sh", *map(str, places.values())]
        try:
            await self.processes.run(argv, cwd=self.directory, env=self.environment, log=log.path)
        except CommandFailed:
            return False
        return True

    async def build(self, package: Package, place: Path) -> BuildFailed | None:
        """Why the packages of a module do not build, leaving out tests."""
        log = self.logs.fresh("build", package.id)
        try:
            await self.processes.run(_BUILD, cwd=place, env=self.environment, log=log.path)
        except CommandFailed as error:
            failed = log.failure(f"{package.id} does not build", error)
            return failed.with_(hint=f"{failed.hint} {VERIFY_OFF}")
        return None

    def _place(self, path: str, version: str) -> Path:
        return self.directory / f"{path}@{version}"
