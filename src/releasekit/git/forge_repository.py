"""A repository at a forge: git reads it, and pushes to it, with a token."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from msgspec import Struct

from releasekit.errors import CommandFailed, Denied
from releasekit.git.commits import parse_id
from releasekit.git.remote import explain, parse_ref
from releasekit.git.settings import AUTHORITIES, TIMEOUT_S, UNATTENDED, parse_paths, read_shallow
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
    `settings` tell those of the user as they were before any build. Reads are tried again as the
    `policy` says; a push is not. `cure` is the hint for a token that is refused.
    """

    url: str
    token: Secret
    place: Path
    settings: GitSettings
    policy: RetryPolicy
    cure: str

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

    async def make_commits(self, stream: bytes) -> list[str]:
        """Those that a stream for `git fast-import` makes, as it asks for them in the end. Raises
        CommandFailed.
        """
        with durable.unnamed(self.place) as file:
            file.write(stream)
            file.seek(0)
            argv = ("fast-import", "--quiet", "--force", "--date-format=now")
            return (await self._git(*argv, stdin=file.fileno())).parse_rows(parse_id)

    async def push(self, lease: str, *specs: str) -> None:
        """All of it or nothing; `lease` is an option. Raises CommandFailed."""
        await self._git(
            *("push", "--atomic", "--porcelain", "--recurse-submodules=no", lease, self.url),
            *specs,
            secrets=await self._log_in(),
        )

    async def fetch_text(self, blob: str) -> str:
        """Raises Transient, Denied, Rejected."""
        await self.fetch([blob])
        return str(await self._git("cat-file", "blob", blob))

    async def _ask(self, *arguments: str) -> Printed:
        async def attempt() -> Printed:
            try:
                return await self._git(*arguments, secrets=await self._log_in())
            except CommandFailed as error:
                raise explain(error, self.url, writing=False) from error

        try:
            return await retry(attempt, self.policy)
        except Denied as denied:
            raise denied.with_(hint=self.cure) from denied.__cause__

    async def _log_in(self) -> dict[str, str]:
        """https://git-scm.com/docs/git-config#Documentation/git-config.txt-httpextraHeader"""
        account = base64.b64encode(f"x-access-token:{self.token.reveal()}".encode()).decode()
        header = f"http.{self.url}.extraHeader"
        return await self.settings.hand_over_of_user(
            (header, ""),
            (header, f"Authorization: Basic {account}"),
            # Git would send it along to where the first answer leads.
            (f"http.{self.url}.followRedirects", "false"),
            # When this token is refused, git would have the user's own login forgotten.
            ("credential.helper", ""),
            ("push.gpgSign", "false"),
            ("push.pushOption", ""),
        )

    async def _git(
        self, *arguments: str, secrets: Mapping[str, str] | None = None, stdin: int | None = None
    ) -> Printed:
        done = await self.settings.processes.run(
            ["git", *arguments],
            cwd=self.place,
            env=self.settings.pass_on(AUTHORITIES) if secrets else UNATTENDED,
            secrets=secrets,
            timeout_s=TIMEOUT_S,
            stdin=stdin,
            outside=True,
        )
        return done.stdout
