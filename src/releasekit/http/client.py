"""HTTP as registries need it: one pooled client, capped answers, retried reads, downloads."""

from __future__ import annotations

import asyncio
import hashlib
import html
import math
import os
import random
import re
import ssl
import time
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.request import getproxies

import httpx

from releasekit import __version__
from releasekit.aio import in_time
from releasekit.errors import CircuitOpen, ConfigError, Denied, PackageError, Rejected, Transient
from releasekit.host import durable
from releasekit.http import traffic
from releasekit.http.body import ENCODING, read_body, with_body
from releasekit.http.origins import check_proxies, describe_request, is_safe, proxy_of, same_origin
from releasekit.http.pool import PooledClient
from releasekit.http.remedies import PASSING, is_passing, remedy
from releasekit.model import Artifact
from releasekit.problems import Problem
from releasekit.scheduler.retries import PATIENT, Retry, WaitBudget
from releasekit.text.escape import clip, redact_urls, visible
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from pathlib import Path

    from releasekit.http.circuit import Circuit

# What servers and proxies answer that limit rates; nginx says 503 unless it is told otherwise.
# https://nginx.org/en/docs/http/ngx_http_limit_req_module.html#limit_req_status
_TOO_MANY = frozenset({429, 503})
# How Python begins what the system says.
_ERRNO = re.compile(r"\[Errno -?\d+\] ")
MAX_REDIRECTS = 5
# Where the caller gives no limit; a list of all packages may be longer.
MAX_RESPONSE_BYTES = 4 * 1024 * 1024
_MOST_REASONS = 3
MAX_MESSAGE_CHARS = 400
# Of the answer to a download that failed, for the words of the server.
_MAX_WORDS_BYTES = 64 * 1024
_MAX_SECONDS = "999999999"
# The longest form that a date may have. https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7
_MAX_DATE_CHARS = 64

# What git says of two who change one repository at once, and what comes through of that where a
# registry keeps its index in one.
# https://github.com/git/git/blob/master/refs/files-backend.c (cannot lock ref)
# https://github.com/git/git/blob/master/lockfile.c (File exists, another git process)
# https://github.com/git/git/blob/master/transport.c (non-fast-forward, failed to push some refs)
# https://github.com/libgit2/libgit2/blob/main/src/libgit2/push.c (non-fastforwardable)
_CONTENDED = re.compile(
    rb"cannot lock ref|\.lock': file exists|another git process|failed to lock file"
    rb"|non-fast-?forward|\(fetch first\)|failed to push some refs",
    re.IGNORECASE,
)
_LOOKS = frozenset({"GET", "HEAD"})

_LOOKED_AT_BYTES = 64 * 1024
# It stops at the next "<", so that no text is scanned twice.
_TAG = re.compile(r"<([^<>]*)>")
_NOT_SHOWN = frozenset({"head", "script", "style"})

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
                # Only send_on and download follow redirects: they check where these lead.
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


@dataclass(frozen=True, slots=True)
class RetryPolicy:
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
    rng: random.Random = field(
        default_factory=random.Random,  # noqa: S311 (spreads requests, guards nothing)
        repr=False,
        compare=False,
    )


def retry_after(response: httpx.Response) -> float | None:
    """Seconds the server asks for, from either form of Retry-After; None when there is none.

    https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3
    """
    value = response.headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value if len(value) <= len(_MAX_SECONDS) else _MAX_SECONDS)
    until = _timestamp(value)
    if until is None:
        return None
    # The server's own clock, where it shows it: ours may be off.
    now = _timestamp(response.headers.get("Date", ""))
    return max(0.0, until - (time.time() if now is None else now))


def _timestamp(http_date: str) -> float | None:
    if len(http_date) > _MAX_DATE_CHARS:
        return None
    try:
        return parsedate_to_datetime(http_date).timestamp()
    except (ValueError, OverflowError):
        return None


