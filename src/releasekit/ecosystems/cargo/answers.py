"""What a registry's answer to an upload means.

https://doc.rust-lang.org/cargo/reference/registry-web-api.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.shared.answers import Answers

if TYPE_CHECKING:
    import httpx

_EXISTS: Final = ((0, "is already uploaded"), (0, "already exists"))
_DENIED: Final = (
    "Check RELEASEKIT_CARGO_TOKEN (input `cargo-token`): it needs the scopes publish-new and "
    "publish-update, for these crates."
)
_WRONG_PLACE: Final = (
    "`cargo-registry` is the URL of a sparse index (https://index.crates.io/), without `sparse+`."
)
_HINTS: Final = {
    "verified email address": (
        "Verify one at https://crates.io/settings/profile; nothing was published."
    ),
    "too many new crates": (
        "crates.io takes 5 new crates, then one every 10 minutes. Ask help@crates.io for more: "
        "https://crates.io/docs/rate-limits"
    ),
    "too many updates": (
        "crates.io takes 30 new versions, then one a minute: https://crates.io/docs/rate-limits"
    ),
    "not be an owner": "Have an owner invite you: cargo owner --add USER CRATE.",
    "an owner": "The token belongs to somebody who does not own this crate.",
    "missing or empty metadata": (
        "Write what is missing into [package], or [workspace.package]: "
        "https://doc.rust-lang.org/cargo/reference/publishing.html"
    ),
    "Trusted Publishing tokens do not support creating new crates": "Use cargo-token once.",
}


def said(response: httpx.Response) -> str:
    """The details of `{"errors": [{"detail": "…"}]}`; empty for any other answer."""
    try:
        document = response.json()
    except (ValueError, RecursionError):
        return ""
    errors = document.get("errors") if isinstance(document, dict) else None
    found = errors if isinstance(errors, list) else []
    return "; ".join(str(error.get("detail")) for error in found if isinstance(error, dict))


_BY_STATUS: Final = {401: _DENIED, 403: _DENIED, 404: _WRONG_PLACE, 405: _WRONG_PLACE}
ANSWERS: Final = Answers(
    taken=frozenset({409}),
    exists=_EXISTS,
    hints=_HINTS,
    by_status=_BY_STATUS,
    said=said,
)
