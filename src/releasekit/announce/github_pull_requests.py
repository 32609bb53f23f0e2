"""Pull requests on GitHub, and the commits and branches that they are made of.

A commit is made on the server, without a branch, and signed there; then its branch moves once, if
it still is where it was seen.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote

from releasekit.announce.forge import LookAgain
from releasekit.announce.forge_requests import (
    keep_page,
    make_strange_error,
    parse_answer,
    parse_list,
    write_json,
)
from releasekit.announce.github import GitHubRepository, make_cures
from releasekit.announced import ForgePullRequest
from releasekit.errors import Denied, PlanError
from releasekit.problems import Problem
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import httpx

    from releasekit.announce.pull_requests import FileChange, NewCommit
    from releasekit.announced import ForgeKind

# "Must not exist", and "is to go".
NO_COMMIT: Final = "0" * 40
_FEW_BYTES: Final = 1024 * 1024
# Of one request; what GitHub takes is not documented.
_TREE_BYTES: Final = 8 * 1024 * 1024
_MAX_SAID: Final = 300
_NOT_PERMITTED: Final = "not permitted to create"
_MOVE: Final = (
    "mutation($input: UpdateRefsInput!) { updateRefs(input: $input) { clientMutationId } }"
)


class GitHubPullRequests(GitHubRepository, frozen=True):
    """Implements `PullRequests`, and moves branches as `PushedBranches` does."""

    bots: ClassVar[frozenset[str]] = frozenset({"github-actions[bot]"})
    # https://docs.github.com/en/actions/concepts/security/github_token
    waiting: ClassVar[str] = (
        "A job's own token has opened this, so checks wait until somebody approves their run. With "
        "the token of an app as `forge-token`, they start by themselves."
    )
    squashing: ClassVar[str] = ""  # it keeps the message of a single commit
    cures: ClassVar[Mapping[int, str]] = make_cures(
        "Give the job the permissions `contents: write` and `pull-requests: write`, or a "
        "`forge-token` that has them."
    )

    async def find(self, branch: str, base: str) -> ForgePullRequest | None:
        """https://docs.github.com/en/rest/pulls/pulls#list-pull-requests"""
        match await self._list("open", branch, base):
            case []:
                return None
            case [{"number": int(number)}, *_]:
                return await self.read(number)
            case _:
                raise make_strange_error("a pull request")

    async def read(self, number: int) -> ForgePullRequest:
        """https://docs.github.com/en/rest/pulls/pulls#get-a-pull-request"""
        return _parse(await self.ask("GET", self.at(f"/pulls/{number}")))

    async def has_merged(self, branch: str, base: str, head: str) -> bool:
        for each in await self._list("closed", branch, base):
            match each:
                case {"merged_at": str(), "head": {"sha": str(sha)}} if sha == head:
                    return True
        return False

    async def _list(self, state: str, branch: str, base: str) -> list[Any]:
        """The newest first."""
        head = f"{self.repository.partition('/')[0]}:{branch}"
        query = f"state={state}&head={quote(head, safe='')}&base={quote(base, safe='')}"
        url = self.at("/pulls").copy_with(query=query.encode())
        return parse_list((await self.ask("GET", url)).content, "GitHub's list of pull requests")

    async def write(self, branch: str, before: str, commit: NewCommit) -> str:
        """Its commit is on no branch before this moves. It has no author, so that GitHub signs what
        a job or an app makes.

        https://docs.github.com/en/rest/git/trees#create-a-tree,
        https://docs.github.com/en/authentication/managing-commit-signature-verification/about-commit-signature-verification#signature-verification-for-bots
        """
        await self._make("blobs", {"content": commit.text, "encoding": "utf-8"})
        entries = [await self._write_entry(each) for each in commit.files]
        tree = commit.tree
        for some in _split(entries):
            tree = await self._make("trees", {"base_tree": tree, "tree": some})
        content = {"message": commit.message, "tree": tree, "parents": [commit.on]}
        made = await self._make("commits", content)
        await self._move(branch, before, made)
        return made

    async def delete(self, branch: str, before: str) -> None:
        await self._move(branch, before, NO_COMMIT)

    async def fetch_text(self, blob: str) -> str:
        """https://docs.github.com/en/rest/git/blobs#get-a-blob"""
        match parse_answer(await self.ask("GET", self.at(f"/git/blobs/{blob}"))):
            case {"content": str(content), "encoding": "base64"}:
                try:
                    return base64.b64decode(content).decode()
                except ValueError as error:
                    raise make_strange_error("a text") from error
            case _:
                raise make_strange_error("a blob")

    async def _move(self, branch: str, before: str, after: str) -> None:
        """https://docs.github.com/en/graphql/reference/git#updaterefs"""
        match parse_answer(await self.ask("GET", self.at(""))):
            case {"node_id": str(repository)}:
                pass
            case _:
                raise make_strange_error("a repository")
        update = {
            "name": f"refs/heads/{branch}",
            "beforeOid": before or NO_COMMIT,
            "afterOid": after,
            "force": True,
        }
        variables = {"input": {"repositoryId": repository, "refUpdates": [update]}}
        content = write_json({"query": _MOVE, "variables": variables})
        match parse_answer(await self.ask("POST", self.api.graphql, content=content)):
            case {"errors": [{"message": str(said)}, *_]}:
                raise LookAgain(
                    f"GitHub has not moved the branch {branch}: {visible(clip(said, _MAX_SAID))}",
                    hint=f"A rule for {branch} has to allow that it is forced and deleted. "
                    f"{self.cures[403]}",
                )
            case {"data": {"updateRefs": dict()}}:
                pass
            case _:
                raise make_strange_error("an update of branches")

    async def create(self, branch: str, base: str, title: str, body: str) -> ForgePullRequest:
        """https://docs.github.com/en/rest/pulls/pulls#create-a-pull-request"""
        content = {"title": title, "head": branch, "base": base, "body": body}
        try:
            response = await self.ask("POST", self.at("/pulls"), content=write_json(content))
        except Denied as error:
            if _NOT_PERMITTED in str(error):
                raise PlanError(
                    f"GitHub does not let this job open pull requests in {self.repository}",
                    hint="Allow it: Settings, Actions, General, Workflow permissions, `Allow "
                    "GitHub Actions to create and approve pull requests`; an organization has the "
                    "same setting. Or give the token of an app as `forge-token`.",
                    problem=Problem.NO_PULL_REQUESTS,
                ) from error
            raise
        return _parse(response)

    async def update(self, number: int, **changes: str) -> ForgePullRequest:
        """https://docs.github.com/en/rest/pulls/pulls#update-a-pull-request"""
        url = self.at(f"/pulls/{number}")
        return _parse(await self.ask("PATCH", url, content=write_json(changes)))

    async def _write_entry(self, file: FileChange) -> dict[str, str | None]:
        entry: dict[str, str | None] = {"path": file.path, "mode": file.mode, "type": "blob"}
        if file.data is None:
            return {**entry, "sha": None}
        try:
            if len(file.data) <= _FEW_BYTES:
                return {**entry, "content": file.data.decode()}
        except UnicodeDecodeError:
            pass
        content = {"content": base64.b64encode(file.data).decode(), "encoding": "base64"}
        return {**entry, "sha": await self._make("blobs", content)}

    async def _make(self, kind: str, content: Mapping[str, object]) -> str:
        """The id of a new object. https://docs.github.com/en/rest/git"""
        url = self.at(f"/git/{kind}")
        match parse_answer(await self.ask("POST", url, content=write_json(content))):
            case {"sha": str(oid)}:
                return oid
            case _:
                raise make_strange_error("a git object")


