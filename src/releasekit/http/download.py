"""A file from a registry, which is never in memory as a whole: hashed on its way to the disk."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, cast

import httpx

from releasekit.errors import Rejected
from releasekit.host import durable
from releasekit.http import traffic
from releasekit.http.body import read_body, with_body
from releasekit.http.client import MAX_REDIRECTS, broken, redirected
from releasekit.http.origins import describe_request
from releasekit.model import Artifact
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Of an answer that is not the file, for its words.
_MAX_WORDS_BYTES = 64 * 1024


async def download(
    client: httpx.AsyncClient,
    url: httpx.URL,
    into: Path,
    *,
    headers: Mapping[str, str],
    max_bytes: int,
    algorithms: tuple[str, ...] = ("sha256",),
) -> Artifact | httpx.Response:
    """One attempt: the new file `into`, or, for all but a success, the answer. Redirects are
    followed as `request_with_retry` does. Raises Transient, and Rejected for over `max_bytes`.
    """
    request = client.build_request("GET", url, headers={**headers, "Accept-Encoding": "identity"})
    try:
        for _ in range(MAX_REDIRECTS):
            response = await traffic.exchange(client, request)
            try:
                if response.status_code == httpx.codes.OK:
                    return await _stored(response, into, max_bytes, algorithms)
                if response.next_request is None:
                    return with_body(response, await read_body(response, _MAX_WORDS_BYTES))
                request = redirected(request, response.next_request)
            finally:
                await response.aclose()
    except httpx.TransportError as error:
        raise broken(request, error) from error
    raise Rejected(
        f"{describe_request(request)}: more than {MAX_REDIRECTS} redirects",
        problem=Problem.WRONG_ADDRESS,
    )


async def _stored(
    response: httpx.Response, into: Path, max_bytes: int, algorithms: tuple[str, ...]
) -> Artifact:
    what = describe_request(response.request)
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Rejected(
            f"{what}: the answer is encoded, and nothing asked for that",
            problem=Problem.STRANGE_ANSWER,
        )
    hashes = {name: hashlib.new(name, usedforsecurity=False) for name in algorithms}
    size = 0
    # An attempt before this one may have left some of it.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with durable.opened(into, flags) as descriptor:
        async for piece in cast("httpx.AsyncByteStream", response.stream):
            size += len(piece)
            traffic.count_received(len(piece))
            if size > max_bytes:
                raise Rejected(
                    f"{what}: the file is over {max_bytes} bytes", problem=Problem.STRANGE_ANSWER
                )
            durable.write_all(descriptor, piece)
            for each in hashes.values():
                each.update(piece)
    return Artifact(
        path=into, size=size, digests={name: each.hexdigest() for name, each in hashes.items()}
    )
