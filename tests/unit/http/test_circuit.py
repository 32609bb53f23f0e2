from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import TYPE_CHECKING, cast

import httpx
import pytest

import fakes
import virtual_time
from releasekit.ecosystems.maven.repository import ANSWERS
from releasekit.ecosystems.shared.server import RegistryClient
from releasekit.errors import CircuitOpen, Transient
from releasekit.http.circuit import Circuit
from releasekit.http.client import RetryPolicy, http_client, request_with_retry, retry
from releasekit.http.credentials import Credentials, snapshot
from releasekit.scheduler.retries import WaitBudget

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.host.process import Processes


def test_it_opens_after_failures_in_a_row_only() -> None:
    async def main() -> None:
        circuit = Circuit("registry", failures=2)
        circuit.record_failure("HTTP 503")
        circuit.record_success()
        circuit.record_failure("HTTP 503")
        circuit.check()
        circuit.record_failure("HTTP 502")
        with pytest.raises(Transient, match="2 times in a row, the last time with") as caught:
            circuit.check()
        assert str(caught.value).endswith("with 'HTTP 502'; asking again in 5 s")
        assert "run the same command again later" in caught.value.hint
        assert caught.value.retry_after == 5.0
        assert not caught.value.ambiguous
        impatient = WaitBudget(max_wait_s=1.0)
        assert not impatient.find_limit(caught.value, 0.0)  # nobody has asked for that pause

    virtual_time.run(main())


def test_each_pause_is_twice_the_last_up_to_a_minute() -> None:
    async def main() -> list[float]:
        circuit = Circuit("registry", failures=1, pause_s=10.0)
        pauses = []
        for _ in range(5):
            circuit.record_failure("refused")
            with pytest.raises(Transient) as caught:
                circuit.check()
            pauses.append(caught.value.retry_after or 0.0)
            await asyncio.sleep(pauses[-1])
            circuit.check()
        return pauses

    assert virtual_time.run(main()) == [10, 20, 40, 60, 60]


def test_a_rest_counts_as_an_attempt_once_it_has_lasted_too_long() -> None:
    """R16: an outage is waited for, but not for ever; and the next one has its own time."""

    async def main() -> list[tuple[float, bool]]:
        circuit = Circuit("registry", failures=1, pause_s=60.0)
        seen = []
        for _ in range(2):
            for _ in range(6):
                circuit.record_failure("refused")
                with pytest.raises(Transient) as caught:
                    circuit.check()
                seen.append((virtual_time.now() % 360, isinstance(caught.value, CircuitOpen)))
                await asyncio.sleep(60.0)
            circuit.record_success()
        return seen

    once = [(0, True), (60, True), (120, True), (180, True), (240, True), (300, False)]
    assert virtual_time.run(main()) == once * 2


def test_what_failed_once_long_ago_has_not_been_down_since() -> None:
    """R16: nothing may have been asked meanwhile, while everything was built."""

    async def main() -> None:
        circuit = Circuit("registry", failures=2, pause_s=5.0)
        circuit.record_failure("refused")
        await asyncio.sleep(600.0)
        circuit.record_failure("refused")
        with pytest.raises(CircuitOpen):
            circuit.check()

    virtual_time.run(main())


def test_requests_under_way_when_it_opened_do_not_lengthen_the_pause() -> None:
    async def main() -> None:
        circuit = Circuit("registry", failures=1, pause_s=10.0)
        for _ in range(8):
            circuit.record_failure("refused")
        await asyncio.sleep(10.0)
        circuit.check()

    virtual_time.run(main())


