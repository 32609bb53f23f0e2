"""What a registry's answer to an upload means.

https://doc.rust-lang.org/cargo/reference/registry-web-api.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.shared.answers import Answers, errors_of, hints_by_status

if TYPE_CHECKING:
    import httpx

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
    return "; ".join(str(error.get("detail")) for error in errors_of(response))


ANSWERS: Final = Answers(
    exists=((0, "is already uploaded"), (0, "already exists")),
    hints=_HINTS,
    by_status=hints_by_status(
        denied="Check RELEASEKIT_CARGO_TOKEN (input `cargo-token`): it needs the scopes "
        "publish-new and publish-update, for these crates.",
        wrong_place="`cargo-registry` is the URL of a sparse index (https://index.crates.io/), "
        "without `sparse+`.",
    ),
    said=said,
)
