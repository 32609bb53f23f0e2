"""Detached OpenPGP signatures, by the gpg and the keys of the user.

https://central.sonatype.org/publish/requirements/gpg/
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from releasekit.aio import gather_all
from releasekit.ecosystems.maven import layout
from releasekit.ecosystems.shared.artifacts import digests, write_new
from releasekit.errors import BuildFailed, ChangedMeanwhile, CommandFailed, PathError
from releasekit.host import durable
from releasekit.host.artifact_reader import open_artifact
from releasekit.host.process import MAX_PLACE
from releasekit.model import Artifact
from releasekit.problems import Problem
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from releasekit.host.process import Processes
    from releasekit.model import Package

SUFFIX = ".asc"
NO_GPG: Final = (
    "Install GnuPG (https://gnupg.org), or take the line `sign = …` below [maven] out of "
    "releasekit.toml: nothing is signed then, and Maven Central takes nothing unsigned."
)
_CHUNK: Final = 1024 * 1024


def check_gpg(processes: Processes) -> bool:
    """Whether there is a gpg; raises PathError if a build could change its keys or settings.

    It runs outside of the sandbox, because it writes to its home and may start an agent that serves
    other programs, too.
    """
    found = processes.outside("gpg")
    for place in _find_gpg_files(processes):
        if processes.sandbox.can_change(place):
            raise PathError(
                f"gpg reads {visible(clip(str(place), MAX_PLACE))}, where builds can write",
                hint="Keep the keyring in ~/.gnupg, or name a directory in GNUPGHOME that lies "
                "neither in the workspace nor in /tmp, a cache or `build-sandbox-paths`.",
            )
    return found is not None


def _find_gpg_files(processes: Processes) -> Iterator[Path]:
    """The directory of keys and settings, and the files in it, each of which may be a link."""
    default = Path(processes.environment.get("HOME") or Path.home(), ".gnupg")
    home = Path(_pass_gnupg_home(processes).get("GNUPGHOME") or default)
    if not home.is_absolute():  # gpg would expand ~, and take the rest from where it runs
        raise PathError(
            f"GNUPGHOME is {visible(clip(str(home), MAX_PLACE))}; write an absolute path"
        )
    yield home
    with contextlib.suppress(OSError):
        yield from home.iterdir()


def _pass_gnupg_home(processes: Processes) -> dict[str, str]:
    return processes.passing(["GNUPGHOME"])


class GpgSigner:
    """`key` is True for gpg's default key. Each process of gpg signs one file."""

    def __init__(self, processes: Processes, key: bool | str, *, concurrency: int) -> None:
        self._processes = processes
        self._key = key
        self._slots = asyncio.Semaphore(concurrency)

    async def sign(self, package: Package, artifacts: tuple[Artifact, ...]) -> tuple[Artifact, ...]:
        """`artifacts` with a signature for each that has none; raises BuildFailed."""
        names = {artifact.filename for artifact in artifacts}
        files = [artifact for artifact in artifacts if not artifact.filename.endswith(SUFFIX)]
        unsigned = [artifact for artifact in files if artifact.filename + SUFFIX not in names]
        if not await asyncio.to_thread(check_gpg, self._processes):
            raise BuildFailed(
                f"{package.id}: [maven] sign is set, and gpg is not installed",
                hint=NO_GPG,
                problem=Problem.BUILD_TOOL,
            )
        try:
            made = await gather_all(self._sign(artifact) for artifact in unsigned)
        except ChangedMeanwhile as error:
            raise BuildFailed(
                f"{package.id}: {error}", hint=error.hint, problem=Problem.SIGNING
            ) from error
        except CommandFailed as error:
            raise BuildFailed(
                f"{package.id}: gpg did not sign: {error.log[-1] if error.log else error}",
                log=error.log,
                hint="The key has to be in the keyring of this user (or in GNUPGHOME), and its "
                "passphrase, if it has one, in gpg-agent, because a job cannot type it.",
                problem=Problem.SIGNING,
            ) from error
        return (*artifacts, *made)

    async def _sign(self, artifact: Artifact) -> Artifact:
        signature = artifact.path.with_name(artifact.filename + SUFFIX)
        user = ["--local-user", self._key] if isinstance(self._key, str) else []
        # By stdin and stdout: a build can put another file or a link into the place of either.
        argv = ["gpg", "--batch", "--armor", *user, "--output", "-", "--detach-sign", "-"]
        async with self._slots:
            with durable.unnamed(Path(tempfile.gettempdir())) as copy:
                await asyncio.to_thread(_copy, artifact, copy)
                done = await self._processes.run(
                    argv,
                    cwd=Path(os.sep),
                    env=_pass_gnupg_home(self._processes),
                    stdin=copy.fileno(),
                    outside=True,
                    timeout_s=60,
                )
        data = done.stdout.encode()
        write_new(signature, data)
        # Of the bytes from gpg: a build may have changed the file.
        made = digests(io.BytesIO(data), *layout.ALGORITHMS)
        return Artifact(path=signature, size=len(data), digests=made)


def _copy(artifact: Artifact, into: IO[bytes]) -> None:
    """Copy the bytes that were built; raises ChangedMeanwhile for others."""
    with open_artifact(artifact) as source:
        shutil.copyfileobj(source, into, _CHUNK)
    into.seek(0)