def _split(entries: list[dict[str, str | None]]) -> Iterator[list[dict[str, str | None]]]:
    """Into requests that are not too large."""
    some: list[dict[str, str | None]] = []
    size = 0
    for entry in entries:
        own = sum(len(value or "") for value in entry.values())
        if some and size + own > _TREE_BYTES:
            yield some
            some, size = [], 0
        some.append(entry)
        size += own
    yield some


def _parse(response: httpx.Response) -> ForgePullRequest:
    return parse_pull_request(parse_answer(response), "github", "GitHub")


def parse_pull_request(document: Any, kind: ForgeKind, name: str) -> ForgePullRequest:
    """As GitHub and Gitea have it; `name` is that of the forge."""
    match document:
        case {
            "number": int(number),
            "html_url": str(url),
            "title": str(title),
            "user": {"login": str(author)},
            **rest,
        }:
            body = rest.get("body")
            return ForgePullRequest(
                forge=kind,
                number=number,
                url=keep_page(url),
                title=title,
                body=body if isinstance(body, str) else "",
                author=author,
                is_behind=rest.get("mergeable_state") == "behind",
                is_open=rest.get("state") == "open",
                is_merged=isinstance(rest.get("merged_at"), str),
            )
        case _:
            raise make_strange_error("a pull request", name)
