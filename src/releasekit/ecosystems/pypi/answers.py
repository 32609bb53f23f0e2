"""What a registry's answer to an upload means.

The wording is the only signal for half of it; each is from the server's own source, or twine's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.errors import PackageError, Rejected, Transient
from releasekit.http.client import check, message_of, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import httpx

# https://github.com/pypa/twine/blob/main/twine/commands/upload.py (skip_upload)
_EXISTS: Final = (
    (400, "already exist"),  # PyPI, which says so by nothing else, and Google's registry
    (400, "updating asset"),  # Nexus
    (400, "already been taken"),  # GitLab
    (403, "overwrite artifact"),  # Artifactory
)

# https://github.com/pypi/warehouse/blob/main/warehouse/forklift/legacy.py
_HINTS: Final = (
    (
        "previously used by a file that has since been deleted",
        "A filename is never taken twice, deleted or not: publish under another version.",
    ),
    (
        "Uploading new files to releases older than",
        "The release can no longer be completed: publish under another version.",
    ),
    (
        "Too many new projects created",
        (
            "The registry limits how many projects one user creates in an hour. Run again later: "
            "what is published stays. Projects that begin as a pending trusted publisher are not "
            "limited: "
            "https://docs.pypi.org/trusted-publishers/creating-a-project-through-oidc/"
        ),
    ),
    (
        "Non-user identities cannot create new projects",
        (
            "Add a pending trusted publisher for exactly this project name: "
            "https://docs.pypi.org/trusted-publishers/creating-a-project-through-oidc/"
        ),
    ),
    (
        "OIDC scoped token is not valid for project",
        (
            "Add this workflow as a trusted publisher of this project too: "
            "https://docs.pypi.org/trusted-publishers/adding-a-publisher/"
        ),
    ),
    (
        "Invalid or non-existent authentication information",
        (
            "RELEASEKIT_PYPI_TOKEN must hold the whole token, `pypi-` included, and one made on "
            "this very registry: pypi.org and test.pypi.org do not share accounts."
        ),
    ),
    (
        "allowed to upload to project",
        (
            "The token belongs to somebody who does not maintain this project, or is limited to "
            "another one."
        ),
    ),
)
_DENIED: Final = (
    "Check RELEASEKIT_PYPI_TOKEN (input `pypi-token`), and `pypi-username` if the registry wants a "
    "user and a password."
)
_WRONG_PLACE: Final = (
    "`pypi-registry` is the address that takes uploads (https://HOST/legacy/ on many servers), "
    "`pypi-index` the one that pip installs from."
)
_STATUS_HINTS: Final = {401: _DENIED, 403: _DENIED, 404: _WRONG_PLACE, 405: _WRONG_PLACE}


def accept(response: httpx.Response, what: str, *, redact: Callable[[str], str]) -> None:
    """Returns for a file that is stored, by this request or before it (whatever its bytes are).

    Raises Transient, Denied or Rejected with what the server says and what to do about it.
    """
    words = message_of(response, redact=redact)
    if response.status_code == 409 or any(
        response.status_code == status and text in words for status, text in _EXISTS
    ):
        return
    if response.has_redirect_location:
        target = one_line(redact(response.headers["Location"]))
        raise Rejected(
            f"{what}: redirected to {target}; an upload follows no redirect",
            hint="Give the address it leads to as pypi-registry.",
        )
    explain(response, what, redact=redact)


def explain(response: httpx.Response, what: str, *, redact: Callable[[str], str]) -> httpx.Response:
    """`client.check`, with what to do about it."""
    try:
        return check(response, what, redact=redact)
    except PackageError as error:
        error.hint = _hint(response.status_code, message_of(response))
        raise


def says_token_is_stale(response: httpx.Response) -> bool:
    """Whether the same request may pass with a token made a moment ago."""
    if response.status_code == 401:
        return True
    return response.status_code == 403 and any(
        text in message_of(response)
        for text in ("Invalid or non-existent authentication", "token is expired")
    )


def most_telling(errors: Sequence[PackageError]) -> PackageError:
    """One error for all files of a package: a final one before one worth another attempt."""
    transient = [error for error in errors if isinstance(error, Transient)]
    if len(transient) < len(errors):
        return next(error for error in errors if not isinstance(error, Transient))
    waits = [error.retry_after for error in transient if error.retry_after is not None]
    return Transient(
        str(transient[0]),
        retry_after=max(waits, default=None),
        ambiguous=any(error.ambiguous for error in transient),
        hint=transient[0].hint,
    )


def _hint(status: int, words: str) -> str:
    for text, hint in _HINTS:
        if text in words:
            return hint
    return _STATUS_HINTS.get(status, "")
