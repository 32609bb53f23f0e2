"""Moves the branch of a release pull request by git: makes its commit here, and pushes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from releasekit.announce.forge import LookAgain
from releasekit.errors import CommandFailed, Denied
from releasekit.git.remote import explain
from releasekit.git.settings import quote_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from releasekit.announce.pull_requests import NewCommit
    from releasekit.git.forge_repository import ForgeRepository


class PushedBranches(Struct, frozen=True):
    """A branch moves in one step, and only from the commit `before`; empty means that there is no
    branch. Every method raises PackageError, and LookAgain where something else was faster or a
    push may have taken effect. `host` is that of the forge.
    """

    clone: ForgeRepository
    host: str

    async def write(self, branch: str, before: str, commit: NewCommit) -> str:
        """The id of the commit, which the branch is at then."""
        by = f"ReleaseKit <releasekit@noreply.{self.host}>"
        made, text = await self.clone.make_commits(b"".join(_write_stream(commit, by)))
        await self._push(branch, before, made, text)
        return made

    async def delete(self, branch: str, before: str) -> None:
        await self._push(branch, before, "", "")

    async def fetch_text(self, blob: str) -> str:
        """That of a commit."""
        return await self.clone.fetch_text(blob)

    async def _push(self, branch: str, before: str, commit: str, text: str) -> None:
        """https://git-scm.com/docs/git-push#Documentation/git-push.txt---force-with-leaserefnameexpect"""
        name = f"refs/heads/{branch}"
        specs = (f"{commit}:{name}", f"+{text}:{_name_text(branch)}")
        try:
            await self.clone.push(f"--force-with-lease={name}:{before}", *specs)
        except CommandFailed as error:
            failed = explain(error, f"{self.host} has not moved the branch {branch}", writing=True)
            if isinstance(failed, Denied):
                raise failed.with_(hint=self.clone.cure) from error
            hint = failed.hint
            if any("rejected]" in line for line in error.log):
                hint = f"Rules and hooks of the server have to allow that {branch} is forced."
            raise LookAgain(str(failed), hint=hint) from error


def _name_text(branch: str) -> str:
    """A server deletes what no reference leads to. No clone fetches this one, and none takes it for
    the branch, as it would `refs/releasekit/main`. It leads to a commit, as references do anywhere.

    https://git-scm.com/docs/gitrevisions#Documentation/gitrevisions.txt-refnameegmasterheadsmasterrefsheadsmaster
    """
    return f"refs/texts/{branch}"


def _write_stream(commit: NewCommit, by: str) -> Iterator[bytes]:
    """https://git-scm.com/docs/git-fast-import#_input_format"""
    message = _write_data(commit.message.encode())
    yield f"commit refs/heads/text\nmark :2\ncommitter {by} now\n".encode() + message
    yield b"M 100644 inline text\n" + _write_data(commit.text.encode())
    yield f"commit refs/heads/next\nmark :1\ncommitter {by} now\n".encode() + message
    yield f"from {commit.on}\n".encode()
    for each in commit.files:
        path = quote_text(each.path).encode("utf-8", "surrogateescape")
        if each.data is None:
            yield b"D %b\n" % path
        else:
            yield b"M %b inline %b\n" % (each.mode.encode(), path) + _write_data(each.data)
    yield b"get-mark :1\nget-mark :2\n"


def _write_data(data: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(data), data)
