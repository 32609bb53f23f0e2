"""What a registry's answer means; the wording is the only signal for half of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.errors import Denied, PackageError, Rejected
from releasekit.http.client import check, message_of, one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

_EXISTS: Final = (
    # https://docs.npmjs.com/cli/commands/npm-publish
    (403, "publish over"),
    (403, "previously published"),
    # https://docs.gitlab.com/user/packages/npm_registry/#troubleshooting
    (403, "already exists"),
    (400, "already exists"),
    (400, "does not allow updating assets"),  # Nexus
    (403, "overwrite artifact"),  # Artifactory
)
_TOKEN: Final = "Check RELEASEKIT_NPM_TOKEN (input `npm-token`)"  # noqa: S105 (its name)
_BYPASS: Final = (
    "The account asks for a second factor: use a granular access token that may bypass it, or "
    "trusted publishing."
)
_PAYMENT: Final = (
    "A package with a scope is private unless told otherwise: set `npm-access: public`, or "
    "publishConfig.access in its package.json."
)
_HIDDEN: Final = (
    f"{_TOKEN}: npm answers 404 to those who may not publish the package. The scope has to exist, "
    "and `npm-registry` is the registry's root."
)
_HINTS: Final = (
    (401, "one-time pass", _BYPASS),
    (403, "two-factor", _BYPASS),
    (401, "", f"{_TOKEN}: the registry does not know it, or it has expired."),
    (402, "", _PAYMENT),
    (403, "", f"{_TOKEN}: its owner may not publish this package, or the name is too close."),
    (404, "", _HIDDEN),
)


def exists(response: httpx.Response) -> bool:
    """Whether the registry says that it has this version, whatever its bytes are."""
    words = message_of(response).lower()
    return any(response.status_code == status and text in words for status, text in _EXISTS)


def explain(response: httpx.Response, what: str, *, redact: Callable[[str], str]) -> httpx.Response:
    """`client.check`, with what to do about it."""
    if response.has_redirect_location:
        target = one_line(redact(response.headers["Location"]))
        raise Rejected(
            f"{what}: redirected to {target}", hint="Give the address it leads to as npm-registry."
        )
    try:
        return check(response, what, redact=redact)
    except PackageError as error:
        error.hint = _hint(response)
        if response.status_code == 404:
            raise Denied(str(error), hint=error.hint) from error
        raise


def _hint(response: httpx.Response) -> str:
    words = message_of(response).lower()
    for status, text, hint in _HINTS:
        if response.status_code == status and text in words:
            return hint
    return ""
