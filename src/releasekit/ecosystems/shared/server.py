"""One server of a registry: sends requests to it, and reads its answers."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import httpx

from releasekit.ecosystems.shared.answers import refuse_page
from releasekit.errors import Rejected, Transient
from releasekit.fields import replace
from releasekit.http import client
from releasekit.http.answers import message_of, retry_after
from releasekit.http.circuit import Circuit
from releasekit.http.origins import describe_request
from releasekit.problems import Problem
from releasekit.text.json_text import MAX_ENTRY_BYTES, parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.shared.answers import ResponseRules
    from releasekit.model import Artifact

T = TypeVar("T")

# A server may unpack, check and scan a large file before it answers.
UPLOAD_TIMEOUT: Final = httpx.Timeout(60.0, connect=15.0, read=300.0, pool=None)

# The page of one package: the largest simple page of pypi.org is under 20 MiB.
MAX_PAGE_BYTES: Final = 32 * 1024 * 1024
# A published file whose digest only its bytes tell.
MAX_FILE_BYTES: Final = 64 * 1024 * 1024


class RegistryClient:
    """`http` makes requests for `send_once`. Once the server is down, every request fails."""

    def __init__(self, url: httpx.URL, answers: ResponseRules, services: Services) -> None:
        self.url = url
        self.http = services.http
        self.circuit = Circuit(str(url))
        self.redact = redact = services.credentials.redact
        self.accept = partial(answers.accept, redact=redact)
        self.check = partial(answers.check, redact=redact)
        self.words = partial(message_of, redact=redact)
        self._policy = replace(services.retries, circuit=self.circuit)

    def at(self, path: str) -> httpx.URL:
        """`path` below the server's own."""
        return below(self.url, path)

    async def read(
        self,
        url: httpx.URL,
        headers: Mapping[str, str] | None = None,
        *,
        method: str = "GET",
        max_bytes: int = client.MAX_RESPONSE_BYTES,
    ) -> httpx.Response:
        """Retries; returns every answer that a retry would not change, 404 included."""
        return await client.request_with_retry(
            self.http, method, url, headers=headers, policy=self._policy, max_bytes=max_bytes
        )

    async def fetch(
        self,
        url: httpx.URL,
        headers: Mapping[str, str],
        into: Path,
        *,
        max_bytes: int,
        algorithms: tuple[str, ...],
    ) -> Artifact:
        """Download a file, with its digests; retries as `read`. Raises for any other answer."""

        async def attempt() -> Artifact:
            found = await client.download(
                self.http, url, into, headers=headers, max_bytes=max_bytes, algorithms=algorithms
            )
            if isinstance(found, httpx.Response):
                what = describe_request(found.request)
                self.check(found, what)
                raise Transient(f"{what}: HTTP {found.status_code}")  # a success without the file
            return found

        return await client.retry(attempt, self._policy)

    async def send_once(self, request: httpx.Request) -> httpx.Response:
        """One attempt, for the scheduler to retry."""
        try:
            return await client.send(self.http, request, circuit=self.circuit)
        except Rejected as error:
            if isinstance(error.__cause__, httpx.TransportError):
                raise  # no connection stood, so nothing was sent
            # All of it was sent; an unreadable answer leaves open whether it was stored.
            raise Transient(str(error), ambiguous=True, hint=error.hint) from error

    async def ask(self, make_request: Callable[[], httpx.Request]) -> httpx.Response:
        """Send what changes nothing, again if no answer came; return one of any status."""
        return await client.retry(lambda: client.send(self.http, make_request()), self._policy)

    async def send_paced(self, make_request: Callable[[], httpx.Request]) -> httpx.Response:
        """As `send_once`, for one file of many: after too many requests, this one is sent again at
        the reduced pace, rather than all files of the package.
        """
        while True:
            response = await self.send_once(make_request())
            too_many = "slowed_down" in response.extensions
            is_told_when = retry_after(response) is not None  # the scheduler waits without a slot
            if not too_many or is_told_when or self.circuit.refusals > self._policy.max_retries:
                return response

    async def document(self, response: httpx.Response, what: str) -> dict[str, Any]:
        """The JSON object of a successful answer; raises Transient for anything else in one."""
        parse = partial(parse_json, response.content, max_bytes=MAX_ENTRY_BYTES)
        found = await self.parse(response, what, parse, form="JSON")
        if not isinstance(found, dict):
            raise Transient(f"{what}: not a JSON object", problem=Problem.STRANGE_ANSWER)
        return found

    async def parse(
        self, response: httpx.Response, what: str, parse: Callable[[], T], *, form: str
    ) -> T:
        """A successful answer, parsed beside the loop: there are pages of a hundred thousand files.
        Raises Transient where `parse` raises ValueError.
        """
        self.check(response, what)
        try:
            return await asyncio.to_thread(parse)
        except ValueError as error:
            refuse_page(response, what, form)
            raise Transient(
                f"{what}: not {form} ({error})", problem=Problem.STRANGE_ANSWER
            ) from error


def below(url: httpx.URL, path: str) -> httpx.URL:
    return url.copy_with(path=f"{url.path.rstrip('/')}/{path}")
