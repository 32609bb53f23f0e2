"""The body of an answer, unpacked while it arrives: it is never larger than its cap, however small
it was on the way, and never keeps the loop from its other work.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Final, cast

import httpx

from releasekit.errors import Rejected, Transient
from releasekit.http import traffic
from releasekit.http.origins import describe_request
from releasekit.problems import Problem
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Iterator


# The one encoding that every server knows. What is not asked for is refused: httpx would unpack
# each of `gzip, gzip, gzip` as a whole, which makes gigabytes of 377 bytes.
# https://www.rfc-editor.org/rfc/rfc9110#section-8.4
ENCODING: Final = "gzip"
_GZIP: Final = frozenset({ENCODING, "x-gzip"})
_GZIP_FORMAT: Final = 16 + zlib.MAX_WBITS
# So much is unpacked, or so many pieces are taken, before others get their turn.
_STEP_BYTES: Final = 256 * 1024
_STEP_PIECES: Final = 256


async def read_body(response: httpx.Response, max_bytes: int) -> bytes:
    """Up to `max_bytes`, on the way as well as unpacked.

    Raises Rejected for more, and for an encoding that was not asked for; Transient for one that is
    broken.
    """
    unpacker = _Gunzip(response.request) if _is_packed(response) else None
    body = bytearray()
    arrived = pieces = 0
    # Not aiter_bytes: it unpacks all of a piece at once, and a piece of 64 KiB may hold 64 MiB.
    async for piece in cast("httpx.AsyncByteStream", response.stream):
        arrived += len(piece)
        traffic.count_received(len(piece))
        for part in [piece] if unpacker is None else unpacker.parts_of(piece):
            body += part
            if max(arrived, len(body)) > max_bytes:
                raise Rejected(
                    f"{describe_request(response.request)}: the answer is over {max_bytes} bytes",
                    problem=Problem.STRANGE_ANSWER,
                )
            pieces += 1
            if len(part) >= _STEP_BYTES or pieces % _STEP_PIECES == 0:
                await asyncio.sleep(0)
    if unpacker is not None and arrived:
        unpacker.check_end()
    return bytes(body)


def with_body(response: httpx.Response, body: bytes) -> httpx.Response:
    """The same answer, with what `read_body` has made of it."""
    headers = [
        (key, value)
        for key, value in response.headers.multi_items()
        if key not in {"content-encoding", "content-length", "transfer-encoding"}
    ]
    whole = httpx.Response(
        response.status_code,
        headers=headers,
        content=body,
        request=response.request,
        extensions=response.extensions,
    )
    whole.next_request = response.next_request
    return whole


def _is_packed(response: httpx.Response) -> bool:
    said = response.headers.get("Content-Encoding", "")
    encodings = [word for each in said.lower().split(",") if (word := each.strip())]
    if encodings in ([], ["identity"]):
        return False
    if len(encodings) == 1 and encodings[0] in _GZIP:
        return True
    raise Rejected(
        f"{describe_request(response.request)}: the answer is encoded as "
        f"{clip(visible(said), 60)!r}, and only gzip was asked for",
        problem=Problem.STRANGE_ANSWER,
    )


class _Gunzip:
    """Of one stream of gzip; what follows its end is dropped, as browsers do."""

    def __init__(self, request: httpx.Request) -> None:
        self._request = request
        self._zlib = zlib.decompressobj(_GZIP_FORMAT)

    def parts_of(self, piece: bytes) -> Iterator[bytes]:
        """At least one, of at most so many bytes as may be unpacked at once."""
        rest = b"" if self._zlib.eof else piece
        while True:
            try:
                yield self._zlib.decompress(rest, _STEP_BYTES)
            except zlib.error as error:
                raise self._unreadable(str(error)) from error
            rest = self._zlib.unconsumed_tail
            if not rest or self._zlib.eof:
                return

    def check_end(self) -> None:
        if not self._zlib.eof:
            raise self._unreadable("it ends too early")

    def _unreadable(self, reason: str) -> Transient:
        return Transient(
            f"{describe_request(self._request)}: unreadable answer ({reason})",
            ambiguous=True,
            problem=Problem.STRANGE_ANSWER,
        )
