"""What the release pull request asks of a forge: requests, and the branches that they are made of.

At GitLab, a pull request is a merge request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.announced import ForgePullRequest


class FileChange(Struct, frozen=True, kw_only=True):
    """What a file of a commit is going to hold, None for one that goes, and its mode."""

    path: str
    mode: str
    data: bytes | None


class NewCommit(Struct, frozen=True, kw_only=True):
    """One to make `on` another one, whose tree is `tree`. Its message names the blob of `text`."""

    on: str
    tree: str
    files: Sequence[FileChange]
    message: str
    text: str


class PullRequests(Protocol):
    """Every method raises PackageError, and LookAgain where something else was faster or a request
    may have taken effect. `bots` are the logins that a job's own token has. `waiting` says what
    that means for checks, and `squashing` what a squash loses; both may be empty.
    """

    bots: ClassVar[frozenset[str]]
    waiting: ClassVar[str]
    squashing: ClassVar[str]

    async def find(self, branch: str, base: str) -> ForgePullRequest | None:
        """The open one from a branch of the repository itself."""

    async def read(self, number: int) -> ForgePullRequest: ...

    async def has_merged(self, branch: str, base: str, head: str) -> bool:
        """Whether one of the newest was merged when its branch was at the commit `head`."""

    async def create(self, branch: str, base: str, title: str, body: str) -> ForgePullRequest: ...

    async def update(self, number: int, **changes: str) -> ForgePullRequest:
        """As it is then. `changes` are its title, its body, and its state `closed`."""
