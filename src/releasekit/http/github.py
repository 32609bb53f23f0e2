"""The API of GitHub and GitHub Enterprise Server: how to ask it, where its tokens may go, and what
its limits mean.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import httpx

from releasekit.errors import Rejected, Transient
from releasekit.host.ci import API_URL
from releasekit.host.github import API, SERVER
from releasekit.http.client import check, message_of, retry, retry_after, send, send_on
from releasekit.http.origins import describe_request, is_safe, require_safe, same_origin
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from releasekit.http.client import RetryPolicy
    from releasekit.http.credentials import Secret

MAX_BYTES: Final = 65 * 1024 * 1024
_MAX_DIGITS: Final = 12
# "Otherwise, wait for at least one minute before retrying."
# https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
_UNNAMED_S: Final = 60.0
_SECONDARY: Final = "secondary rate limit"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHub:
    """A GitHub whose API is at `api`, and a `token` of the job, or of somebody else who may do what
    is asked for. The token goes to the API's own origin, and to that of its uploads.
    """

    http: httpx.AsyncClient
    api: str
    token: Secret | None
    redact: Callable[[str], str] = str

    def at(self, path: str) -> httpx.URL:
        """Below the repositories of its API. Raises ConfigError for an address that no token may
        go to.
        """
        return require_safe(f"{self.api.rstrip('/')}/repos/{path}", name=API_URL)

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
        return await retry(partial(self.ask, "GET", url, redirected=True), policy)

    async def ask(
        self,
        method: str,
        url: httpx.URL,
        *,
        content: bytes | AsyncIterator[bytes] = b"",
        headers: Mapping[str, str] | None = None,
        missing: bool = False,
        redirected: bool = False,
    ) -> httpx.Response:
        """One attempt; `url` is one that the token may go to. With `missing`, 404 is an answer, and
        with `redirected`, what an answer leads to.

        Raises Transient, Denied, Rejected.
        """
        every = {
            "Authorization": f"Bearer {self.token.reveal() if self.token else ''}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        request = self.http.build_request(
            method, url, headers={**every, **(headers or {})}, content=content
        )
        response = await (send_on if redirected else send)(self.http, request, max_bytes=MAX_BYTES)
        asked_s = _limited(response)
        if asked_s is not None:
            said = message_of(response, redact=self.redact)
            raise Transient(
                f"HTTP {response.status_code}, too many requests: {said}", retry_after=asked_s
            )
        if response.status_code == 404 and missing:
            return response
        return check(response, describe_request(response.request), redact=self.redact)


def _limited(response: httpx.Response) -> float | None:
    """Seconds to wait where a limit was reached: the primary one, or a secondary one.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """
    if response.status_code not in {403, 429}:
        return None
    asked_s = retry_after(response)
    if asked_s is not None:
        return asked_s
    if response.headers.get("X-RateLimit-Remaining") == "0":
        reset = response.headers.get("X-RateLimit-Reset", "")
        if reset.isascii() and reset.isdigit() and len(reset) <= _MAX_DIGITS:
            return max(0.0, int(reset) - time.time())
        return _UNNAMED_S
    secondary = response.status_code == 429 or _SECONDARY in message_of(response).lower()
    return _UNNAMED_S if secondary else None
