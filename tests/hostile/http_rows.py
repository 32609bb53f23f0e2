"""What any server can do, asked of every protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hostile import http_tricks as tricks
from hostile.answers import DONE, Row, Stage
from hostile.http_tricks import SIGNATURE, bomb, encoded, gzipped, headers, redirecting, says
from hostile.wire import Cut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostile.http_tricks import Moment
    from hostile.wire import type_parts

_GIGABYTE: Final = 1024**3
_UPLOADERS: Final = ("pypi", "npm", "cargo", "maven", "portal")
_ONE_OF_EACH: Final = ("pypi", "npm", "cargo", "go", "maven")
_SHORT: Final = ("--deadline", "1s", "--task-timeout", "1s")
_PATIENT: Final = ("--task-timeout", "1s")
_UNKNOWN: Final = ("unknown", "blocked")
_INJECTION: Final = "\r\n::error::INJECTED\x1b[2J‮\u2028::warning::INJECTED"


def _early(moment: Moment) -> Iterator[type_parts]:
    """Continues for ever, and never begins."""
    while True:
        yield b"HTTP/1.1 100 Continue\r\n\r\n"


def _reset(_moment: Moment) -> Iterator[type_parts]:
    yield Cut.RESET


_BODIES: Final = (
    ("gzip-three-times", encoded("gzip, gzip, gzip", lambda _: bomb(_GIGABYTE, 3))),
    ("gzip-bomb", encoded("gzip", lambda _: bomb(_GIGABYTE // 4))),
    ("gzip-cut", encoded("gzip", lambda data: gzipped(data)[:-9])),
    ("gzip-that-is-none", encoded("gzip")),
    ("coding-of-its-own", encoded("x-evil")),
    ("length-too-long", tricks.lying(10**6)),
    ("length-no-number", tricks.lying("-7")),
    ("length-of-5000-digits", tricks.lying("9" * 5000)),
    ("endless-chunks", tricks.endless_chunks),
    ("no-http", tricks.raw(b"\x00\xff\x1b[2J" * 100)),
    ("status-of-5000-digits", tricks.raw(b"HTTP/1.1 " + b"2" * 5000 + b" OK\r\n\r\n")),
    ("reset-at-once", _reset),
    ("reset-in-the-head", tricks.cut_after(0.2)),
)
_HEADS: Final = (
    ("header-of-1MB", headers(("X-Large", "x" * 10**6))),
    ("10000-headers", headers(*((f"X-{number}", "x" * 20) for number in range(10_000)))),
    ("endless-head", tricks.endless(b"X-More: x\r\n", head=b"HTTP/1.1 200 OK\r\n")),
)
_REDIRECTS: Final = (
    ("in-a-loop", "{server}{path}?again", "redirects"),
    ("to-http", "http://registry.example/{path}", "not https"),
    ("to-a-file", "file:///proc/self/environ", "not https|redirect"),
    ("to-nowhere", "http://[::1", "redirect|Location|URL"),
    ("with-a-presigned-query", f"http://registry.example/x?X-Amz-Signature={SIGNATURE}", ""),
    ("with-userinfo", f"http://releaser:{SIGNATURE}@registry.example/", ""),
    ("with-commands", "https://registry.example/%0a::error::INJECTED", ""),
    ("of-1MB", "{server}/" + "x" * 10**6, ""),
)
# Each as the answer to the plan's question, whose outcome is certain; 429 is asked again.
_WISHES: Final = (
    ("1e9", "1000000000"),
    ("of-5000-digits", "9" * 5000),
    ("in-9999", "Fri, 31 Dec 9999 23:59:59 GMT"),
)
_ODD_WISHES: Final = (
    ("negative", "-5"),
    ("float", "1e3"),
    ("no-date", "Fri, 99 Foo 99999 99:99:99 GMT"),
    ("injection", "5\x1b[2J"),
)
_RETRIED: Final = ("--max-retries", "1")


def _rows() -> Iterator[Row]:
    for name, trick in _BODIES:
        yield Row(name=name, trick=trick, stage=Stage.READ)
        # Whatever the answer is worth: the registry has our bytes, and shows them.
        yield Row(
            name=name,
            trick=trick,
            stage=Stage.UPLOAD,
            stored=True,
            codes=DONE,
            outcomes=("published", "published"),
            protocols=("pypi", "npm", "cargo", "maven"),
        )
    for name, trick in _HEADS:
        yield Row(name=name, trick=trick, stage=Stage.READ, protocols=_ONE_OF_EACH)
    for name, where, said in _REDIRECTS:
        trick = redirecting(where.replace("{server}", "{url}"))
        yield Row(
            name=f"redirect-{name}",
            trick=trick,
            stage=Stage.READ,
            says=(said,) if said else (),
            never_says=(SIGNATURE,),
        )
        yield Row(
            name=f"redirect-{name}",
            trick=trick,
            stage=Stage.UPLOAD,
            protocols=("pypi", "npm", "cargo", "maven"),
            never_says=(SIGNATURE,),
        )
    for name, wish in _WISHES:
        for status in ("429", "503"):
            yield Row(
                name=f"retry-after-{name}-{status}",
                trick=says(int(status), b"later", Retry_After=wish),
                stage=Stage.READ,
                argv=_RETRIED,
                protocols=("npm", "maven") if status == "503" else ("pypi", "cargo", "go"),
            )
        yield Row(
            name=f"retry-after-{name}",
            trick=says(429, b"later", Retry_After=wish),
            stage=Stage.UPLOAD,
            argv=_RETRIED,
            protocols=_UPLOADERS,
            outcomes=("failed", "blocked"),
        )
    for name, wish in _ODD_WISHES:
        yield Row(
            name=f"retry-after-{name}",
            trick=says(503, b"later", Retry_After=wish),
            stage=Stage.READ,
            argv=_RETRIED,
            protocols=("pypi", "maven"),
        )
    for status, kind in ((403, "text/plain"), (500, "text/html"), (422, "application/json")):
        yield Row(name=f"echo-{status}", trick=tricks.echo(status, kind), stage=Stage.READ)
        yield Row(
            name=f"echo-{status}",
            trick=tricks.echo(status, kind),
            stage=Stage.UPLOAD,
            protocols=_UPLOADERS,
            argv=_PATIENT,
        )
    for name, page in (
        ("1e6-openings", b"<" * 10**6),
        ("1e6-tags", b"<a>" * 10**6),
        ("1e6-entities", b"&#x41;" * 10**5 + b"&" * 10**6),
        ("commands", f"<p>x{_INJECTION}</p>".encode()),
    ):
        trick = says(403, page, "text/html")
        yield Row(name=f"html-{name}", trick=trick, stage=Stage.READ, protocols=_ONE_OF_EACH)
        yield Row(name=f"html-{name}", trick=trick, stage=Stage.UPLOAD, protocols=("pypi", "maven"))
    yield Row(
        name="commands",
        trick=says(403, ('{"error": "x\\r\\n::error::INJECTED\\u001b[2J\\ud800"}').encode(), "x/json"),
        stage=Stage.UPLOAD,
        protocols=_UPLOADERS,
    )


def _slow() -> Iterator[Row]:
    for name, trick in (
        ("head-by-the-byte", tricks.dripping(body=False)),
        ("body-by-the-byte", tricks.dripping(body=True)),
        ("continue-for-ever", _early),
    ):
        yield Row(name=name, trick=trick, stage=Stage.READ, argv=_SHORT, protocols=_ONE_OF_EACH)
        yield Row(
            name=name, trick=trick, stage=Stage.UPLOAD, argv=_SHORT, protocols=("pypi", "maven")
        )


def _at_the_end() -> Iterator[Row]:
    """The upload went well, and what comes after it did not."""
    for name, trick in (
        ("gzip-three-times", _BODIES[0][1]),
        ("reset", _reset),
        ("absent", says(404)),
        ("teapot", says(418, b"<" * 10**6, "text/html")),
    ):
        yield Row(
            name=name,
            trick=trick,
            stage=Stage.CONFIRM,
            argv=_PATIENT,
            protocols=("pypi", "npm", "cargo", "portal"),
            outcomes=_UNKNOWN,
        )


def _turns() -> Iterator[Row]:
    """A registry that says one thing and does another."""
    yield Row(
        name="exists-for-ever",
        trick=says(409, b"already exists"),
        stage=Stage.UPLOAD,
        argv=_PATIENT,
        protocols=_UPLOADERS,
    )
    yield Row(
        name="refused-after-the-first",
        trick=says(401, b"who are you"),
        stage=Stage.UPLOAD,
        first=2,
        protocols=("pypi",),
        outcomes=("published", "failed"),
    )
    yield Row(
        name="refused-after-the-first",
        trick=says(401, b"who are you"),
        stage=Stage.UPLOAD,
        first=1,
        protocols=("npm", "cargo"),
        outcomes=("published", "failed"),
    )
    yield Row(
        name="gone-for-ever",
        trick=says(410, b"gone"),
        stage=Stage.UPLOAD,
        protocols=_UPLOADERS,
        outcomes=("failed", "blocked"),
    )


ROWS: Final = (*_rows(), *_slow(), *_at_the_end(), *_turns())
