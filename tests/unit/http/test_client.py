from __future__ import annotations

import asyncio
import errno
import gzip
import random
import socket
import ssl
from typing import TYPE_CHECKING

import httpx
import pytest

import virtual_time
from raising import raises
from releasekit.errors import (
    ConfigError,
    Rejected,
    Transient,
)
from releasekit.http.circuit import Circuit
from releasekit.http.client import (
    RetryPolicy,
    http_client,
    request_with_retry,
    retry,
    send,
    transport_error,
)
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

URL = "https://registry.example/simple/acme/"

Answer = httpx.Response | Exception


class Script(httpx.AsyncBaseTransport):
    """Answers in turn; keeps the requests and when they came."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.times: list[float] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        self.times.append(virtual_time.now())
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def get(
    script: Script, policy: RetryPolicy | None = None, *, url: str = URL, **headers: str
) -> httpx.Response:
    async def main() -> httpx.Response:
        async with http_client(transport=script) as client:
            return await request_with_retry(client, "GET", url, headers=headers, policy=policy)

    return virtual_time.run(main())


def answer(status: int, text: str = "", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, text=text, headers=named)


class Slow(httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            yield b"drip"
            await asyncio.sleep(10)


class Highest(random.Random):
    """The longest pause there can be."""

    def uniform(self, a: float, b: float) -> float:
        return b


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_busy_registry_is_asked_again(status: int) -> None:
    """R12"""
    script = Script([answer(status), answer(status), answer(200, "there")])
    assert get(script).text == "there"
    assert len(script.requests) == 3


@pytest.mark.parametrize("status", [200, 301, 400, 401, 403, 404, 409, 422, 501])
def test_any_other_answer_comes_back_at_once(status: int) -> None:
    script = Script([answer(status)])
    assert get(script).status_code == status


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout("slow"),
        httpx.ReadTimeout("slower"),
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("gone"),
    ],
)
def test_a_broken_connection_is_tried_again(error: Exception) -> None:
    """R12"""
    assert get(Script([error, answer(200, "there")])).text == "there"


def test_retries_end() -> None:
    """R12"""
    script = Script([answer(503, "down for maintenance")] * 9)
    with pytest.raises(Transient, match=r"GET https://registry.example/.* HTTP 503 down for main"):
        get(script, RetryPolicy(2, 1.0))
    assert len(script.requests) == 3


def test_pauses_grow_and_obey_retry_after() -> None:
    """R12"""
    script = Script([answer(503), answer(503), answer(429, retry_after="40"), answer(200)])
    get(script, RetryPolicy(5, 1.0, rng=Highest()))
    assert script.times == [0, 1, 3, 43]


def test_no_pause_goes_past_the_deadline() -> None:
    """R12: told to come back in half an hour, a run says so instead of waiting."""
    script = Script([answer(429, retry_after="1800")])
    with pytest.raises(Transient) as caught:
        get(script)
    assert caught.value.retry_after == 1800.0
    assert script.times == [0]


def test_an_answer_that_never_ends_is_cut_off_at_the_deadline() -> None:
    """R12, R40"""
    script = Script([httpx.Response(200, stream=Slow())])
    with pytest.raises(Transient, match="no answer within 300 s"):
        get(script)


def test_a_time_out_of_somebody_else_is_not_swallowed() -> None:
    async def attempt() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        virtual_time.run(retry(attempt, RetryPolicy()))


@pytest.mark.parametrize(
    ("error", "ambiguous"),
    [
        (httpx.ConnectError("refused"), False),
        (httpx.ConnectTimeout(""), False),
        (httpx.PoolTimeout(""), False),
        (httpx.ProxyError("407"), False),
        (httpx.WriteError("reset"), True),
        (httpx.WriteTimeout(""), True),
        (httpx.ReadError("reset"), True),
        (httpx.ReadTimeout(""), True),
        (httpx.RemoteProtocolError("disconnected"), True),
    ],
)
def test_only_what_may_have_arrived_is_ambiguous(error: Exception, ambiguous: bool) -> None:
    """R15"""
    with pytest.raises(Transient) as caught:
        get(Script([error]), RetryPolicy(0))
    assert caught.value.ambiguous is ambiguous


def test_an_error_that_was_merely_raised_before_another_one_is_no_cause_of_it() -> None:
    """R47: a host refuses, and what is asked because of that does not answer in time."""
    refused, late = ConnectionRefusedError(errno.ECONNREFUSED, "failed"), httpx.ConnectTimeout("")
    late.__cause__ = TimeoutError()
    late.__cause__.__context__ = refused
    told = transport_error(httpx.Request("GET", "https://registry.example/"), late)
    assert str(told).endswith(": ConnectTimeout")


@pytest.mark.parametrize("how", ["by its cause", "by its argument", "within a group"])
def test_an_error_that_leads_to_itself_is_told_once(how: str) -> None:
    """R68"""
    refused, error = ConnectionRefusedError(errno.ECONNREFUSED, "failed"), httpx.ConnectError("")
    error.__cause__ = refused
    if how == "by its cause":
        refused.__cause__ = error
    elif how == "by its argument":
        refused.args = (error,)
    else:
        error.__cause__ = ExceptionGroup("several", [refused])
        refused.__cause__ = error.__cause__
    told = transport_error(httpx.Request("GET", "https://registry.example/"), error)
    assert str(told).endswith(": Connection refused")


def test_a_host_that_refuses_is_told_in_the_words_of_the_system() -> None:
    """Of several addresses, asyncio says no more than that all attempts failed."""

    async def main() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # and nobody listens
            url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
            async with http_client() as client:
                await request_with_retry(client, "GET", url, policy=RetryPolicy(0))

    with pytest.raises(Transient, match=r": Connection refused$"):
        asyncio.run(main())


def test_numbers_of_errors_and_escapes_of_names_are_not_shown() -> None:
    error = httpx.ConnectError("[Errno -2] Name or service not known")
    script = Script([error])

    async def main() -> None:
        async with http_client(transport=script) as client:
            await request_with_retry(
                client, "GET", "https://npm.example/@acme%2fcore", policy=RetryPolicy(0)
            )

    with pytest.raises(Transient) as caught:
        virtual_time.run(main())
    assert str(caught.value) == "GET https://npm.example/@acme/core: Name or service not known"


def test_a_certificate_that_does_not_verify_is_final() -> None:
    """R37"""
    error = httpx.ConnectError("certificate verify failed")
    error.__cause__ = ssl.SSLCertVerificationError("self-signed certificate")
    script = Script([error])
    with pytest.raises(Rejected) as caught:
        get(script)
    assert "SSL_CERT_FILE" in caught.value.hint


def test_certificates_are_verified() -> None:
    """R37"""
    (connection,) = http_client()._connections
    pool = connection._transport._pool  # type: ignore[attr-defined]
    assert pool._ssl_context.verify_mode == ssl.CERT_REQUIRED
    assert pool._ssl_context.check_hostname


def test_an_answer_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """R40: by what it unpacks to, not by what was sent."""
    packed = gzip.compress(b"0" * 10_000_000)
    response = httpx.Response(200, content=packed, headers={"Content-Encoding": "gzip"})

    async def main() -> None:
        async with http_client(transport=Script([response])) as client:
            await send(client, client.build_request("GET", URL), max_bytes=1_000_000)

    with pytest.raises(Rejected, match="over 1000000 bytes"):
        virtual_time.run(main())


def test_a_packed_answer_is_unpacked_once() -> None:
    packed = gzip.compress(b"page")
    headers = {"Content-Encoding": "gzip", "Content-Type": "text/html"}
    response = get(Script([httpx.Response(200, content=packed, headers=headers)]))
    assert response.text == "page"
    assert response.headers["Content-Type"] == "text/html"


def test_an_answer_that_cannot_be_unpacked_is_tried_again() -> None:
    broken = httpx.Response(200, stream=Bytes(b"no gzip"), headers={"Content-Encoding": "gzip"})
    assert get(Script([broken, answer(200, "page")])).text == "page"


class Bytes(httpx.AsyncByteStream):
    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data


def test_credentials_stay_on_their_origin() -> None:
    """R37"""
    script = Script(
        [
            answer(302, location="/other/"),
            answer(302, location="https://elsewhere.example/"),
            answer(200),
        ]
    )
    get(script, Authorization="Basic c2VjcmV0")
    sent = [request.headers.get("Authorization") for request in script.requests]
    assert sent == ["Basic c2VjcmV0", "Basic c2VjcmV0", None]


@pytest.mark.parametrize(
    ("url", "location"),
    [
        (URL, "https://registry.example:8443/"),
        (URL, "https://registry.example:80/"),
        # httpx would let them follow this one.
        ("http://localhost/", "https://localhost/"),
    ],
)
def test_another_port_or_scheme_is_another_origin(url: str, location: str) -> None:
    """R37"""
    script = Script([answer(302, location=location), answer(200)])
    get(script, url=url, Authorization="Basic c2VjcmV0")
    assert "Authorization" not in script.requests[1].headers


def test_a_redirect_to_an_unencrypted_page_is_refused() -> None:
    """R37"""
    script = Script([answer(302, location="http://registry.example/")])
    with pytest.raises(Rejected, match="not https"):
        get(script)


def test_who_is_asked_without_encryption_may_send_on_to_itself() -> None:
    """R37"""
    url = "http://packages.lan/a"
    get(Script([answer(302, location="/b"), answer(200)]), url=url)
    with pytest.raises(Rejected, match="not https"):
        get(Script([answer(302, location="http://other.lan/b")]), url=url)


def test_redirects_end() -> None:
    """R40"""
    script = Script([answer(302, location="/again/")] * 9)
    with pytest.raises(Rejected, match="more than 5 redirects"):
        get(script)
    assert len(script.requests) == 5


def test_errors_name_no_query_and_no_user() -> None:
    """R34"""

    async def main() -> None:
        async with http_client(transport=Script([httpx.ConnectError("refused")])) as client:
            url = "https://user:hunter2@registry.example/token?secret=hunter2"
            await send(client, client.build_request("GET", url))

    with pytest.raises(Transient) as caught:
        virtual_time.run(main())
    assert str(caught.value) == "GET https://registry.example/token: refused"


def test_a_registry_that_is_down_is_left_alone() -> None:
    """A circuit opens after failures in a row, and the pauses of the retries follow it."""
    script = Script([*[answer(502)] * 3, answer(200)])
    circuit = Circuit("registry.example", failures=3, pause_s=20)
    get(script, RetryPolicy(9, 0.0, circuit=circuit))
    assert script.times == [0, 0, 0, 20]


def test_a_rest_is_no_attempt() -> None:
    """R16: with one retry, a look still gets both of its answers."""
    script = Script([answer(503), answer(200)])
    circuit = Circuit("registry.example", failures=1, pause_s=20)
    get(script, RetryPolicy(1, 0.0, circuit=circuit))
    assert script.times == [0, 20]


def test_an_address_where_nobody_has_ever_answered_is_no_outage() -> None:
    """R16: a wrong address is told after a few quick tries, without any rest."""
    circuit = Circuit("registry.example", failures=1, pause_s=20)
    script = Script([httpx.ConnectError("refused")] * 4)
    with pytest.raises(Transient, match="refused"):
        get(script, RetryPolicy(3, 1.0, circuit=circuit))
    assert len(script.requests) == 4
    assert script.times[-1] <= 3
    script = Script([answer(200), httpx.ConnectError("refused"), answer(200)])
    for _ in range(2):
        get(script, RetryPolicy(1, 0.0, circuit=circuit))
    assert script.times[-1] == 20


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "all_proxy"])
def test_a_proxy_that_cannot_be_reached_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """R34: with the variable to correct, and without its credentials."""
    monkeypatch.setenv(variable, "http://me:hunter2@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "other.example")
    with pytest.raises(Transient) as caught:
        get(Script([httpx.ConnectError("refused")]), RetryPolicy(0))
    name = variable.upper()
    assert str(caught.value) == (
        f"GET {URL}: refused (through the proxy http://127.0.0.1:9, which {name} names)"
    )
    assert caught.value.hint == f"Correct {name}, or name registry.example in NO_PROXY."
    for url, error in (
        ("https://other.example/", httpx.ConnectError("refused")),
        (URL, httpx.ReadError("reset")),
    ):
        with pytest.raises(Transient, match=r"(refused|reset)$"):
            get(Script([error]), RetryPolicy(0), url=url)


@pytest.mark.parametrize(("proxies", "looks"), [({}, 0), ({"https": "http://127.0.0.1:9"}, 1)])
def test_no_connection_looks_for_proxies_where_there_are_none(
    monkeypatch: pytest.MonkeyPatch, proxies: dict[str, str], looks: int
) -> None:
    """httpx looks through the whole environment; the first connection is made with the client."""
    looked: list[dict[str, str]] = []

    def look() -> dict[str, str]:
        looked.append(proxies)
        return proxies

    monkeypatch.setattr("httpx._utils.getproxies", look)
    monkeypatch.setattr("releasekit.http.client.getproxies", lambda: proxies)
    http_client()
    assert len(looked) == looks


def test_a_proxy_that_is_none_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://127.0.0.1:9")
    with pytest.raises(ConfigError, match=r"HTTPS_PROXY or ALL_PROXY cannot be used: .*gopher"):
        http_client()


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "HTTPS_PROXY", "all_proxy"])
def test_a_proxy_whose_port_does_not_exist_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """R34, R40: neither httpx nor the socket says so but by a bug of theirs."""
    monkeypatch.setenv(variable, "me:hunter2@127.0.0.1:99999")
    name = variable.upper()
    with raises(Problem.NETWORK_SETTINGS, match="99999 is not a port") as caught:
        http_client()
    assert str(caught.value) == (
        f"{name} = http://127.0.0.1:99999: 99999 is not a port: they end at 65535"
    )
    assert caught.value.hint == (
        f"Write the address of an HTTP proxy: {name}=http://proxy.example:3128"
    )
    assert caught.value.exit_code == 2


def test_a_socks_proxy_is_refused_in_plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    with pytest.raises(ConfigError, match="it names a SOCKS proxy") as caught:
        http_client()
    assert "HTTP proxy" in caught.value.hint


def test_certificates_that_are_none_are_told_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """R40"""
    nothing = tmp_path / "nothing.pem"
    nothing.touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(nothing))
    with pytest.raises(ConfigError, match="REQUESTS_CA_BUNDLE cannot be used"):
        http_client()


def test_an_open_circuit_says_so_without_asking() -> None:
    circuit = Circuit("registry.example", failures=1, pause_s=20)
    script = Script([answer(503)])
    with pytest.raises(Transient, match=r"registry\.example is down: .*'HTTP 503'") as caught:
        get(script, RetryPolicy(1, 0.0, deadline_s=10, circuit=circuit))
    assert caught.value.retry_after is None or caught.value.retry_after <= 20
    assert len(script.requests) == 1


def test_a_server_that_is_crowded_is_not_left_alone() -> None:
    async def main() -> None:
        script = Script([answer(500, "cannot lock ref"), answer(500, "no space left")])
        async with http_client(transport=script) as client:
            circuit = Circuit("x", failures=1)
            await send(client, client.build_request("GET", URL), circuit=circuit)
            circuit.check()
            await send(client, client.build_request("GET", URL), circuit=circuit)
            with pytest.raises(Transient, match="is down"):
                circuit.check()

    virtual_time.run(main())


def test_a_port_that_there_is_not_ends_one_look() -> None:
    """R40: an answer may name any; neither httpx nor the socket says so but by a bug of theirs."""

    async def main() -> None:
        elsewhere = httpx.Response(302, headers={"Location": "https://registry.example:99999/x"})
        transport = Script([elsewhere])
        async with http_client(transport=transport) as client:
            with raises(Problem.WRONG_ADDRESS, match="99999 is not a port"):
                await request_with_retry(client, "GET", URL)

    virtual_time.run(main())
