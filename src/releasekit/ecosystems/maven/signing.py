"""Detached OpenPGP signatures by the user's gpg, which holds the keys.

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
    from collections.abc import Iterator, Mapping

    from releasekit.host.process import Processes
    from releasekit.model import Package

SUFFIX = ".asc"
_CHUNK: Final = 1024 * 1024


def check_gpg(processes: Processes) -> bool:
    """Whether there is a gpg; raises PathError where a build could change it or what it obeys. It
    runs outside of the sandbox: it writes to its home, and the agent that it may start serves
    others too.
    """
    found = processes.outside("gpg")
    for place in _read_by_gpg(_settings(processes), processes.environment):
        if processes.sandbox.can_change(place):
            raise PathError(
                f"gpg reads {visible(clip(str(place), MAX_PLACE))}, where builds can write",
                hint="Keep the keyring in ~/.gnupg, or name a directory in GNUPGHOME that lies "
                "neither in the workspace nor in /tmp, a cache or `build-sandbox-paths`.",
            )
    return found is not None


def _read_by_gpg(settings: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[Path]:
    """Where gpg keeps keys and settings, and what lies there, of which each may be a link."""
    default = Path(environment.get("HOME") or Path.home(), ".gnupg")
    home = Path(settings.get("GNUPGHOME") or default)
    if not home.is_absolute():  # gpg would expand ~, and take the rest from where it runs
        raise PathError(
            f"GNUPGHOME is {visible(clip(str(home), MAX_PLACE))}; write an absolute path"
        )
    yield home
    with contextlib.suppress(OSError):
        yield from home.iterdir()


def _settings(processes: Processes) -> dict[str, str]:
    return processes.passing(["GNUPGHOME"])


class Signer:
    """`key` is True for gpg's default key. gpg signs one file a process."""

    def __init__(self, processes: Processes, key: bool | str, *, concurrency: int) -> None:
        self._processes = processes
        self._key = key
        self._slots = asyncio.Semaphore(concurrency)

    async def sign(self, package: Package, artifacts: tuple[Artifact, ...]) -> tuple[Artifact, ...]:
        """`artifacts` and their signatures; raises BuildFailed. What is signed already stays."""
        names = {artifact.filename for artifact in artifacts}
        unsigned = [
            artifact
            for artifact in artifacts
            if not artifact.filename.endswith(SUFFIX) and artifact.filename + SUFFIX not in names
        ]
        if not await asyncio.to_thread(check_gpg, self._processes):
            raise BuildFailed(
                f"{package.id}: [maven] sign is set, and gpg is not installed",
                hint="Install GnuPG (https://gnupg.org), or do without signatures.",
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
                "passphrase, if it has one, in gpg-agent: nobody is there to type it.",
                problem=Problem.SIGNING,
            ) from error
        return (*artifacts, *made)

    async def _sign(self, artifact: Artifact) -> Artifact:
        signature = artifact.path.with_name(artifact.filename + SUFFIX)
        user = ["--local-user", self._key] if isinstance(self._key, str) else []
        # Neither from the file nor to it: a build can put another one there, or a link.
        argv = ["gpg", "--batch", "--armor", *user, "--output", "-", "--detach-sign", "-"]
        async with self._slots:
            with durable.unnamed(Path(tempfile.gettempdir())) as copy:
                await asyncio.to_thread(_copy, artifact, copy)
                done = await self._processes.run(
                    argv,
                    cwd=Path(os.sep),
                    env=_settings(self._processes),
                    stdin=copy.fileno(),
                    outside=True,
                    timeout_s=60,
                )
        data = done.stdout.encode()
        write_new(signature, data)
        # Of what gpg has said, not of what is there by now.
        made = digests(io.BytesIO(data), *layout.ALGORITHMS)
        return Artifact(path=signature, size=len(data), digests=made)


def _copy(artifact: Artifact, into: IO[bytes]) -> None:
    """The bytes that were built; raises ChangedMeanwhile for any others."""
    with open_artifact(artifact) as source:
        shutil.copyfileobj(source, into, _CHUNK)
    into.seek(0)
