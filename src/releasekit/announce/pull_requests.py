"""Pull requests on GitHub, and the commits and branches that they are made of.

A commit is made on the server, without a branch, and signed there; then its branch moves once, if
it still is where it was seen.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote

from msgspec import Struct

from releasekit.announce.forge import LookAgain
from releasekit.announce.forge_requests import parse_answer, write_json
from releasekit.announce.github import GitHubRepository, make_cures
from releasekit.announced import ForgePullRequest
from releasekit.errors import Denied, PlanError, Rejected
from releasekit.problems import Problem
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Whom the job's own token speaks for.
BOT: Final = "github-actions[bot]"
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


class FileChange(Struct, frozen=True, kw_only=True):
    """What a file of a commit is going to hold, None for one that goes, and its mode."""

    path: str
    mode: str
    data: bytes | None


class GitHubPullRequests(GitHubRepository, frozen=True):
    """Every method raises PackageError, and LookAgain where something else was faster or a request
    may have taken effect.
    """

    cures: ClassVar[Mapping[int, str]] = make_cures(
        "Give the job the permissions `contents: write` and `pull-requests: write`, or a "
        "`forge-token` that has them."
    )

    async def find(self, branch: str, base: str) -> ForgePullRequest | None:
        """The one from a branch of the repository itself.

        https://docs.github.com/en/rest/pulls/pulls#list-pull-requests
        """
        match await self._list("open", branch, base):
            case []:
                return None
            case [{"number": int(number)}, *_]:
                return await self.read(number)
            case _:
                raise _make_strange_error("a pull request")

    async def read(self, number: int) -> ForgePullRequest:
        """https://docs.github.com/en/rest/pulls/pulls#get-a-pull-request"""
        return _parse(parse_answer(await self.ask("GET", self.at(f"/pulls/{number}"))))

    async def has_merged(self, branch: str, base: str, head: str) -> bool:
        """Whether one of the newest was merged when its branch was at the commit `head`."""
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
        match parse_answer(await self.ask("GET", url)):
            case [*pulls]:
                return pulls
            case _:
                raise _make_strange_error("a list of pull requests")

    async def commit(self, on: str, tree: str, files: Sequence[FileChange], message: str) -> str:
        """A commit on the commit `on`, whose tree is `tree`, and on no branch yet. It has no
        author, so that GitHub signs what a job or an app makes.

        https://docs.github.com/en/rest/git/trees#create-a-tree,
        https://docs.github.com/en/authentication/managing-commit-signature-verification/about-commit-signature-verification#signature-verification-for-bots
        """
        entries = [await self._write_entry(each) for each in files]
        for some in _split(entries):
            tree = await self._make("trees", {"base_tree": tree, "tree": some})
        return await self._make("commits", {"message": message, "tree": tree, "parents": [on]})

    async def move(self, branch: str, before: str, after: str) -> None:
        """From the commit where it was seen to another one; an empty one stands for no branch.

        https://docs.github.com/en/graphql/reference/git#updaterefs
        """
        match parse_answer(await self.ask("GET", self.at(""))):
            case {"node_id": str(repository)}:
                pass
            case _:
                raise _make_strange_error("a repository")
        update = {
            "name": f"refs/heads/{branch}",
            "beforeOid": before or NO_COMMIT,
            "afterOid": after or NO_COMMIT,
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
                raise _make_strange_error("an update of branches")

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
        return _parse(parse_answer(response))

    async def update(self, number: int, **changes: str) -> ForgePullRequest:
        """As it is then. https://docs.github.com/en/rest/pulls/pulls#update-a-pull-request"""
        url = self.at(f"/pulls/{number}")
        return _parse(parse_answer(await self.ask("PATCH", url, content=write_json(changes))))

    async def keep_text(self, text: str) -> str:
        """The id of a blob that has it."""
        return await self._make("blobs", {"content": text, "encoding": "utf-8"})

    async def fetch_text(self, blob: str) -> str:
        """What `keep_text` has kept. https://docs.github.com/en/rest/git/blobs#get-a-blob"""
        match parse_answer(await self.ask("GET", self.at(f"/git/blobs/{blob}"))):
            case {"content": str(content), "encoding": "base64"}:
                try:
                    return base64.b64decode(content).decode()
                except ValueError as error:
                    raise _make_strange_error("a text") from error
            case _:
                raise _make_strange_error("a blob")

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
                raise _make_strange_error("a git object")


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


def _parse(document: Any) -> ForgePullRequest:
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
                number=number,
                url=url if url.startswith(("https://", "http://")) else "",
                title=title,
                body=body if isinstance(body, str) else "",
                author=author,
                is_behind=rest.get("mergeable_state") == "behind",
                is_open=rest.get("state") == "open",
                is_merged=isinstance(rest.get("merged_at"), str),
            )
        case _:
            raise _make_strange_error("a pull request")


def _make_strange_error(what: str) -> Rejected:
    return Rejected(f"GitHub's answer is not {what}", problem=Problem.STRANGE_ANSWER)
