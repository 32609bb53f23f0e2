"""What any HTTP server can do to whoever asks: one generator of bytes for each trick."""

from __future__ import annotations

import functools
import json
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hostile.wire import Cut, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hostile.wire import Part, Request, Wire

MEGABYTE: Final = 1024 * 1024
# What a presigned URL lets anybody do who has it.
SIGNATURE: Final = "canary0presigned0signature"


@dataclass(frozen=True)
class Moment:
    """`reply` is what an honest server would say; `count` the requests of this kind before."""

    request: Request
    reply: Reply
    server: Wire
    count: int


if TYPE_CHECKING:
    Trick = Callable[[Moment], Iterable[Part]]


@functools.cache
def bomb(size: int, layers: int = 1) -> bytes:
    """Gzip of `size` zeros, over and over. Its sum is wrong, as nobody should come to its end."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    # Blocks that end in a full flush stand alone, so that one of them is every other.
    block = packer.compress(bytes(MEGABYTE)) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = block * (size // MEGABYTE) + b"\x03\x00"
    packed = b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + packed + bytes(8)
    for _ in range(layers - 1):
        packed = gzipped(packed)
    return packed


def gzipped(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def encoded(coding: str, body: Callable[[bytes], bytes] = lambda data: data) -> Trick:
    def answer(moment: Moment) -> Iterator[Part]:
        data = body(moment.reply.body)
        yield moment.reply.head(Content_Encoding=coding, Content_Length=len(data)) + data

    return answer


def lying(length: object) -> Trick:
    def answer(moment: Moment) -> Iterator[Part]:
        yield moment.reply.head(Content_Length=length) + moment.reply.body

    return answer


def endless(part: bytes, *, head: bytes | None = None) -> Trick:
    def answer(moment: Moment) -> Iterator[Part]:
        yield moment.reply.head(Content_Length=None) if head is None else head
        while True:
            yield part

    return answer


def endless_chunks(moment: Moment) -> Iterator[Part]:
    yield moment.reply.head(Content_Length=None, Transfer_Encoding="chunked")
    while True:
        yield b"10000\r\n" + bytes(65536) + b"\r\n"


def headers(*pairs: tuple[str, str]) -> Trick:
    def answer(moment: Moment) -> Iterator[Part]:
        yield replace(moment.reply, headers=pairs).wire()

    return answer


def dripping(*, body: bool) -> Trick:
    """A byte at a time, for ever; each of them in good time."""

    def answer(moment: Moment) -> Iterator[Part]:
        yield moment.reply.head(Content_Length=10**6) if body else b"HTTP/1.1 200 OK\r\nX: "
        while True:
            yield b" "
            yield 0.05

    return answer


def cut_after(share: float) -> Trick:
    """A reset once that share of the answer is out."""

    def answer(moment: Moment) -> Iterator[Part]:
        whole = moment.reply.wire()
        yield whole[: int(len(whole) * share)]
        yield 0.02
        yield Cut.RESET

    return answer


def raw(data: bytes) -> Trick:
    def answer(_moment: Moment) -> Iterator[Part]:
        yield data

    return answer


def says(status: int, body: bytes = b"", kind: str = "text/plain", **more: str) -> Trick:
    """Always the same; `more` are headers."""

    def answer(_moment: Moment) -> Iterator[Part]:
        pairs = tuple((name.replace("_", "-"), value) for name, value in more.items())
        yield Reply(status, body, kind, pairs).wire()

    return answer


def redirecting(where: str, status: int = 302) -> Trick:
    """{url} is this server, {elsewhere} the same one as another origin."""

    def answer(moment: Moment) -> Iterator[Part]:
        if moment.request.path.startswith("/elsewhere"):
            yield Reply(404, b"not here either", "text/plain").wire()
            return
        server = moment.server
        target = where.replace("{url}", server.url).replace("{elsewhere}", server.elsewhere)
        target = target.replace("{path}", moment.request.path)
        yield Reply(status, headers=(("Location", target),)).wire()

    return answer


def echo(status: int, kind: str = "text/plain") -> Trick:
    """What it was sent, credentials and all."""

    def answer(moment: Moment) -> Iterator[Part]:
        lines = [f"{key}: {value}" for key, value in moment.request.headers]
        said = "\n".join(lines)
        body = json.dumps({"error": said}) if "json" in kind else said
        yield Reply(status, body.encode(), kind, tuple(moment.request.headers[-1:])).wire()

    return answer
