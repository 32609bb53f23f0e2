"""The forges at which the cases of releases run: a double of each, and how to look at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness import gitea_double
from harness.gitea_double import GiteaDouble, serving_gitea
from harness.github import NOT_ALLOWED, REPOSITORY, TOKEN, GitHubDouble, serving_github
from harness.gitlab import MAX_BODY, PROJECT, GitLabDouble, serving_gitlab
from harness.gitlab import TOKEN as JOB_TOKEN
from releasekit.announce.gitea import GiteaReleases
from releasekit.announce.github import GitHubReleases
from releasekit.announce.gitlab import GitLab, GitLabReleases
from releasekit.http.credentials import Secret
from releasekit.http.forge_api import ForgeApi
from releasekit.http.github import GitHub

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    import httpx

    from releasekit.announce.forge import Forge
    from releasekit.http.client import RetryPolicy


# The doubles, which have in common what these cases ask of them.
World = GitHubDouble | GitLabDouble | GiteaDouble
# An answer: its status, its document and its headers.
Refusal = tuple[int, Any, dict[str, str]]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A release as visitors see it; `files` are what its assets lead to, by name."""

    tag: str
    title: str
    body: str
    url: str
    files: dict[str, bytes]


@dataclass(frozen=True, kw_only=True)
class ForgeCase:
    """`requests` are as many as a release with two files takes, and `writes` those that change
    something where it has one file. `shown` are the published releases, the latest first, and
    `count_files` how many files there are of drafts, too. `pages` is the request for a page of
    releases without its number, `page_count` how many show 251, and `longest` the length of a body
    that is too long, 0 where none is. `passing` are answers after which a request is made again,
    and `limit` is one that lasts too long. `forbidden` is what a token that may only read is told,
    `cure` what to do about it, and `unknown` what a wrong token is told.
    """

    name: str
    serving: Callable[[Path], AbstractContextManager[World]]
    open: Callable[[Any, httpx.AsyncClient, str, RetryPolicy], Forge]
    token: str
    shown: Callable[[Any], list[Shown]]
    count_files: Callable[[Any], int]
    requests: int
    writes: int
    pages: str
    longest: int
    passing: tuple[Refusal, ...]
    limit: Refusal
    forbidden: str
    cure: str
    unknown: str
    page_count: int = 3

    def __str__(self) -> str:
        return self.name


def _open_github(
    world: GitHubDouble, http: httpx.AsyncClient, token: str, policy: RetryPolicy
) -> GitHubReleases:
    github = GitHub(http=http, api=world.api, token=Secret(token))
    return GitHubReleases(github, world.repository, policy)


def _shown_by_github(world: GitHubDouble) -> list[Shown]:
    published = [each for each in world.releases if not each["draft"]]
    return [
        Shown(
            tag=each["tag_name"],
            title=each["name"],
            body=each["body"],
            url=each["html_url"],
            files={
                asset["name"]: world.contents[asset["id"]]
                for asset in each["assets"]
                if asset["state"] == "uploaded"
            },
        )
        for each in sorted(published, key=lambda each: each["id"] != world.latest)
    ]


_LIMITED = {"message": "You have exceeded a secondary rate limit"}
GITHUB = ForgeCase(
    name="GitHub",
    serving=serving_github,
    open=_open_github,
    token=TOKEN,
    shown=_shown_by_github,
    count_files=lambda world: sum(len(each["assets"]) for each in world.releases),
    requests=7,  # list, latest, tag, create, two files, publish
    writes=3,
    pages=f"GET /api/v3/repos/{REPOSITORY}/releases?per_page=100&page=",
    longest=125_001,
    passing=(
        (403, _LIMITED, {"Retry-After": "0"}),
        (429, _LIMITED, {"Retry-After": "0"}),
        (403, _LIMITED, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}),
        (409, _LIMITED, {}),
        (422, _LIMITED, {}),
        (502, _LIMITED, {}),
    ),
    limit=(403, _LIMITED, {"Retry-After": "7200"}),
    forbidden=NOT_ALLOWED["message"],
    cure="`permissions: contents: write`",
    unknown="Bad credentials",
)


def _open_gitlab(
    world: GitLabDouble, http: httpx.AsyncClient, token: str, policy: RetryPolicy
) -> GitLabReleases:
    is_of_job = token == JOB_TOKEN
    gitlab = GitLab(http=http, api=world.api, token=Secret(token), is_of_job=is_of_job)
    return GitLabReleases(gitlab, world.repository, policy)


def _shown_by_gitlab(world: GitLabDouble) -> list[Shown]:
    return [
        Shown(
            tag=each["tag_name"],
            title=each["name"],
            body=each["description"],
            url=each["_links"]["self"],
            files={link["name"]: world.find_link(link["url"]) for link in each["assets"]["links"]},
        )
        for each in world.releases
    ]


_SLOWER = {"message": "Retry later"}
GITLAB = ForgeCase(
    name="GitLab",
    serving=serving_gitlab,
    open=_open_gitlab,
    token=JOB_TOKEN,
    shown=_shown_by_gitlab,
    count_files=lambda world: len(world.files),
    requests=6,  # list, tag, package, two files, create
    writes=2,
    pages=f"GET /api/v4/projects/{PROJECT.replace('/', '%2F')}/releases?per_page=100&page=",
    longest=MAX_BODY + 1,
    passing=(
        (429, _SLOWER, {"Retry-After": "0"}),
        (400, {"message": "400 Bad request - Duplicate package is not allowed"}, {}),
        (409, {"message": "Release already exists"}, {}),
        (502, _SLOWER, {}),
    ),
    limit=(429, _SLOWER, {"Retry-After": "7200"}),
    forbidden="HTTP 403 Forbidden",
    cure="RELEASEKIT_FORGE_TOKEN",
    unknown="HTTP 401 Unauthorized",
)


def _open_gitea(
    world: GiteaDouble, http: httpx.AsyncClient, token: str, policy: RetryPolicy
) -> GiteaReleases:
    gitea = ForgeApi(http=http, api=world.api, token=Secret(token))
    return GiteaReleases(gitea, world.repository, policy)


def _shown_by_gitea(world: GiteaDouble) -> list[Shown]:
    """Without those of a pushed tag that Gitea itself has published, before they are whole."""
    return [
        Shown(
            tag=each["tag_name"],
            title=each["name"],
            body=each["body"],
            url=each["html_url"],
            files={asset["name"]: world.contents[asset["uuid"]] for asset in each["assets"]},
        )
        for each in world.releases
        if not each["draft"] and "<!-- releasekit draft: " not in each["body"]
    ]


GITEA = ForgeCase(
    name="Gitea",
    serving=serving_gitea,
    open=_open_gitea,
    token=gitea_double.TOKEN,
    shown=_shown_by_gitea,
    count_files=lambda world: sum(len(each["assets"]) for each in world.releases),
    requests=7,  # list, latest, tag, create, two files, publish
    writes=3,
    pages=f"GET /api/v1/repos/{gitea_double.REPOSITORY}/releases?limit=50&page=",
    page_count=7,
    longest=0,
    passing=(
        (429, _SLOWER, {"Retry-After": "0"}),
        (409, {"message": "Release is has no Tag"}, {}),
        (500, {"message": ""}, {}),
        (502, _SLOWER, {}),
    ),
    limit=(429, _SLOWER, {"Retry-After": "7200"}),
    forbidden=gitea_double.NOT_ALLOWED["message"],
    cure="`permissions: contents: write`",
    unknown=gitea_double.UNKNOWN["message"],
)
FORGES = (GITHUB, GITLAB, GITEA)
