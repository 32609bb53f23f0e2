"""How GitHub is asked, and GitHub Enterprise Server, and what its limits mean."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.errors import Transient
from releasekit.http.client import check, message_of, retry_after, send
from releasekit.http.origins import describe_request, require_safe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    import httpx

    from releasekit.http.credentials import Secret

MAX_BYTES: Final = 64 * 1024 * 1024
_MAX_DIGITS: Final = 12
# "Otherwise, wait for at least one minute before retrying."
# https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
_UNNAMED_S: Final = 60.0
_SECONDARY: Final = "secondary rate limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHub:
    """That which a job runs on: `api` is its `GITHUB_API_URL`, and `token` is one of the job, or of
    somebody else who may do what is asked for.
    """

    http: httpx.AsyncClient
    api: str
    token: Secret | None
    redact: Callable[[str], str] = str

    def at(self, path: str) -> httpx.URL:
        """Below the repositories of its API. Raises ConfigError for an address that no token may
        go to.
        """
        return require_safe(f"{self.api.rstrip('/')}/repos/{path}", name="GITHUB_API_URL")


async def ask(
    github: GitHub,
    method: str,
    url: httpx.URL,
    *,
    content: bytes | AsyncIterator[bytes] = b"",
    headers: Mapping[str, str] | None = None,
    missing: bool = False,
) -> httpx.Response:
    """One attempt; `url` is one that the token may go to. With `missing`, 404 is an answer.

    Raises Transient, Denied, Rejected.
    """
    token = github.token.reveal() if github.token else ""
    every = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/vnd.github+json",
        "Content-Type": "application/json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    request = github.http.build_request(
        method, url, headers={**every, **(headers or {})}, content=content
    )
    response = await send(github.http, request, max_bytes=MAX_BYTES)
    asked_s = _limited(response)
    if asked_s is not None:
        said = message_of(response, redact=github.redact)
        raise Transient(
            f"HTTP {response.status_code}, too many requests: {said}", retry_after=asked_s
        )
    if response.status_code == 404 and missing:
        return response
    return check(response, describe_request(request), redact=github.redact)


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
