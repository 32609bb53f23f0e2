from __future__ import annotations

import asyncio
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fakes
import virtual_time
from releasekit.cli.request_log import is_verbose, request_logger
from releasekit.cli.session import Session
from releasekit.host.ci import CI
from releasekit.host.runner import open_runner
from releasekit.http.credentials import Credentials, snapshot
from releasekit.spent import PauseEvent, RequestEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.config.config import Config

SECRET = "pypi-canary-3f9a-of-the-registry"
EXCHANGE = RequestEvent(
    package="pypi:core",
    method="GET",
    url=f"https://me:{SECRET}@r.example/{SECRET}?token={SECRET}",
    at_s=1.0,
    lasted_s=0.5,
    status=200,
)
WHOLE = (
    "     1.0 s    pypi:core  GET https://***@r.example/***?… -> 200; "
    "sent 0 bytes, received 0 bytes, 500 ms\n"
)


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def delay(lasted_s: float, *, end: bool = False) -> PauseEvent:
    return PauseEvent(package="pypi:core", cause="rate-limit", at_s=1.0, lasted_s=lasted_s, end=end)


def told(
    config: Config,
    environment: Mapping[str, str],
    *seen: RequestEvent | PauseEvent,
    out: StringIO | None = None,
    pause_s: float = 0.0,
) -> str:
    """What is printed of them, one every `pause_s`."""
    stream = out or StringIO()
    credentials = Credentials(
        snapshot({**environment, "RELEASEKIT_PYPI_TOKEN": SECRET}), mask=lambda _: None
    )
    session = Session(credentials, open_runner(environment, stream), CI.of(environment), {}, stream)

    async def main() -> None:
        tell = request_logger(session, verbose=config.verbose, mode=config.mode)
        for each in seen if tell else ():
            assert tell is not None
            tell(each)
            await asyncio.sleep(pause_s)

    virtual_time.run(main())
    return stream.getvalue()


def config(**changes: object) -> Config:
    return fakes.config(Path("/workspace"), **changes)


@pytest.mark.parametrize(
    ("verbose", "environment", "expected"),
    [
        (False, {}, False),
        (True, {}, True),
        (False, {"RUNNER_DEBUG": "1"}, True),
        (False, {"RUNNER_DEBUG": "0"}, False),
        (False, {"RUNNER_DEBUG": ""}, False),
    ],
)
def test_debug_logging_of_a_workflow_run_is_verbose(
    verbose: bool, environment: Mapping[str, str], expected: bool
) -> None:
    assert is_verbose(verbose, CI.of(environment)) == expected


def test_every_request_is_told_without_a_secret() -> None:
    """R34: known ones anywhere, and whatever stands in an address where secrets do."""
    assert told(config(verbose=True), {}, EXCHANGE) == WHOLE
    assert told(config(verbose=True), {}, EXCHANGE, out=Terminal()) == WHOLE
    assert told(config(), {"RUNNER_DEBUG": "1", "CI": "true"}, EXCHANGE) == WHOLE


def test_a_log_tells_of_long_pauses_alone() -> None:
    seen = (EXCHANGE, delay(4.0), delay(30.0, end=True), delay(30.0))
    line = (
        "     1.0 s    pypi:core  asks again in 30 s: its server wants no more requests for now\n"
    )
    assert told(config(), {"CI": "true"}, *seen) == line
    assert told(config(), {}, *seen, out=Terminal()) == ""


def test_a_server_that_makes_all_of_them_wait_is_told_once_in_that_time() -> None:
    many = [delay(30.0)] * 100
    assert told(config(), {"CI": "true"}, *many).count("\n") == 1
    assert told(config(), {"CI": "true"}, *many, pause_s=1.0).count("\n") == 4


def test_what_a_plan_prints_is_left_to_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(config(verbose=True, mode="plan"), {}, EXCHANGE) == ""
    assert capsys.readouterr().err == WHOLE
