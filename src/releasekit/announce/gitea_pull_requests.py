"""Pull requests at Gitea and Forgejo.

https://docs.gitea.com/api/1.26/#tag/repository/operation/repoListPullRequests
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlencode

from releasekit.announce.forge import LookAgain
from releasekit.announce.forge_requests import (
    REFUSED,
    ForgeClient,
    list_pages,
    make_strange_error,
    parse_answer,
    write_json,
)
from releasekit.announce.github_pull_requests import parse_pull_request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Mapping

    import httpx

    from releasekit.announced import ForgePullRequest
    from releasekit.errors import Rejected

# "MAX_RESPONSE_ITEMS: 50", and a server may have less.
# https://docs.gitea.com/administration/config-cheat-sheet#api-api
_PER_PAGE: Final = 50
# The newest ones that are looked through.
_MAX_PAGES: Final = 20
_NEEDS: Final = (
    "Give the job the permissions `contents: write` and `pull-requests: write`, or a `forge-token` "
    "with the scope `write:repository` of somebody who may write to it."
)


class GiteaPullRequests(ForgeClient, frozen=True):
    """Of `repository`, OWNER/NAME. Implements `PullRequests`. Gitea does not say whether a rule
    wants the branch up to date. A person updates it with the button on its page.
    """

    # https://github.com/go-gitea/gitea/blob/v1.26.0/models/user/user_system.go (ActionsUserName)
    # https://codeberg.org/forgejo/forgejo/src/branch/forgejo/models/user/user_system.go
    bots: ClassVar[frozenset[str]] = frozenset({"gitea-actions", "forgejo-actions"})
    # https://github.com/go-gitea/gitea/blob/v1.26.0/services/actions/notifier_helper.go
    waiting: ClassVar[str] = (
        "A job's own token has opened this, so no checks start. They start with the token of a "
        "user as `forge-token`."
    )
    # Its page proposes the description as the message (GetSquashMergeCommitMessages).
    # https://github.com/go-gitea/gitea/blob/v1.26.0/services/pull/pull.go
    squashing: ClassVar[str] = ""
    cures: ClassVar[Mapping[int, str]] = {
        401: "`forge-token` has to be a token of this server; leave it out for the job's own.",
        403: _NEEDS,
        422: REFUSED,
        404: "Check `forge`, if it is set. The server also says so where the token may not see the "
        "repository, and Forgejo where a job's own token opens a pull request in a private one. "
        f"{_NEEDS}",
    }

    def has_changed(self, error: Rejected) -> bool:
        """412: it is merged, so it cannot be closed."""
        return error.status in {409, 412}

    async def find(self, branch: str, base: str) -> ForgePullRequest | None:
        """When a branch is deleted, Gitea closes its request a moment later, even if the branch is
        there again by then.

        https://github.com/go-gitea/gitea/blob/v1.26.0/services/pull/pull.go
        (AdjustPullsCausedByBranchDeleted)
        """
        async for each in self._list("open", branch, base):
            found = parse_pull_request(each, "gitea", self._name)
            if each["head"].get("ref") == branch:
                return found
            raise LookAgain(
                f"{found.url} is open, and its branch is deleted",
                hint="The server closes it soon. If it does not, close it.",
            )
        return None

    async def read(self, number: int) -> ForgePullRequest:
        return self._parse(await self.ask("GET", self._at(f"/{number}")))

    async def has_merged(self, branch: str, base: str, head: str) -> bool:
        """In a list, `sha` is what was merged; in the answer for one alone, where the branch is."""
        async for each in self._list("closed", branch, base):
            if each.get("merged") is True and each["head"].get("sha") == head:
                return True
        return False

    async def create(self, branch: str, base: str, title: str, body: str) -> ForgePullRequest:
        content = {"title": title, "head": branch, "base": base, "body": body}
        return self._parse(await self.ask("POST", self._at(""), content=write_json(content)))

    async def update(self, number: int, **changes: str) -> ForgePullRequest:
        url = self._at(f"/{number}")
        return self._parse(await self.ask("PATCH", url, content=write_json(changes)))

    async def _list(self, state: str, branch: str, base: str) -> AsyncIterator[dict[str, Any]]:
        """Those from this branch of the repository itself, the newest first; Gitea lists by the
        base alone. `ref` is `refs/pull/N/head` once the branch is deleted, and `label` stays.
        """

        def get(page: int) -> Awaitable[httpx.Response]:
            asked = {"state": state, "base_branch": base, "limit": _PER_PAGE, "page": page}
            return self.ask("GET", self._at("").copy_with(query=urlencode(asked).encode()))

        what = f"{self._name}'s list of pull requests"
        async for each in list_pages(get, what, size=1, most=_MAX_PAGES):
            match each:
                case {
                    "head": {"label": str(name), "repo_id": int(source)},
                    "base": {"repo_id": int(target)},
                }:
                    if name == branch and source == target:
                        yield each
                case _:
                    raise make_strange_error("a pull request", self._name)

    @property
    def _name(self) -> str:
        return self.api.at("").host

    def _parse(self, response: httpx.Response) -> ForgePullRequest:
        return parse_pull_request(parse_answer(response, self._name), "gitea", self._name)

    def _at(self, path: str) -> httpx.URL:
        return self.api.at(f"repos/{self.repository}/pulls{path}")
