"""The API of a forge: how to ask it, where its tokens may go, and what its limits mean."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.errors import Transient
from releasekit.http.answers import check, message_of, retry_after
from releasekit.http.client import send
from releasekit.http.origins import describe_request, require_safe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping

    import httpx

    from releasekit.http.credentials import Secret

MAX_BYTES: Final = 65 * 1024 * 1024
_MAX_DIGITS: Final = 12
# "Otherwise, wait for at least one minute before retrying."
# https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
_UNNAMED_S: Final = 60.0
_SECONDARY: Final = "secondary rate limit"


class ForgeApi(Struct, frozen=True, kw_only=True):
    """The one at `api`, and a `token` of the job, or of somebody else who may do what is asked for,
    which goes to the API's own origin alone; by http only to hosts that are `insecure`.
    """

    http: httpx.AsyncClient
    api: str
    token: Secret | None
    redact: Callable[[str], str] = str
    insecure: Collection[str] = ()

    def at(self, path: str) -> httpx.URL:
        """Below the API. Raises ConfigError for an address that no token may go to."""
        return require_safe(f"{self.api.rstrip('/')}/{path}", name="forge", insecure=self.insecure)

    def log_in(self) -> dict[str, str]:
        """The headers of every request."""
        return {
            "Authorization": f"Bearer {self.token.reveal() if self.token else ''}",
            "Content-Type": "application/json",
        }

    async def send_once(
        self,
        method: str,
        url: httpx.URL,
        *,
        content: bytes | AsyncIterator[bytes] = b"",
        headers: Mapping[str, str] | None = None,
        missing: bool = False,
        redirected: bool = False,
    ) -> httpx.Response:
        """`url` is one that the token may go to. With `missing`, 404 is an answer, and with
        `redirected`, what an answer leads to.

        Raises Transient, Denied, Rejected.
        """
        request = self.http.build_request(
            method, url, headers={**self.log_in(), **(headers or {})}, content=content
        )
        response = await send(self.http, request, max_bytes=MAX_BYTES, follow_redirects=redirected)
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
    """Seconds to wait where a limit was reached: GitHub has a primary and a secondary one, and
    other forges answer with 429.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/
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
