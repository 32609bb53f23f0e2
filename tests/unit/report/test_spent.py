from __future__ import annotations

import pytest
from hypothesis import given

from releasekit.fields import replace
from releasekit.host.scrub import Redactor
from releasekit.report.redacted import Redacted
from releasekit.report.spent import traffic_line
from releasekit.spent import PauseEvent, RequestEvent
from sample_runs import hostile_text

GET = RequestEvent(
    package="pypi:core",
    method="GET",
    url="https://pypi.example/simple/core/",
    at_s=1.25,
    lasted_s=0.1234,
    status=200,
    received_bytes=3412,
)


@pytest.mark.parametrize(
    ("seen", "line"),
    [
        (
            GET,
            (
                "pypi:core  GET https://pypi.example/simple/core/ -> 200; "
                "sent 0 bytes, received 3412 bytes, 123 ms"
            ),
        ),
        (
            replace(GET, package="", status=0, trouble="ConnectError: refused", attempt=2),
            (
                "-  GET https://pypi.example/simple/core/ -> ConnectError: refused; "
                "sent 0 bytes, received 3412 bytes, 123 ms (attempt 2)"
            ),
        ),
        (
            replace(GET, trouble="ReadError"),
            (
                "pypi:core  GET https://pypi.example/simple/core/ -> 200, ReadError; "
                "sent 0 bytes, received 3412 bytes, 123 ms"
            ),
        ),
        (
            PauseEvent(package="pypi:core", cause="rate-limit", at_s=1.25, lasted_s=30),
            "pypi:core  asks again in 30 s: its server wants no more requests for now",
        ),
        (
            PauseEvent(package="pypi:core", cause="retry", at_s=1.25, lasted_s=1),
            "pypi:core  asks again in 1.0 s",
        ),
        (
            PauseEvent(package="pypi:core", cause="build-slot", at_s=1.25, lasted_s=1, end=True),
            "pypi:core  waited 1.0 s for a slot to build in",
        ),
        (
            PauseEvent(
                package="maven:a",
                cause="build-slot",
                at_s=1.25,
                lasted_s=1,
                end=True,
                what="the lock on pom.xml",
            ),
            "maven:a  waited 1.0 s for the lock on pom.xml",
        ),
    ],
)
def test_a_line_tells_of_a_request_or_of_a_pause(
    seen: RequestEvent | PauseEvent, line: str
) -> None:
    assert traffic_line(seen) == f"     1.2 s    {line}"


@pytest.mark.parametrize(
    "url",
    [
        "https://me:canary-3f9a@pypi.example/simple/",
        "https://unknown-secret@pypi.example/simple/",
        "https://cdn.example/file?X-Amz-Signature=unknown-secret&token=canary-3f9a",
        "https://pypi.example/canary-3f9a/simple/#unknown-secret",
    ],
)
def test_no_secret_of_an_address_is_shown(url: str) -> None:
    """R34: neither one that is known nor what may be one."""
    redacted = Redacted(Redactor(["canary-3f9a"]))
    trouble = f"ProxyError: 407 at {url} canary-3f9a"
    line = traffic_line(redacted.clean(replace(GET, url=url, trouble=trouble)))
    assert "canary-3f9a" not in line
    assert "unknown-secret" not in line
    assert ".example/" in line
    delay = PauseEvent(package="", cause="slot", at_s=0, lasted_s=1, end=True, what=url)
    assert "secret" not in (line := traffic_line(redacted.clean(delay)))
    assert "canary-3f9a" not in line


@given(hostile_text)
def test_nothing_in_it_is_a_command_to_the_runner(text: str) -> None:
    """R35"""
    hostile = replace(GET, package=text, method=text, url=text, trouble=text)
    delay = PauseEvent(package=text, cause="slot", at_s=0, lasted_s=1, end=True, what=text)
    for line in (traffic_line(hostile), traffic_line(delay)):
        assert line.isprintable()
        assert "##[" not in line
        assert not line.lstrip().startswith("::")


def test_a_line_has_an_end() -> None:
    """R40"""
    assert len(traffic_line(replace(GET, url="https://x.example/" + "x" * 100_000))) < 1_100
