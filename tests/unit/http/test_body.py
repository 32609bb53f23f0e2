from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib
from typing import TYPE_CHECKING

import httpx
import pytest

from releasekit.errors import Rejected, Transient
from releasekit.http.body import read_body
from releasekit.http.client import http_client, send

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

REQUEST = httpx.Request("GET", "https://registry.example/simple/acme/?token=x")
MB = 1024 * 1024


class Pieces(httpx.AsyncByteStream):
    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self.taken = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            self.taken += 1
            yield piece


def response(*pieces: bytes, encoding: str = "gzip") -> httpx.Response:
    headers = {"Content-Encoding": encoding} if encoding else {}
    return httpx.Response(200, stream=Pieces(pieces), headers=headers, request=REQUEST)


def read(answer: httpx.Response, max_bytes: int = MB) -> bytes:
    return asyncio.run(read_body(answer, max_bytes))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_packed_answer_comes_in_pieces_of_any_size(size: int) -> None:
    data = bytes(range(256)) * 4000
    packed = gzip.compress(data) + b"what follows does not count"
    pieces = [packed[start : start + size] for start in range(0, len(packed), size)]
    assert read(response(*pieces)) == data


@pytest.mark.parametrize("encoding", ["", "identity", "Identity, "])
def test_what_is_not_packed_stays_as_it_is(encoding: str) -> None:
    assert read(response(b"pa", b"ge", encoding=encoding)) == b"page"


def test_an_answer_without_a_body_is_not_unpacked() -> None:
    """As those to HEAD are."""
    assert read(response()) == b""


@pytest.mark.parametrize(
    "encoding", ["gzip, gzip", "gzip, gzip, gzip", "br", "zstd", "deflate", "gzip," * 20_000 + "x"]
)
def test_no_other_encoding_than_the_one_asked_for(encoding: str) -> None:
    """R40: three of them turned 377 bytes into gigabytes."""
    answer = response(gzip.compress(b"page"), encoding=encoding)
    with pytest.raises(Rejected, match="and only gzip was asked for") as caught:
        read(answer)
    assert len(str(caught.value)) < 250
    assert "token" not in str(caught.value)


def test_only_that_encoding_is_asked_for_and_no_cookie_is_kept() -> None:
    """R40"""
    seen: list[httpx.Headers] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers)
        return httpx.Response(200, headers=[("Set-Cookie", "a=b; Path=/")] * 3)

    async def main() -> None:
        async with http_client(transport=httpx.MockTransport(answer)) as client:
            for _ in range(2):
                await send(client, client.build_request("GET", "https://registry.example/"))

    asyncio.run(main())
    assert [headers["Accept-Encoding"] for headers in seen] == ["gzip", "gzip"]
    assert not any("Cookie" in headers for headers in seen)


def test_unpacking_ends_at_the_limit() -> None:
    """R40: much in one small piece, of which only what is allowed is ever made."""
    bomb = gzip.compress(bytes(64 * MB), 1)
    assert len(bomb) < MB
    tracemalloc.start()
    try:
        with pytest.raises(Rejected, match="over 1048576 bytes"):
            read(response(bomb))
        assert tracemalloc.get_traced_memory()[1] < 4 * MB
    finally:
        tracemalloc.stop()


def test_what_unpacks_to_nothing_ends_at_the_limit_too() -> None:
    """R40: empty blocks, for ever."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = packer.compress(b"x") + packer.flush(zlib.Z_FULL_FLUSH)
    stream = Pieces([head, *[b"\x00\x00\x00\xff\xff" * 1000] * 10_000])
    answer = httpx.Response(200, stream=stream, headers={"Content-Encoding": "gzip"})
    answer.request = REQUEST
    with pytest.raises(Rejected, match="over 1048576 bytes"):
        read(answer)
    assert stream.taken < 300


@pytest.mark.parametrize("data", [gzip.compress(b"page")[:-1], b"no gzip at all", b"\x1f"])
def test_what_is_cut_or_broken_may_come_whole_the_next_time(data: bytes) -> None:
    with pytest.raises(Transient, match="unreadable answer"):
        read(response(data))


def test_others_get_their_turn_while_much_arrives() -> None:
    """R51: counted in turns of the loop, as a body of tiny chunks or of one large one comes in."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def main(answer: httpx.Response) -> int:
        nonlocal turns
        turns = 0
        other = asyncio.ensure_future(count())
        await read_body(answer, 64 * MB)
        other.cancel()
        return turns

    assert asyncio.run(main(response(*[b"x"] * 100_000, encoding=""))) > 300
    assert asyncio.run(main(response(gzip.compress(bytes(16 * MB), 1)))) > 50
