"""A repository at a forge, read by git with a token of the job."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from msgspec import Struct

from releasekit.errors import CommandFailed, Denied
from releasekit.git.remote import explain, parse_ref
from releasekit.git.settings import TIMEOUT_S, UNATTENDED, parse_paths, read_shallow
from releasekit.host import durable
from releasekit.http.client import retry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from releasekit.git.commits import Commits
    from releasekit.git.settings import GitSettings
    from releasekit.host.process import Printed
    from releasekit.http.client import RetryPolicy
    from releasekit.http.credentials import Secret


class ForgeRepository(Struct, frozen=True):
    """The one at `url`. What it has and the clone lacks comes into a repository of our own at
    `place`: a build can write settings of the clone, and those would say where the token goes.
    `settings` tell those of the user as they were before any build. What is asked of it is tried
    again as the `policy` says.
    """

    url: str
    token: Secret
    place: Path
    settings: GitSettings
    policy: RetryPolicy

    @property
    def objects(self) -> Path:
        return self.place / ".git" / "objects"

    async def begin(self, commits: Commits) -> None:
        """With what the clone has. Raises CommandFailed."""
        told = await commits.run_git("rev-parse", "--git-path", "objects", "--git-path", "shallow")
        objects, shallow = told.parse(lambda text: parse_paths(text, commits.top))
        await self._git("init", "--quiet", "--template=")
        durable.make_directory(self.objects / "info")
        durable.replace(self.objects / "info" / "alternates", f"{objects.resolve()}\n".encode())
        if ends := read_shallow(shallow):
            durable.replace(self.place / ".git" / "shallow", ends)
        await self._git("update-ref", "refs/heads/here", await commits.read_head())

    async def list_branches(self, *names: str) -> dict[str, str]:
        """Those of these that it has, each with its commit. Raises Transient, Denied, Rejected."""
        refs = {f"refs/heads/{name}": name for name in names}
        listed = await self._ask("ls-remote", self.url, *refs)
        found = dict(listed.parse_rows(parse_ref))
        return {name: found[ref] for ref, name in refs.items() if ref in found}

    async def fetch(self, commits: Iterable[str]) -> None:
        """Raises Transient, Denied, Rejected."""
        await self._ask(
            # Otherwise it starts git where the clone is, to list what that has.
            *("-c", "core.alternateRefsCommand=:", "-c", "maintenance.auto=false", "fetch"),
            *("--quiet", "--no-tags", "--no-write-fetch-head", self.url, *commits),
        )

    async def _ask(self, *arguments: str) -> Printed:
        async def attempt() -> Printed:
            try:
                return await self._git(*arguments, secrets=await self._log_in())
            except CommandFailed as error:
                raise explain(error, self.url, writing=False) from error

        try:
            return await retry(attempt, self.policy)
        except Denied as denied:
            hint = "Give the job a token that may read the repository: `contents: read`."
            raise denied.with_(hint=hint) from denied.__cause__

    async def _log_in(self) -> dict[str, str]:
        """https://git-scm.com/docs/git-config#Documentation/git-config.txt-httpextraHeader"""
        account = base64.b64encode(f"x-access-token:{self.token.reveal()}".encode()).decode()
        header = (f"http.{self.url}.extraHeader", f"Authorization: Basic {account}")
        return await self.settings.hand_over_of_user(header)

    async def _git(self, *arguments: str, secrets: Mapping[str, str] | None = None) -> Printed:
        done = await self.settings.processes.run(
            ["git", *arguments],
            cwd=self.place,
            env=self.settings.pass_on(()) if secrets else UNATTENDED,
            secrets=secrets,
            timeout_s=TIMEOUT_S,
            outside=True,
        )
        return done.stdout
