"""What any server can do, asked of every protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from effort import SEARCHING
from hostile import http_tricks as tricks
from hostile.answers import DONE, Row, Stage
from hostile.http_tricks import SIGNATURE, bomb, encoded, gzipped, headers, redirecting, says
from hostile.wire import Cut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostile.http_tricks import Moment
    from hostile.wire import Part

_GIGABYTE: Final = 1024**3
# What is asked for as long as the time for it lasts is asked of some, unless all is wanted.
_FEW: Final = None if SEARCHING else 2
_UPLOADERS: Final = ("pypi", "npm", "cargo", "maven", "portal")
_EACH: Final = ("pypi", "npm", "cargo", "maven")
_SHORT: Final = ("--deadline", "1s")
_PATIENT: Final = ("--task-timeout", "2s")
# A run that its deadline ended counts as cancelled.
ENDED: Final = frozenset({1, 130})
_INJECTION: Final = "\r\n::error::INJECTED\x1b[2J\u202e\u2028::warning::INJECTED"


def _early(moment: Moment) -> Iterator[Part]:
    """Continues for ever, and never begins."""
    while True:
        yield b"HTTP/1.1 100 Continue\r\n\r\n"


def _reset(_moment: Moment) -> Iterator[Part]:
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
    ("in-a-loop", "{url}{path}?again", "redirects"),
    ("to-http", "http://registry.example/{path}", "not https"),
    ("to-a-file", "file:///proc/self/environ", "not https|redirect"),
    ("to-nowhere", "http://[::1", "redirect|Location|URL"),
    ("with-a-presigned-query", f"http://registry.example/x?X-Amz-Signature={SIGNATURE}", ""),
    ("with-userinfo", f"http://releaser:{SIGNATURE}@registry.example/", ""),
    ("with-commands", "https://registry.example/%0a::error::INJECTED", ""),
    ("of-1MB", "{url}/" + "x" * 10**6, ""),
    ("to-another-origin", "{elsewhere}/elsewhere", ""),
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
_PAGES: Final = (
    ("1e6-openings", b"<" * 10**6),
    ("1e6-tags", b"<a>" * 10**6),
    ("1e6-entities", b"&#x41;" * 10**5 + b"&" * 10**6),
    ("commands", f"<p>x{_INJECTION}</p>".encode()),
)
_RETRIED: Final = ("--max-retries", "1")


def _some(number: int, at: int) -> tuple[str, ...]:
    """So many protocols, others for each row: one client asks for all of them."""
    first = at * number % len(_EACH)
    return (*_EACH, *_EACH)[first : first + number]


def _bodies() -> Iterator[Row]:
    for at, (name, trick) in enumerate(_BODIES):
        yield Row(name=name, trick=trick, stage=Stage.READ, protocols=_some(2, at))
        if at % 3 == 0:
            # Only what is published is asked of a module proxy.
            row = Row(name=name, trick=trick, stage=Stage.READ, argv=_PATIENT, protocols=("go",))
            yield replace(row, outcomes=("unknown",))
        # Whatever the answer is worth: the registry has our bytes, and shows them.
        yield Row(
            name=name,
            trick=trick,
            stage=Stage.UPLOAD,
            stored=True,
            codes=DONE,
            outcomes=("published", "published"),
            # Not where a package is many uploads: the rest of it was never sent.
            protocols=("pypi",) if at % 2 else ("npm", "cargo"),
        )
    for at, (name, trick) in enumerate(_HEADS):
        yield Row(name=name, trick=trick, stage=Stage.READ, protocols=_some(2, at))


def _redirects() -> Iterator[Row]:
    for at, (name, where, said) in enumerate(_REDIRECTS):
        row = Row(
            name=f"redirect-{name}",
            trick=redirecting(where),
            stage=Stage.READ,
            protocols=_some(2, at),
            argv=_PATIENT,
            says=(said,) if said else (),
            never_says=(SIGNATURE,),
        )
        yield row
        upload = replace(row, stage=Stage.UPLOAD, says=())
        yield replace(upload, protocols=("pypi", "maven") if at % 2 else ("npm", "cargo"))


def _wishes() -> Iterator[Row]:
    for at, (name, wish) in enumerate(_WISHES):
        for status in (429, 503):
            yield Row(
                name=f"retry-after-{name}-{status}",
                trick=says(status, b"later", Retry_After=wish),
                stage=Stage.READ,
                argv=_RETRIED,
                says=("max-wait",),
                protocols=_some(2, at + status),
            )
        yield Row(
            name=f"retry-after-{name}",
            trick=says(429, b"later", Retry_After=wish),
            stage=Stage.UPLOAD,
            argv=_RETRIED,
            says=("max-wait",),
            protocols=_UPLOADERS[at : at + 3],
            outcomes=("failed",),
        )
    for at, (name, wish) in enumerate(_ODD_WISHES):
        yield Row(
            name=f"retry-after-{name}",
            trick=says(503, b"later", Retry_After=wish),
            stage=Stage.READ,
            argv=_RETRIED,
            protocols=_some(1, at),
        )


def _words() -> Iterator[Row]:
    for status, kind in (
        (403, "text/plain"),
        (500, "text/html"),
        (422, "application/json"),
        (200, "application/json"),
    ):
        row = Row(
            name=f"echo-{status}",
            trick=tricks.echo(status, kind),
            stage=Stage.READ,
            protocols=("pypi", "npm", "maven"),
        )
        yield row
        # What a registry has after those is unknown, and looked for.
        asked = _UPLOADERS[: _FEW if status in {200, 500} else None]
        yield replace(row, stage=Stage.UPLOAD, protocols=asked, argv=_PATIENT)
    for at, (name, page) in enumerate(_PAGES):
        row = Row(
            name=f"html-{name}",
            trick=says(403, page, "text/html"),
            stage=Stage.READ,
            protocols=_some(2, at),
        )
        yield row
        yield replace(row, stage=Stage.UPLOAD, protocols=(_UPLOADERS[at],))
    yield Row(
        name="commands",
        trick=says(403, b'{"error": "x\\r\\n::error::INJECTED\\u001b[2J\\ud800"}', "x/json"),
        stage=Stage.UPLOAD,
        protocols=_UPLOADERS,
    )


def _slow() -> Iterator[Row]:
    """The deadline ends the run, whatever is under way."""
    for at, (name, trick) in enumerate(
        (
            ("head-by-the-byte", tricks.dripping(body=False)),
            ("body-by-the-byte", tricks.dripping(body=True)),
            ("continue-for-ever", _early),
        )
    ):
        row = Row(
            name=name,
            trick=trick,
            stage=Stage.READ,
            argv=_SHORT,
            codes=ENDED,
            protocols=_some(2, at),
        )
        yield row
        if at == 0 or SEARCHING:
            # An upload has some seconds more than the deadline.
            yield replace(row, stage=Stage.UPLOAD, protocols=(_UPLOADERS[at],))


def _at_the_end() -> Iterator[Row]:
    """The upload went well, and what comes after it did not."""
    for at, (name, trick) in enumerate(
        (
            ("gzip-three-times", _BODIES[0][1]),
            ("reset", _reset),
            ("absent", says(404)),
            ("teapot", says(418, b"<" * 10**6, "text/html")),
        )
    ):
        yield Row(
            name=name,
            trick=trick,
            stage=Stage.CONFIRM,
            argv=_PATIENT,
            protocols=_UPLOADERS[at % 3 : at % 3 + 2],
            outcomes=("unknown", "blocked"),
        )


def _turns() -> Iterator[Row]:
    """A registry that says one thing and does another."""
    yield Row(
        name="exists-for-ever",
        trick=says(409, b"already exists"),
        stage=Stage.UPLOAD,
        argv=_PATIENT,
        protocols=_UPLOADERS[-_FEW:] if _FEW else _UPLOADERS,
    )
    refused = Row(
        name="refused-after-the-first",
        trick=says(401, b"who are you"),
        stage=Stage.UPLOAD,
        first=1,
        protocols=("npm", "cargo"),
        outcomes=("published", "failed"),
    )
    yield refused
    yield replace(refused, first=2, protocols=("pypi",))
    yield Row(
        name="gone-for-ever",
        trick=says(410, b"gone"),
        stage=Stage.UPLOAD,
        protocols=_UPLOADERS,
        outcomes=("failed",),
    )


ROWS: Final = (
    *_bodies(),
    *_redirects(),
    *_wishes(),
    *_words(),
    *_slow(),
    *_at_the_end(),
    *_turns(),
)
