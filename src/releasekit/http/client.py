"""HTTP as registries need it: one pooled client, capped answers, retried reads, downloads."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import math
import os
import random
import re
import ssl
from http.cookiejar import CookieJar
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.request import getproxies

import httpx
from msgspec import Struct, field

from releasekit import __version__
from releasekit.aio import in_time
from releasekit.errors import CircuitOpen, ConfigError, Rejected, Transient
from releasekit.host import durable
from releasekit.http import traffic
from releasekit.http.answers import check, is_passing
from releasekit.http.body import ENCODING, read_body, with_body
from releasekit.http.origins import check_proxies, describe_request, is_safe, proxy_of, same_origin
from releasekit.http.pool import PooledClient
from releasekit.model import Artifact
from releasekit.problems import Problem
from releasekit.scheduler.retries import PATIENT, Retry, WaitBudget
from releasekit.text.escape import one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from pathlib import Path

    from releasekit.http.circuit import Circuit

# How Python begins what the system says.
_ERRNO = re.compile(r"\[Errno -?\d+\] ")
MAX_REDIRECTS = 5
# Where the caller gives no limit; a list of all packages may be longer.
MAX_RESPONSE_BYTES = 4 * 1024 * 1024
# Of the answer to a download that failed, for the words of the server.
_MAX_WORDS_BYTES = 64 * 1024

T = TypeVar("T")


def http_client(
    pool_size: int = 10, *, transport: httpx.AsyncBaseTransport | None = None
) -> PooledClient:
    """A client with at most `pool_size` connections; proxies and SSL_CERT_FILE are honoured.

    Raises ConfigError for a proxy, or certificates, that cannot be used.
    """
    try:
        check_proxies()
        return PooledClient(
            pool_size,
            options={
                "transport": transport,
                "verify": httpx.create_ssl_context() if transport is None else False,
                # Else each connection looks for proxies in all variables.
                "trust_env": bool(getproxies()),
            },
            shared={
                "headers": {
                    "User-Agent": f"releasekit-action/{__version__}",
                    "Accept-Encoding": ENCODING,
                },
                "cookies": _NoCookies(),
                # A registry may work on an upload for a while after its last byte. Waiting for a
                # turn in our own pool has no limit: it says nothing about the registry.
                "timeout": httpx.Timeout(60.0, connect=15.0, pool=None),
                # Only `send` and `download` follow redirects: they check where these lead.
                "follow_redirects": False,
            },
        )
    except (ValueError, httpx.InvalidURL, ImportError) as error:
        # httpx imports what speaks SOCKS only where a proxy does.
        why = "it names a SOCKS proxy" if isinstance(error, ImportError) else one_line(str(error))
        raise ConfigError(
            f"HTTP_PROXY, HTTPS_PROXY or ALL_PROXY cannot be used: {why}",
            hint="Write the address of an HTTP proxy: http://proxy.example:3128",
            problem=Problem.NETWORK_SETTINGS,
        ) from error
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(
            "SSL_CERT_FILE, SSL_CERT_DIR or REQUESTS_CA_BUNDLE cannot be used: "
            f"{one_line(str(error))}",
            hint="Name a file of certificates in PEM form, or unset all three.",
            problem=Problem.NETWORK_SETTINGS,
        ) from error


class _NoCookies(CookieJar):
    """No registry needs one, and what a server sets must not go along with later requests."""

    def extract_cookies(self, _response: object, _request: object) -> None:
        """Nothing is kept, and the headers are not even parsed."""


class RetryPolicy(Struct, frozen=True):
    """How often and how long a read is tried: up to `max_retries` more times, but never beyond
    `deadline_s` after the start of the call (its `task-timeout`), pauses included, nor for longer
    than `patience` has. `redact` is for what a server says.
    """

    max_retries: int = 3
    base_delay_s: float = 1.0
    deadline_s: float = 300.0
    circuit: Circuit | None = None
    patience: WaitBudget = PATIENT
    redact: Callable[[str], str] = str
    rng: random.Random = field(default_factory=random.Random)  # noqa: S311 (spreads requests)


async def retry(attempt: Callable[[], Awaitable[T]], policy: RetryPolicy) -> T:
    """Call `attempt` until it returns, raises anything but Transient, or the policy is used up.

    An attempt that finds the circuit open has sent nothing, and does not count.
    """
    clock = asyncio.get_running_loop().time
    patience = policy.patience.within(clock() + policy.deadline_s, "task-timeout")
    rule = Retry(policy.max_retries, policy.base_delay_s, patience)
    circuit, before = policy.circuit, 0
    while True:
        limit = asyncio.timeout_at(patience.until)
        try:
            async with in_time(limit):
                return await attempt()
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise Transient(
                f"no answer within {policy.deadline_s:.0f} s", ambiguous=True
            ) from error
        except Transient as error:
            counts = not isinstance(error, CircuitOpen)
            attempts = before + 1 if counts else 0
            if error.slowed_down and circuit is not None:
                attempts = circuit.refusals  # while others get through, so does this one
            # Where the server has never answered, a waiting caller should know soon.
            doublings = before if circuit is None or circuit.reached else 0
            now_s = clock()
            backoff = rule.decide(error, attempts=attempts, doublings=doublings, now_s=now_s)
            delay_s = backoff.draw(policy.rng) if backoff else math.inf
            if now_s + delay_s > patience.until:
                raise patience.explain(error, now_s) from error.__cause__
            limited = error.limited
        before += counts
        await traffic.pause(delay_s, again=counts, limited=limited)


async def send(
    client: httpx.AsyncClient,
    request: httpx.Request,
    *,
    circuit: Circuit | None = None,
    max_bytes: int = MAX_RESPONSE_BYTES,
    follow_redirects: bool = False,
) -> httpx.Response:
    """One attempt, with any status; the answer is read, up to `max_bytes`. Redirects are followed
    on request, and never with credentials to another origin.

    Raises Transient for everything that can break on the way, Rejected for an answer that is too
    large, for a certificate that does not verify and for a redirect that is not safe.
    """
    for _ in range(MAX_REDIRECTS):
        async with contextlib.nullcontext(0.0) if circuit is None else circuit.turn() as sent_s:
            try:
                answer = await client.send(request, stream=True)
                try:
                    response = with_body(answer, await read_body(answer, max_bytes))
                finally:
                    await answer.aclose()
            except httpx.TransportError as error:
                if circuit is not None and (circuit.reached or not _finds_nobody(request, error)):
                    circuit.record_failure(_describe(error))
                raise transport_error(request, error) from error
            if circuit is not None:
                circuit.record_answer(response, sent_s)
        if response.next_request is None or not follow_redirects:
            return response
        request = _follow_redirect(request, response.next_request)
    raise _end_redirects(request)


async def request_with_retry(
    client: httpx.AsyncClient,
    method: str,
    url: str | httpx.URL,
    *,
    headers: Mapping[str, str] | None = None,
    policy: RetryPolicy | None = None,
    max_bytes: int = MAX_RESPONSE_BYTES,
) -> httpx.Response:
    """A read: retried, redirects followed (never with credentials to another origin).

    Returns every answer whose status is not worth another attempt, 404 included. It is not for
    uploads, which the scheduler retries.
    """
    policy = policy or RetryPolicy()

    async def attempt() -> httpx.Response:
        request = client.build_request(method, url, headers=headers)
        response = await send(
            client, request, circuit=policy.circuit, max_bytes=max_bytes, follow_redirects=True
        )
        if is_passing(response.status_code):
            # Raises Transient.
            check(response, describe_request(response.request), redact=policy.redact)
        return response

    return await retry(attempt, policy)


async def download(
    client: httpx.AsyncClient,
    url: httpx.URL,
    into: Path,
    *,
    headers: Mapping[str, str],
    max_bytes: int,
    algorithms: tuple[str, ...] = ("sha256",),
) -> Artifact | httpx.Response:
    """One attempt: the new file `into`, hashed on its way to the disk; for all but a success, the
    answer. Follows redirects as `request_with_retry` does. Raises Transient, and Rejected for over
    `max_bytes`.
    """
    request = client.build_request("GET", url, headers={**headers, "Accept-Encoding": "identity"})
    try:
        for _ in range(MAX_REDIRECTS):
            response = await client.send(request, stream=True)
            try:
                if response.status_code == httpx.codes.OK:
                    return await _store(response, into, max_bytes, algorithms)
                if response.next_request is None:
                    return with_body(response, await read_body(response, _MAX_WORDS_BYTES))
                request = _follow_redirect(request, response.next_request)
            finally:
                await response.aclose()
    except httpx.TransportError as error:
        raise transport_error(request, error) from error
    raise _end_redirects(request)


async def _store(
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
    # An earlier attempt may have left a part of it.
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


def _end_redirects(request: httpx.Request) -> Rejected:
    return Rejected(
        f"{describe_request(request)}: more than {MAX_REDIRECTS} redirects",
        problem=Problem.WRONG_ADDRESS,
    )


def _follow_redirect(request: httpx.Request, target: httpx.Request) -> httpx.Request:
    # Who is asked without encryption may send on to itself.
    if not is_safe(target.url) and not same_origin(request.url, target.url):
        raise Rejected(
            f"{describe_request(request)}: redirects to {one_line(str(target.url))}, not https",
            problem=Problem.WRONG_ADDRESS,
        )
    if not same_origin(request.url, target.url):
        target.headers.pop("Authorization", None)
    return target


def _finds_nobody(request: httpx.Request, error: httpx.TransportError) -> bool:
    """Whether a read has led to no server. Where it has never answered, that is rather an
    address or a proxy to correct than an outage to wait for.
    """
    return request.method in traffic.READS and isinstance(error, traffic.NEVER_SENT)


def _list_causes(error: BaseException) -> Iterator[BaseException]:
    """It and what has led to it, each once; not what was merely raised before it, such as the error
    of another request. The pool of httpcore raises `from None`, and its errors have the cause as
    argument. https://github.com/encode/httpcore/blob/1.0.9/httpcore/_async/connection_pool.py
    """
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue  # an error that is raised anew can lead to itself
        seen.add(id(each))
        yield each
        cause = each.__cause__ or next(iter(each.args), None)
        if isinstance(cause, BaseException):
            waiting.append(cause)
        if isinstance(each, ExceptionGroup):
            waiting += reversed(each.exceptions)


def transport_error(request: httpx.Request, error: httpx.TransportError) -> Transient | Rejected:
    reason = f"{describe_request(request)}: {_describe(error)}"
    proxy = proxy_of(request.url) if isinstance(error, traffic.NEVER_SENT) else None
    hint = ""
    if proxy is not None:
        reason += f" (through the proxy {proxy.address}, which {proxy.variable} names)"
        hint = f"Correct {proxy.variable}, or name {request.url.host} in NO_PROXY."
    if any(isinstance(each, ssl.SSLCertVerificationError) for each in _list_causes(error)):
        return Rejected(
            reason,
            hint="For a server with a private certificate authority set SSL_CERT_FILE, or add the "
            "authority to the machine's certificates.",
            problem=Problem.CERTIFICATE,
        )
    return Transient(reason, ambiguous=not isinstance(error, traffic.NEVER_SENT), hint=hint)


def _describe(error: httpx.TransportError) -> str:
    # asyncio's own message for a host that refuses says only that all attempts failed.
    # What the operating system said of each address of the host, `Connection refused` say.
    refused = dict.fromkeys(
        os.strerror(each.errno)
        for each in _list_causes(error)
        if isinstance(each, ConnectionError | TimeoutError) and each.errno
    )
    if refused:
        return ", ".join(refused)
    return one_line(_ERRNO.sub("", str(error))) or type(error).__name__