class Limited(httpx.AsyncBaseTransport):
    """Ten requests in a second, and twenty at once, as nginx's `limit_req` with a burst of 20."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.tokens, self.at_s = 20.0, 0.0
        self.requests = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.05)
        now = virtual_time.now()
        self.tokens = min(20.0, self.tokens + 10 * (now - self.at_s))
        self.at_s = now
        self.requests += 1
        if self.tokens < 1:
            return httpx.Response(self.status)
        self.tokens -= 1
        return httpx.Response(200)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("packages", [51, 150])
def test_a_registry_that_limits_rates_is_asked_as_fast_as_it_takes(
    status: int, packages: int
) -> None:
    """R12: it names no time; everything is answered, with few requests too many."""

    async def main() -> tuple[int, float]:
        limited = Limited(status)
        policy = RetryPolicy(3, 1.0, circuit=Circuit("registry"), rng=random.Random(0))
        async with http_client(64, transport=limited) as client:
            await asyncio.gather(
                *(
                    request_with_retry(
                        client, "GET", f"https://registry.example/{number}", policy=policy
                    )
                    for number in range(packages)
                )
            )
        return limited.requests, virtual_time.now()

    requests, lasted_s = virtual_time.run(main())
    assert requests - packages < 64
    assert lasted_s < 2 * packages / 10 + 5


class Refusing(httpx.AsyncBaseTransport):
    """Takes all requests but those for one page, which it answers with `status` for good."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.refused = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.05)
        if request.url.path != "/refused":
            return httpx.Response(200)
        self.refused += 1
        return httpx.Response(self.status)


@pytest.mark.parametrize("status", [429, 503])
def test_one_page_that_is_always_refused_is_no_limit_of_the_registry(status: int) -> None:
    """R12: it ends after some attempts, whatever else gets through, and slows nothing down."""

    async def main() -> tuple[int, float, float]:
        refusing = Refusing(status)
        policy = RetryPolicy(3, 1.0, circuit=Circuit("registry"), rng=random.Random(0))

        async def others() -> None:
            for number in range(300):
                await request_with_retry(
                    client, "GET", f"https://registry.example/{number}", policy=policy
                )

        async with http_client(transport=refusing) as client:
            busy = asyncio.ensure_future(others())
            with pytest.raises(Transient, match=f"HTTP {status}"):
                await request_with_retry(
                    client, "GET", "https://registry.example/refused", policy=policy
                )
            refused_s = virtual_time.now()
            await busy
        return refusing.refused, refused_s, virtual_time.now()

    requests, refused_s, lasted_s = virtual_time.run(main())
    assert requests == 4
    assert refused_s < 10
    assert lasted_s < 2 * 300 * 0.05


def test_an_outage_is_waited_for_after_any_number_of_refusals() -> None:
    """R12: while others got through, what was refused was asked for more often than `max-retries`;
    to find the circuit open is still no attempt.
    """
    troubles = [Transient("HTTP 429", slowed_down=True) for _ in range(3)]
    troubles.append(CircuitOpen("down", retry_after=5.0))

    async def attempt() -> str:
        if troubles:
            raise troubles.pop(0)
        return "there"

    policy = RetryPolicy(max_retries=1, circuit=Circuit("registry"))
    assert virtual_time.run(retry(attempt, policy)) == "there"


def test_each_attempt_at_an_upload_slows_down_no_further(tmp_path: Path) -> None:
    """R12: a file that is always refused, and a package that is tried again because of it."""

    async def main() -> tuple[int, float]:
        refusing = Refusing(503)
        config = fakes.config(tmp_path, max_retries=3)
        async with http_client(transport=refusing) as client:
            taken = snapshot({})
            given = fakes.make_services(
                config, client, cast("Processes", None), Credentials(taken, mask=lambda _: None)
            )
            server = RegistryClient(httpx.URL("https://registry.example/"), ANSWERS, given)
            for _ in range(4):
                await server.read(server.at("page"))
                make_request = partial(client.build_request, "PUT", server.at("refused"))
                assert (await server.send_paced(make_request)).status_code == 503
        return refusing.refused, virtual_time.now()

    requests, lasted_s = virtual_time.run(main())
    assert requests == 4 + 3
    assert lasted_s < 15
