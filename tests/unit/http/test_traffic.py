from __future__ import annotations

import asyncio
import contextlib
import gzip
from typing import TYPE_CHECKING

import httpx
import pytest

import virtual_time
from fakes import package_id
from releasekit.aio import gather_all
from releasekit.errors import Rejected, Transient
from releasekit.http.circuit import Circuit
from releasekit.http.client import RetryPolicy, download, http_client, request_with_retry, send
from releasekit.http.traffic import (
    Counters,
    Metrics,
    Pause,
    attribute_to,
    collect,
    record_pauses,
    restart_clock,
    wait_for_turn,
)
from releasekit.spent import PauseEvent, RequestEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

URL = "https://registry.example/acme"
CORE, APP = package_id("core"), package_id("app")


class Server(httpx.AsyncBaseTransport):
    """Reads what is sent, as a connection does, and answers in turn."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self._answers = list(answers)
        self.arrived = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._answers.pop(0)
        if isinstance(answer, httpx.ConnectError):
            raise answer
        assert isinstance(request.stream, httpx.AsyncByteStream)
        async for part in request.stream:
            self.arrived += len(part)
            if isinstance(answer, httpx.ReadError):
                raise answer
        assert isinstance(answer, httpx.Response)
        return answer


def booked(
    server: Server, main: Callable[[httpx.AsyncClient], Awaitable[object]]
) -> tuple[Metrics, float]:
    async def run() -> Metrics:
        with collect() as book:
            async with http_client(transport=server) as client:
                await main(client)
        return book

    async def timed() -> tuple[Metrics, float]:
        return await run(), virtual_time.now()

    return virtual_time.run(timed())


def get(client: httpx.AsyncClient, **policy: float) -> Awaitable[httpx.Response]:
    calm = RetryPolicy(base_delay_s=policy.get("base_delay_s", 0.0))
    return request_with_retry(client, "GET", URL, policy=calm)


def test_requests_are_those_of_the_package_they_are_made_for() -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        async def of(name: str) -> None:
            with attribute_to(package_id(name)):
                await gather_all([get(client), get(client)])  # in tasks of their own

        await gather_all([of("core"), of("app")])
        await get(client)
        with attribute_to(CORE), attribute_to(APP):
            await get(client)

    book, _ = booked(Server(*(httpx.Response(200, text="four") for _ in range(6))), ask)
    assert book.packages == {
        CORE: Counters(requests=2, received_bytes=8),
        APP: Counters(requests=3, received_bytes=12),
    }
    assert book.rest == Counters(requests=1, received_bytes=4)


def test_bytes_are_counted_as_they_were_on_the_way() -> None:
    packed = gzip.compress(b"x" * 10_000)

    async def ask(client: httpx.AsyncClient) -> None:
        assert len((await get(client)).content) == 10_000

    headers = {"Content-Encoding": "gzip"}
    book, _ = booked(Server(httpx.Response(200, content=packed, headers=headers)), ask)
    assert book.rest == Counters(requests=1, received_bytes=len(packed))


async def pieces() -> AsyncIterator[bytes]:
    for _ in range(3):
        yield b"12345"


@pytest.mark.parametrize(
    ("content", "answer", "sent"),
    [
        (b"1234567", httpx.Response(200), 7),
        (b"", httpx.Response(200), 0),
        (b"1234567", httpx.ReadError("reset"), 7),
        (b"1234567", httpx.ConnectError("refused"), 0),
        (None, httpx.Response(200), 15),
        (None, httpx.ReadError("reset"), 5),
        (None, httpx.ConnectError("refused"), 0),
    ],
)
def test_of_a_body_counts_what_was_handed_to_a_connection(
    content: bytes | None, answer: httpx.Response | Exception, sent: int
) -> None:
    server = Server(answer)

    async def put(client: httpx.AsyncClient) -> None:
        body = pieces() if content is None else content
        headers = {"Content-Length": "15"} if content is None else {}
        request = client.build_request("PUT", URL, content=body, headers=headers)
        if isinstance(answer, Exception):
            with pytest.raises(Transient):
                await send(client, request)
        else:
            await send(client, request)

    book, _ = booked(server, put)
    assert book.rest == Counters(requests=1, sent_bytes=sent)
    if content is None:
        assert server.arrived == sent


def test_a_download_is_counted(tmp_path: Path) -> None:
    async def fetch(client: httpx.AsyncClient) -> None:
        url = httpx.URL(URL)
        await download(client, url, tmp_path / "file", headers={}, max_bytes=100)

    book, _ = booked(Server(httpx.Response(200, content=b"123456789")), fetch)
    assert book.rest == Counters(requests=1, received_bytes=9)


def test_what_is_too_large_has_arrived_all_the_same() -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        with pytest.raises(Rejected):
            await request_with_retry(client, "GET", URL, max_bytes=4)

    book, _ = booked(Server(httpx.Response(200, content=b"12345")), ask)
    assert book.rest.received_bytes == 5


def test_reads_that_are_repeated_are_retries_and_pauses() -> None:
    """R12"""
    answers = [
        httpx.Response(503),
        httpx.Response(429),
        httpx.Response(503, headers={"Retry-After": "7"}),
        httpx.Response(200),
    ]
    pauses: list[Pause] = []

    async def ask(client: httpx.AsyncClient) -> None:
        with record_pauses(pauses):
            await get(client)

    book, ended_s = booked(Server(*answers), ask)
    assert book.rest == Counters(requests=4, retries=3)
    assert [pause.cause for pause in pauses] == ["retry", "rate-limit", "rate-limit"]
    assert sum(pause.end_s - pause.start_s for pause in pauses) == ended_s == 7


def test_a_registry_that_is_left_alone_is_asked_nothing() -> None:
    circuit = Circuit("it", failures=1, pause_s=5.0)
    policy = RetryPolicy(base_delay_s=0.0, circuit=circuit)
    pauses: list[Pause] = []

    async def ask(client: httpx.AsyncClient) -> None:
        with record_pauses(pauses):
            await request_with_retry(client, "GET", URL, policy=policy)

    book, _ = booked(Server(httpx.Response(500), httpx.Response(200)), ask)
    assert book.rest == Counters(requests=2, retries=1)
    assert {pause.cause for pause in pauses} == {"retry"}


def test_the_time_until_a_turn_comes_is_a_pause() -> None:
    pauses: list[Pause] = []
    told: list[tuple[float, str | None]] = []

    async def main() -> None:
        lock, clock = asyncio.Lock(), asyncio.get_running_loop().time

        def tell(cause: str | None, what: str) -> None:
            told.append((clock(), cause and what))

        async def hold(seconds: float) -> None:
            with record_pauses(pauses, tell):
                async with wait_for_turn(lock, "slot", "its turn"):
                    await asyncio.sleep(seconds)

        await gather_all([hold(3), hold(2)])

    virtual_time.run(main())
    assert pauses == [Pause("slot", 0, 0), Pause("slot", 0, 3)]
    assert told == [(0, "its turn"), (0, None), (0, "its turn"), (3, None)]


def test_outside_of_a_book_nothing_is_kept() -> None:
    with attribute_to(CORE), collect() as book:
        pass
    assert book == Metrics()


def watched(
    server: Server, main: Callable[[httpx.AsyncClient], Awaitable[object]]
) -> list[RequestEvent | PauseEvent]:
    seen: list[RequestEvent | PauseEvent] = []

    async def run() -> None:
        with collect(seen.append):
            async with http_client(transport=server) as client:
                await asyncio.sleep(3)
                await main(client)

    virtual_time.run(run())
    return seen


def test_whoever_watches_is_told_of_each_request_and_each_pause() -> None:
    """R12: by its package, with status, bytes, time and the number of the attempt."""
    answers: list[httpx.Response | Exception] = [
        httpx.Response(503, text="no"),
        httpx.ConnectError("refused"),
        httpx.Response(429, headers={"Retry-After": "7"}),
        httpx.Response(200, text="four"),
        httpx.Response(200),
    ]

    async def ask(client: httpx.AsyncClient) -> None:
        with attribute_to(CORE):
            await get(client)
        await get(client)

    told = watched(Server(*answers), ask)
    of_core = {"package": str(CORE), "at_s": 3.0}
    read = {"method": "GET", "url": URL, "lasted_s": 0.0}
    again = PauseEvent(**of_core, cause="retry", lasted_s=0.0)  # type: ignore[arg-type]
    refused = "ConnectError: refused"
    assert told == [
        RequestEvent(**of_core, **read, status=503, received_bytes=2),  # type: ignore[arg-type]
        again,
        RequestEvent(**of_core, **read, trouble=refused, attempt=2),  # type: ignore[arg-type]
        again,
        RequestEvent(**of_core, **read, status=429, attempt=3),  # type: ignore[arg-type]
        PauseEvent(package=str(CORE), cause="rate-limit", at_s=3.0, lasted_s=7.0),
        RequestEvent(
            package=str(CORE),
            method="GET",
            url=URL,
            at_s=10.0,
            lasted_s=0.0,
            status=200,
            received_bytes=4,
            attempt=4,
        ),
        RequestEvent(package="", method="GET", url=URL, at_s=10.0, lasted_s=0.0, status=200),
    ]


@pytest.mark.parametrize("content", [b"12345", None])
def test_uploads_are_told_with_what_was_sent_and_without_a_number(content: bytes | None) -> None:
    """Several files go to one address, side by side."""

    async def put(client: httpx.AsyncClient) -> None:
        for _ in range(3):
            body = pieces() if content is None else content
            request = client.build_request("POST", URL, content=body)
            with contextlib.suppress(Transient):
                await send(client, request)

    answers: list[httpx.Response | Exception]
    answers = [httpx.Response(503), httpx.ReadError("reset"), httpx.Response(200)]
    told = watched(Server(*answers), put)
    found = [
        (each.status, each.trouble, each.sent_bytes, each.attempt)
        for each in told
        if isinstance(each, RequestEvent)
    ]
    size = 15 if content is None else 5
    assert found == [
        (503, "", size, 1),
        (0, "ReadError: reset", 5, 1),
        (200, "", size, 1),
    ]


class Streamed(httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"123"
        yield b"45"


def test_an_answer_is_told_when_its_body_has_arrived() -> None:
    """And reads the same where nobody watches."""

    async def ask(client: httpx.AsyncClient) -> None:
        assert (await get(client)).content == b"12345"

    (told,) = watched(Server(httpx.Response(200, stream=Streamed())), ask)
    assert isinstance(told, RequestEvent)
    assert (told.status, told.trouble, told.received_bytes) == (200, "", 5)
    book, _ = booked(Server(httpx.Response(200, stream=Streamed())), ask)
    assert book.rest == Counters(requests=1, received_bytes=5)


def test_an_answer_that_breaks_off_is_told_with_what_has_arrived() -> None:
    class Broken(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"123"
            raise httpx.ReadError("reset")

    async def ask(client: httpx.AsyncClient) -> None:
        with pytest.raises(Transient):
            await send(client, client.build_request("GET", URL))

    (told,) = watched(Server(httpx.Response(200, stream=Broken())), ask)
    assert isinstance(told, RequestEvent)
    assert (told.status, told.trouble, told.received_bytes) == (200, "ReadError: reset", 3)


def test_a_wait_that_somebody_would_notice_is_told_at_its_end() -> None:
    async def hold(lock: asyncio.Lock, what: str) -> None:
        with attribute_to(package_id(what)):
            async with wait_for_turn(lock, "slot", what):
                await asyncio.sleep(2)

    async def main(_: httpx.AsyncClient) -> None:
        lock = asyncio.Lock()
        await gather_all([hold(lock, "core"), hold(lock, "app")])

    told = watched(Server(), main)
    end = PauseEvent(package=str(APP), cause="slot", at_s=5.0, lasted_s=2.0, end=True, what="app")
    assert told == [end]


def test_times_are_told_since_the_run_began() -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        assert restart_clock() == 3.0
        await get(client)

    (told,) = watched(Server(httpx.Response(200)), ask)
    assert told.at_s == 0.0
