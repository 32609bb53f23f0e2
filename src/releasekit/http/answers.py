"""What an answer of a server means: the words that it says, whether the same request may succeed
later, and what to do about it.
"""

from __future__ import annotations

import html
import re
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from releasekit.errors import Denied, PackageError, Rejected, Transient
from releasekit.problems import Problem
from releasekit.text.escape import one_line
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import httpx

_AGAIN: Final = "run the same command again"
PASSING: Final = (
    f"That is trouble of the registry, or of the way to it: {_AGAIN} later. What is published "
    "stays, and is not sent twice."
)
_DENIED: Final = "Check the credentials for this registry, and what their owner may do there."
_NO_SUCH_PLACE: Final = (
    "Check the address of the registry, and the credentials: some answer so to those who may not "
    "see what is there."
)
_TOO_LARGE: Final = (
    "The file is larger than the registry takes, or a proxy in front of it: leave out unneeded "
    "files, or ask the operator to raise the limit."
)
_PROXY: Final = (
    "A proxy on the way wants a login: write it into HTTPS_PROXY, or name the registry in NO_PROXY."
)
_FINAL: Final = f"The registry would say no again: correct what it says, then {_AGAIN}."
# https://www.rfc-editor.org/rfc/rfc9110#section-15.5 and
# https://www.iana.org/assignments/http-status-codes/
_BY_STATUS: Final = {
    401: _DENIED,
    402: "The registry requires payment, or its licence has expired: ask its operator.",
    403: _DENIED,
    404: _NO_SUCH_PLACE,
    405: _NO_SUCH_PLACE,
    407: _PROXY,
    409: f"Something of that name is there, or is being changed: look at it, then {_AGAIN}.",
    410: _NO_SUCH_PLACE,
    412: f"Something of that name is there: look at it, then {_AGAIN}.",
    413: _TOO_LARGE,
    414: "A name or a version is longer than the server takes.",
    421: "Check the address of the registry, and proxies on the way: the server is another one.",
    422: f"The registry has read it and refuses it: correct what it says, then {_AGAIN}.",
    423: PASSING,
    429: f"The registry takes only so much in a while, however slowly it is asked: {_AGAIN} later.",
    431: "A name, a version or a token is longer than the server takes: look at the token.",
    451: "The registry refuses for legal reasons: ask its operator.",
    501: "The server knows no such requests: check the address of the registry.",
    505: "The server speaks another HTTP: check the address of the registry, and proxies.",
    507: "The registry has no storage left: tell its operator.",
    511: _PROXY,
}
# What git says of two who change one repository at once, and what comes through of that where a
# registry keeps its index in one.
# https://github.com/git/git/blob/master/refs/files-backend.c (cannot lock ref)
# https://github.com/git/git/blob/master/lockfile.c (File exists, another git process)
# https://github.com/git/git/blob/master/transport.c (non-fast-forward, failed to push some refs)
# https://github.com/libgit2/libgit2/blob/main/src/libgit2/push.c (non-fastforwardable)
_CONTENDED: Final = re.compile(
    rb"cannot lock ref|\.lock': file exists|another git process|failed to lock file"
    rb"|non-fast-?forward|\(fetch first\)|failed to push some refs",
    re.IGNORECASE,
)
# Of a body, when it is searched for words.
LOOKED_AT_BYTES: Final = 64 * 1024
# It stops at the next "<", so that no text is scanned twice.
_TAG: Final = re.compile(r"<([^<>]*)>")
_NOT_SHOWN: Final = frozenset({"head", "script", "style"})
_MOST_REASONS: Final = 3
_MAX_SECONDS: Final = "999999999"
# The longest form that a date may have. https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7
_MAX_DATE_CHARS: Final = 64
# Servers that cannot do what is asked, whenever it is asked: not implemented, another version of
# HTTP, a proxy that wants a login. All other 5xx pass, those of content networks (520-530) too.
# https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-5xx-errors/
_NEVER: Final = frozenset({501, 505, 511})


def remedy(status: int) -> str:
    """A sentence for the user, without the registry's own words."""
    return _BY_STATUS.get(status, PASSING if is_passing(status) else _FINAL)


def is_passing(status: int) -> bool:
    """Whether the same request may succeed later."""
    return status in {408, 425, 429} or (status >= 500 and status not in _NEVER)


def check(
    response: httpx.Response, what: str, *, redact: Callable[[str], str] = str
) -> httpx.Response:
    """`response` if it is a success; else raises what `make_error` makes of it."""
    if response.is_success:
        return response
    raise make_error(response, what, message_of(response, redact=redact))


def make_error(
    response: httpx.Response,
    what: str,
    words: str,
    *,
    hint: str = "",
    denied: Collection[int] = frozenset(),
) -> PackageError:
    """Transient, Denied or Rejected for an answer that is no success, with the server's `words`.

    The message starts with `what`: the package and what was asked for. `denied` are statuses that
    deny something, besides 401 and 403. Without a `hint`, the status says what to do.
    """
    status = response.status_code
    # Many servers begin with the status once more.
    message = f"{what}: HTTP {status} {words.removeprefix(str(status)).lstrip()}".rstrip()
    contended = is_contended(response)
    if is_passing(status) or contended:
        return Transient(
            message,
            retry_after=retry_after(response),
            ambiguous=status >= 500,
            contended=contended,
            limited=status == 429 or None,
            slowed_down="slowed_down" in response.extensions,
            problem=Problem.RATE_LIMITED if status == 429 else None,
            hint=hint or (PASSING if contended else remedy(status)),
            status=status,
        )
    kind = Denied if status in {401, 403} or status in denied else Rejected
    return kind(message, hint=hint or remedy(status), status=status)


def is_contended(response: httpx.Response) -> bool:
    """Whether a server that is up could not do it beside what others asked of it."""
    if response.status_code in {409, 423} or response.status_code >= 500:
        text = response.content[:LOOKED_AT_BYTES]
        return response.status_code == 423 or _CONTENDED.search(text) is not None
    return False


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


def message_of(response: httpx.Response, *, redact: Callable[[str], str] = str) -> str:
    """The server's own words: one line, no markup, no control characters, bounded, redacted."""
    text = response.content[:LOOKED_AT_BYTES].decode("utf-8", "replace")
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
