"""The API of GitHub and GitHub Enterprise Server, and where its tokens may go."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import httpx

from releasekit.errors import Rejected
from releasekit.host.ci import API_URL
from releasekit.host.forges import API, SERVER
from releasekit.http.client import retry
from releasekit.http.forge_api import ForgeApi
from releasekit.http.origins import is_safe, require_safe, same_origin
from releasekit.problems import Problem

if TYPE_CHECKING:
    from releasekit.http.client import RetryPolicy

# https://cli.github.com/manual/gh_help_environment
_TOKENS: Final = ("GH_TOKEN", "GITHUB_TOKEN")
_ENTERPRISE_TOKENS: Final = ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN")


def api_of(page: httpx.URL) -> str:
    """Of the GitHub that shows this page.

    https://docs.github.com/en/enterprise-server@latest/rest/quickstart
    """
    return API if same_origin(page, SERVER) else str(page.join("/api/v3"))


def tokens_for(api: str) -> tuple[str, ...]:
    """The variables that may hold a user's token for it: one of a GitHub is not for another one."""
    return _TOKENS if api == API else _ENTERPRISE_TOKENS


class GitHub(ForgeApi, frozen=True, kw_only=True):
    """The token also goes to where this GitHub takes uploads."""

    def at(self, path: str) -> httpx.URL:
        """Below the repositories of its API. Raises ConfigError for an address that no token may
        go to.
        """
        return require_safe(f"{self.api.rstrip('/')}/repos/{path}", name=API_URL)

    def log_in(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.token.reveal() if self.token else ''}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
            "X-GitHub-Api-Version": "2022-11-28",
        }

    @property
    def graphql(self) -> httpx.URL:
        """https://docs.github.com/en/enterprise-server@latest/graphql/guides/forming-calls-with-graphql"""
        top = self.api.rstrip("/")
        return require_safe(f"{top.removesuffix('/v3')}/graphql", name=API_URL)

    def uploads_at(self, template: str) -> httpx.URL:
        """What an `upload_url` leads to, if the token may go there: the API's own origin, as of
        GitHub Enterprise Server, or the host beside it, `uploads.` for `api.`, as of github.com and
        of `ghe.com`. Raises Rejected for any other.

        https://docs.github.com/en/rest/releases/assets#upload-a-release-asset
        """
        api = self.at("")
        try:
            url = httpx.URL(template.partition("{")[0])
        except httpx.InvalidURL as error:
            raise Rejected(
                "GitHub's `upload_url` is not a URL", problem=Problem.STRANGE_ANSWER
            ) from error
        beside = f"uploads.{api.host.removeprefix('api.')}" if api.host.startswith("api.") else ""
        is_beside = url.host == beside and (url.scheme, url.port) == (api.scheme, api.port)
        if url.userinfo or not is_safe(url) or not (same_origin(url, api) or is_beside):
            raise Rejected(
                f"GitHub's `upload_url` leads to {url.host!r}, and the token stays with {api.host}",
                hint=f"Check {API_URL}, and proxies on the way.",
                problem=Problem.WRONG_ADDRESS,
            )
        return url

    async def read(self, url: httpx.URL, policy: RetryPolicy) -> httpx.Response:
        """A GET, retried, with redirects followed, to which the token does not go along."""
        return await retry(partial(self.send_once, "GET", url, redirected=True), policy)
