"""What a registry's answer to an upload means.

https://doc.rust-lang.org/cargo/reference/registry-web-api.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.errors import PackageError, Rejected
from releasekit.http.client import check, message_of, one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

_EXISTS: Final = ("is already uploaded", "already exists")
_HINTS: Final = (
    (
        "verified email address",
        "Verify one at https://crates.io/settings/profile; nothing was published.",
    ),
    (
        "too many new crates",
        (
            "crates.io takes 5 new crates, then one every 10 minutes. Ask help@crates.io for more: "
            "https://crates.io/docs/rate-limits"
        ),
    ),
    (
        "too many updates",
        "crates.io takes 30 new versions, then one a minute: https://crates.io/docs/rate-limits",
    ),
    ("not be an owner", "Have an owner invite you: cargo owner --add USER CRATE."),
    ("an owner", "The token belongs to somebody who does not own this crate."),
    (
        "missing or empty metadata",
        (
            "Write what is missing into [package], or [workspace.package]: "
            "https://doc.rust-lang.org/cargo/reference/publishing.html"
        ),
    ),
    ("Trusted Publishing tokens do not support creating new crates", "Use cargo-token once."),
)
_DENIED: Final = (
    "Check RELEASEKIT_CARGO_TOKEN (input `cargo-token`): it needs the scopes publish-new and "
    "publish-update, for these crates."
)
_WRONG_PLACE: Final = (
    "`cargo-registry` is the URL of a sparse index (https://index.crates.io/), without `sparse+`."
)
_STATUS_HINTS: Final = {401: _DENIED, 403: _DENIED, 404: _WRONG_PLACE, 405: _WRONG_PLACE}


def accept(response: httpx.Response, what: str, *, redact: Callable[[str], str]) -> None:
    """Returns for a version that is there, by this request or before it (whatever its bytes are).

    Raises Transient, Denied or Rejected with what the server says and what to do about it.
    """
    details = said(response)
    words = one_line(redact("; ".join(details)))
    if response.status_code == 409 or any(text in words for text in _EXISTS):
        return
    if response.has_redirect_location:
        target = one_line(redact(response.headers["Location"]))
        raise Rejected(f"{what}: redirected to {target}; an upload follows no redirect")
    explain(response, what, redact=redact)
    if details:
        # An answer with errors is none of success, whatever its status.
        raise Rejected(f"{what}: {words}", hint=_hint(0, words))


def explain(response: httpx.Response, what: str, *, redact: Callable[[str], str]) -> httpx.Response:
    """`client.check`, with the registry's own words and what to do about it."""
    details = said(response)
    try:
        return check(response, what, redact=redact)
    except PackageError as error:
        words = one_line(redact("; ".join(details))) or message_of(response, redact=redact)
        if details:
            error.args = (f"{what}: HTTP {response.status_code} {words}",)
        error.hint = _hint(response.status_code, words)
        raise


def said(response: httpx.Response) -> list[str]:
    """The details of `{"errors": [{"detail": "…"}]}`; empty for any other answer."""
    try:
        document = response.json()
    except (ValueError, RecursionError):
        return []
    errors = document.get("errors") if isinstance(document, dict) else None
    found = errors if isinstance(errors, list) else []
    return [str(it.get("detail")) for it in found if isinstance(it, dict)]


def _hint(status: int, words: str) -> str:
    for text, hint in _HINTS:
        if text in words:
            return hint
    return _STATUS_HINTS.get(status, "")
