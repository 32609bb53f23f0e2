"""Merge requests at GitLab.

https://docs.gitlab.com/api/merge_requests/
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote, urlencode

from releasekit.announce.forge import LookAgain
from releasekit.announce.forge_requests import (
    REFUSED,
    ForgeClient,
    keep_page,
    make_strange_error,
    parse_answer,
    parse_list,
    write_json,
)
from releasekit.announce.gitlab import MOVED
from releasekit.announced import ForgePullRequest
from releasekit.config.inputs import FORGE_TOKEN
from releasekit.fields import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from releasekit.errors import Rejected

# https://docs.gitlab.com/ci/jobs/ci_job_token/#job-token-access
_NEEDS: Final = (
    f"Set {FORGE_TOKEN.variable} to a project access token with the scope `api` and the role "
    "Developer: the token of a job may neither open nor change merge requests."
)
# The newest ones that are looked through. https://docs.gitlab.com/api/rest/#offset-based-pagination
_NEWEST: Final = 100
_UNSEEN: Final = "\u200b"
_LINEAR: Final = frozenset({"ff", "rebase_merge"})


class GitLabPullRequests(ForgeClient, frozen=True):
    """Of the project `repository`, GROUP/…/NAME. Implements `PullRequests`."""

    # What a token of a project makes starts pipelines as usual.
    bots: ClassVar[frozenset[str]] = frozenset()
    waiting: ClassVar[str] = ""
    # https://docs.gitlab.com/user/project/merge_requests/commit_templates/
    squashing: ClassVar[str] = (
        "Merge it without a squash, or with a squash commit template of `%{title}`, an empty line, "
        "and `%{description}`. Without the last line of this text, changes that were merged after "
        "it was written are in no changelog."
    )
    cures: ClassVar[Mapping[int, str]] = {
        301: MOVED,
        401: _NEEDS,
        400: REFUSED,
        403: _NEEDS,
        404: f"GitLab says so too to those who may not see the project. Check `forge`. {_NEEDS}",
    }

    def has_changed(self, error: Rejected) -> bool:
        """Or GitLab does not know the branch yet that was pushed a moment ago.

        https://gitlab.com/gitlab-org/gitlab/-/blob/master/app/validators/branch_existence_validator.rb
        """
        return error.status == 409 or (error.status == 400 and "does not exist" in str(error))

    async def find(self, branch: str, base: str) -> ForgePullRequest | None:
        """A project that fast-forwards, or rebases first, merges only what is up to date.

        https://docs.gitlab.com/api/projects/#project-merge-method
        """
        for each in await self._list("opened", branch, base):
            project = self._read(await self.ask("GET", self._at("")))
            return replace(_parse(each), is_behind=project.get("merge_method") in _LINEAR)
        for each in await self._list("locked", branch, base):
            raise LookAgain(f"{_parse(each).url} is being merged")
        return None

    async def read(self, number: int) -> ForgePullRequest:
        return _parse(self._read(await self.ask("GET", self._at(f"/merge_requests/{number}"))))

    async def has_merged(self, branch: str, base: str, head: str) -> bool:
        return any(each.get("sha") == head for each in await self._list("merged", branch, base))

    async def create(self, branch: str, base: str, title: str, body: str) -> ForgePullRequest:
        """Without a squash, which would lose the message of the commit."""
        content: dict[str, object] = {
            "source_branch": branch,
            "target_branch": base,
            "title": _mention_nobody(title),
            "description": body,
            "squash": False,
        }
        url = self._at("/merge_requests")
        return _parse(self._read(await self.ask("POST", url, content=write_json(content))))

    async def update(self, number: int, **changes: str) -> ForgePullRequest:
        content = {"description" if name == "body" else name: changes[name] for name in changes}
        if "title" in content:
            content["title"] = _mention_nobody(content["title"])
        if content.pop("state", ""):
            content["state_event"] = "close"
        url = self._at(f"/merge_requests/{number}")
        return _parse(self._read(await self.ask("PUT", url, content=write_json(content))))

    async def _list(self, state: str, branch: str, base: str) -> list[dict[str, Any]]:
        """Those of the project itself, the newest first."""
        asked = {"source_branch": branch, "target_branch": base, "state": state}
        query = urlencode({**asked, "per_page": _NEWEST})
        url = self._at("/merge_requests").copy_with(query=query.encode())
        found = parse_list((await self.ask("GET", url)).content, "GitLab's list of merge requests")
        return [
            each
            for each in found
            if isinstance(each, dict)
            and each.get("source_project_id") == each.get("target_project_id")
        ]

    def _read(self, response: httpx.Response) -> dict[str, Any]:
        answer = parse_answer(response, "GitLab")
        if not isinstance(answer, dict):
            raise make_strange_error("an object", "GitLab")
        return answer

    def _at(self, path: str) -> httpx.URL:
        return self.api.at(f"projects/{quote(self.repository, safe='')}{path}")


def _mention_nobody(title: str) -> str:
    """GitLab looks for users and groups in titles, too, such as in that of `@acme/web`.

    https://gitlab.com/gitlab-org/gitlab/-/blob/master/app/models/concerns/issuable.rb
    """
    return title.replace("@", f"@{_UNSEEN}")


def _parse(document: Mapping[str, Any]) -> ForgePullRequest:
    match document:
        case {
            "iid": int(number),
            "web_url": str(url),
            "title": str(title),
            "state": str(state),
            "author": {"username": str(author)},
            **rest,
        }:
            body = rest.get("description")
            return ForgePullRequest(
                forge="gitlab",
                number=number,
                url=keep_page(url),
                title=title.replace(_UNSEEN, ""),
                body=body if isinstance(body, str) else "",
                author=author,
                is_open=state == "opened",
                is_merged=state == "merged",
            )
        case _:
            raise make_strange_error("a merge request", "GitLab")
