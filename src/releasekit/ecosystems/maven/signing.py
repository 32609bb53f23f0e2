"""Detached OpenPGP signatures by the user's gpg, which holds the keys.

https://central.sonatype.org/publish/requirements/gpg/
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from releasekit.aio import gather_all
from releasekit.causes.failures import BuildToolMissing, SigningFailed
from releasekit.ecosystems.maven import layout
from releasekit.ecosystems.shared.artifacts import digested, write_new
from releasekit.errors import CommandFailed
from releasekit.host.sandbox import UNCONFINED

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.host.process import Processes
    from releasekit.model import Artifact, Package

SUFFIX = ".asc"


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
            artifact.path
            for artifact in artifacts
            if not artifact.filename.endswith(SUFFIX) and artifact.filename + SUFFIX not in names
        ]
        gpg = self._processes.which("gpg")
        if gpg is None:
            raise BuildToolMissing(
                f"{package.id}: [maven] sign is set, and gpg is not installed",
                hint="Install GnuPG (https://gnupg.org), or do without signatures.",
            )
        try:
            made = await gather_all(self._sign(gpg, path) for path in unsigned)
        except CommandFailed as error:
            raise SigningFailed(
                f"{package.id}: gpg did not sign: {error.log[-1] if error.log else error}",
                log=error.log,
                hint="The key has to be in the keyring of this user (or in GNUPGHOME), and its "
                "passphrase, if it has one, in gpg-agent: nobody is there to type it.",
            ) from error
        return (*artifacts, *made)

    async def _sign(self, gpg: str, path: Path) -> Artifact:
        signature = path.with_name(path.name + SUFFIX)
        user = ["--local-user", self._key] if isinstance(self._key, str) else []
        # Not to the file: it would follow a link that a build has put there.
        argv = [gpg, "--batch", "--armor", *user, "--output", "-"]
        async with self._slots:
            done = await self._processes.run(
                [*argv, "--detach-sign", str(path)],
                cwd=path.parent,
                env=self._processes.passing(["GNUPGHOME"]),
                # It writes to its home, and the agent that it may start serves others too.
                sandbox=UNCONFINED,
                timeout_s=60,
            )
        write_new(signature, done.stdout.encode())
        return digested(signature, *layout.ALGORITHMS)