async def retry(attempt: Callable[[], Awaitable[T]], policy: RetryPolicy) -> T:
    """Call `attempt` until it returns, raises anything but Transient, or the policy is used up.

    An attempt that finds the circuit open has sent nothing, and does not count.
    """
    clock = asyncio.get_running_loop().time
    patience = policy.patience.within(clock() + policy.deadline_s, "task-timeout")
    deadline = patience.until
    rule = Retry(policy.max_retries, policy.base_delay_s, patience)
    circuit, before = policy.circuit, 0
    while True:
        limit = asyncio.timeout_at(deadline)
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
            attempts = before + counts
            if error.slowed_down and circuit is not None:
                attempts = circuit.refusals  # while others get through, so does this one
            # Where the server has never answered, a waiting caller should know soon.
            pace = before if circuit is None or circuit.reached else 0
            backoff = rule.decide(error, attempts=attempts, pace=pace, now_s=clock())
            delay_s = backoff.draw(policy.rng) if backoff else math.inf
            if clock() + delay_s > deadline:
                raise patience.explain(error, clock()) from error.__cause__
            limited = error.limited
        before += counts
        await traffic.pause(delay_s, again=counts, limited=limited)


async def send(
    client: httpx.AsyncClient,
    request: httpx.Request,
    *,
    circuit: Circuit | None = None,
    max_bytes: int = MAX_RESPONSE_BYTES,
) -> httpx.Response:
    """One attempt, with any status; the answer is read, up to `max_bytes`.

    Raises Transient for everything that can break on the way, Rejected for an answer that is too
    large and for a certificate that does not verify.
    """
    if circuit is None:
        return await _exchange(client, request, max_bytes)
    async with circuit.turn() as sent_s:
        try:
            response = await _exchange(client, request, max_bytes)
        except PackageError as error:
            trouble = error.__cause__
            if isinstance(trouble, httpx.TransportError) and (
                circuit.reached or not _finds_nobody(request, trouble)
            ):
                circuit.record_failure(_describe(trouble))
            raise
        circuit.reached = True
        # Servers refuse by names, as that of a page that lists all versions of an artifact.
        asked = f"{request.method} {request.url.path.rstrip('/').rpartition('/')[2]}"
        if response.status_code in _TOO_MANY:
            if circuit.slow_down(asked, sent_s):
                response.extensions["slowed_down"] = True
        elif response.status_code < 500:
            circuit.speed_up(asked)
        if response.status_code >= 500 and not is_contended(response):
            circuit.record_failure(f"HTTP {response.status_code}")
        else:
            circuit.record_success()
        return response


async def _exchange(
    client: httpx.AsyncClient, request: httpx.Request, max_bytes: int
) -> httpx.Response:
    try:
        response = await traffic.exchange(client, request)
        try:
            return with_body(response, await read_body(response, max_bytes))
        finally:
            await response.aclose()
    except httpx.TransportError as error:
        raise transport_error(request, error) from error


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
        response = await send_on(client, request, circuit=policy.circuit, max_bytes=max_bytes)
        if is_passing(response.status_code):
            check(response, describe_request(response.request), redact=policy.redact)
        return response

    return await retry(attempt, policy)


async def send_on(
    client: httpx.AsyncClient,
    request: httpx.Request,
    *,
    circuit: Circuit | None = None,
    max_bytes: int = MAX_RESPONSE_BYTES,
) -> httpx.Response:
    """As `send`, with redirects followed (never with credentials to another origin)."""
    for _ in range(MAX_REDIRECTS):
        response = await send(client, request, circuit=circuit, max_bytes=max_bytes)
        if response.next_request is None:
            return response
        request = follow_redirect(request, response.next_request)
    raise Rejected(
        f"{describe_request(request)}: more than {MAX_REDIRECTS} redirects",
        problem=Problem.WRONG_ADDRESS,
    )


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
            response = await traffic.exchange(client, request)
            try:
                if response.status_code == httpx.codes.OK:
                    return await _store(response, into, max_bytes, algorithms)
                if response.next_request is None:
                    return with_body(response, await read_body(response, _MAX_WORDS_BYTES))
                request = follow_redirect(request, response.next_request)
            finally:
                await response.aclose()
    except httpx.TransportError as error:
        raise transport_error(request, error) from error
    raise Rejected(
        f"{describe_request(request)}: more than {MAX_REDIRECTS} redirects",
        problem=Problem.WRONG_ADDRESS,
    )


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


