from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest

import virtual_time
from releasekit.errors import ConfigError, Denied, Transient
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, Secret, snapshot
from releasekit.http.identity import IdTokens, Minted, SharedToken

if TYPE_CHECKING:
    from collections.abc import Callable

OFFERED = {
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://token.actions.example/get?api-version=2.0",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner-token",
}


def fetch(
    environ: dict[str, str],
    answer: Callable[[httpx.Request], httpx.Response],
    masked: list[str] | None = None,
) -> Secret:
    seen: list[str] = [] if masked is None else masked

    async def main() -> Secret:
        async with http_client(transport=httpx.MockTransport(answer)) as http:
            credentials = Credentials(snapshot(environ), mask=seen.append)
            return await IdTokens(credentials, http).fetch("pypi")

    return virtual_time.run(main())


def test_an_id_token_is_asked_for_with_its_audience() -> None:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json={"value": "eyJ.claims.sig"})

    masked: list[str] = []
    assert fetch(OFFERED, answer, masked) == Secret("eyJ.claims.sig")
    (request,) = requests
    assert str(request.url) == "https://token.actions.example/get?api-version=2.0&audience=pypi"
    assert request.headers["Authorization"] == "Bearer runner-token"
    assert masked[-1] == "eyJ.claims.sig"


@pytest.mark.parametrize("missing", OFFERED)
def test_without_the_permission_nothing_is_offered(missing: str) -> None:
    environ = {name: value for name, value in OFFERED.items() if name != missing}
    credentials = Credentials(snapshot(environ), mask=lambda _: None)
    assert not IdTokens(credentials, httpx.AsyncClient()).offered
    with pytest.raises(Denied, match="may not ask GitHub"):
        fetch(environ, lambda _: httpx.Response(200))


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (httpx.Response(200, text="no JSON"), Transient),
        (httpx.Response(200, text="[" * 100_000), Transient),
        (httpx.Response(200, json=["value"]), Transient),
        (httpx.Response(200, json={"value": ""}), Transient),
        (httpx.Response(200, json={"value": 1}), Transient),
        (httpx.Response(503), Transient),
        (httpx.Response(403, text="runner-token is not welcome"), Denied),
    ],
)
def test_an_answer_without_a_token_is_an_error(
    response: httpx.Response, error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        fetch(OFFERED, lambda _: response)
    assert "runner-token" not in str(caught.value)


def test_the_runners_token_goes_to_no_unencrypted_host() -> None:
    """R37"""
    unsafe = OFFERED | {"ACTIONS_ID_TOKEN_REQUEST_URL": "http://token.actions.example/"}
    with pytest.raises(ConfigError, match="ACTIONS_ID_TOKEN_REQUEST_URL"):
        fetch(unsafe, lambda _: httpx.Response(200))


class Mint:
    def __init__(self, *lifetimes: float) -> None:
        self.lifetimes = list(lifetimes)
        self.made: list[Secret] = []

    async def __call__(self) -> Minted:
        await asyncio.sleep(1)
        self.made.append(Secret(f"token-{len(self.made)}"))
        return Minted(self.made[-1], self.lifetimes[len(self.made) - 1])


def test_one_token_serves_all_uploads() -> None:
    """R38"""

    async def main() -> None:
        mint = Mint(900)
        shared = SharedToken(mint)
        tokens = await asyncio.gather(*(shared.get() for _ in range(20)))
        assert set(tokens) == set(mint.made) == {Secret("token-0")}

    virtual_time.run(main())


def test_a_token_is_renewed_before_it_ends() -> None:
    """R38"""

    async def main() -> None:
        mint = Mint(900, 900)
        shared = SharedToken(mint)
        await shared.get()
        await asyncio.sleep(779)
        assert await shared.get() == Secret("token-0")
        await asyncio.sleep(1)
        assert await shared.get() == Secret("token-1")
        assert len(mint.made) == 2

    virtual_time.run(main())


def test_a_refused_token_is_replaced_once_for_everybody() -> None:
    async def main() -> None:
        mint = Mint(900, 900)
        shared = SharedToken(mint)
        old = await shared.get()
        shared.drop(old)
        new = await shared.get()
        shared.drop(old)  # another upload was refused with the same old token
        assert await shared.get() is new
        assert len(mint.made) == 2

    virtual_time.run(main())


def test_a_mint_that_fails_is_tried_again_by_the_next_upload() -> None:
    async def mint() -> Minted:
        if not failures:
            return Minted(Secret("token"), 900)
        raise failures.pop()

    async def main() -> None:
        shared = SharedToken(mint)
        with pytest.raises(Denied):
            await shared.get()
        assert await shared.get() == Secret("token")

    failures = [Denied("not yet")]
    virtual_time.run(main())