def check(
    response: httpx.Response,
    what: str,
    *,
    redact: Callable[[str], str] = str,
    words: str | None = None,
) -> httpx.Response:
    """`response` if it is a success; else Transient, Denied or Rejected with the server's words.

    The message starts with `what`: the package and what was asked for. `words` is the result of
    `message_of`, if the caller has it already.
    """
    status = response.status_code
    if 200 <= status < 300:
        return response
    # Many servers begin with the status once more.
    said = message_of(response, redact=redact) if words is None else words
    said = said.removeprefix(str(status)).lstrip()
    message = f"{what}: HTTP {status} {said}".rstrip()
    contended = is_contended(response)
    if is_passing(status) or contended:
        raise Transient(
            message,
            retry_after=retry_after(response),
            ambiguous=status >= 500,
            contended=contended,
            limited=status == 429 or None,
            slowed_down="slowed_down" in response.extensions,
            problem=Problem.RATE_LIMITED if status == 429 else None,
            hint=PASSING if contended else remedy(status),
            status=status,
        )
    raise (Denied if status in {401, 403} else Rejected)(
        message, hint=remedy(status), status=status
    )


def is_contended(response: httpx.Response) -> bool:
    """Whether a server that is up could not do it beside what others asked of it."""
    if response.status_code in {409, 423} or response.status_code >= 500:
        text = response.content[:_LOOKED_AT_BYTES]
        return response.status_code == 423 or _CONTENDED.search(text) is not None
    return False


def message_of(response: httpx.Response, *, redact: Callable[[str], str] = str) -> str:
    """The server's own words: one line, no markup, no control characters, bounded, redacted."""
    text = response.content[:_LOOKED_AT_BYTES].decode("utf-8", "replace")
    kind = response.headers.get("Content-Type", "")
    if "json" in kind:
        text = _said(text)
    if "html" in kind:
        # Before too: a password may hold what looks like a tag.
        text = words_of_page(redact(text))
    return one_line(redact(text.strip() or response.reason_phrase))


def words_of_page(page: str) -> str:
    """Roughly the text that a browser would show for some HTML; enough for an error message."""
    words, end, hidden = [], 0, ""
    for tag in _TAG.finditer(page):
        if not hidden:
            words.append(page[end : tag.start()])
        end = tag.end()
        name, *_ = tag[1].lower().split(maxsplit=1) or [""]
        if name == f"/{hidden}" or (hidden == "head" and name == "body"):
            hidden = ""
        elif not hidden and name in _NOT_SHOWN:
            hidden = name
    if not hidden:
        words.append(page[end:])
    text = " ".join(words)
    try:
        return html.unescape(text)
    except ValueError:  # a reference of more digits than Python makes a number of
        return text


def _said(text: str) -> str:
    """The message for people that a JSON object has at its top level, if there is one, with the
    reasons that GitHub has below `errors`.
    """
    try:
        document = parse_json(text)
    except ValueError:
        return text
    if isinstance(document, dict):
        for key in ("error", "message", "detail"):
            if isinstance(words := document.get(key), str) and words:
                errors = document.get("errors")
                told = [
                    reason
                    for each in (errors if isinstance(errors, list) else [])[:_MOST_REASONS]
                    if isinstance(each, dict) and isinstance(reason := each.get("message"), str)
                ]
                return ": ".join(filter(None, (words, ", ".join(told))))
    return text


def one_line(text: str, limit: int = MAX_MESSAGE_CHARS) -> str:
    """`text` made safe to show: no line ends, no control characters, bounded."""
    # Only white space makes the line shorter, and a message has little of it.
    start = redact_urls(text[: 16 * limit])
    line = " ".join(visible(start).split())
    return clip(line if len(text) <= 16 * limit else f"{line}…", limit)


def follow_redirect(request: httpx.Request, target: httpx.Request) -> httpx.Request:
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
    """Whether a look at a server has led to none. Where it has never answered, that is rather an
    address or a proxy to correct than an outage to wait for.
    """
    return request.method in _LOOKS and isinstance(error, traffic.NEVER_SENT)


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
