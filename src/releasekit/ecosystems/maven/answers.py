"""What a repository's answer to a PUT means; half of it is told by the wording alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.errors import PackageError, Rejected, Transient
from releasekit.http.client import check, message_of, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import httpx

# 409 is GitHub Packages' and GitLab's word for a file that is there, 412 that of a server which
# heeds If-None-Match. https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2
_TAKEN: Final = frozenset({409, 412})
_EXISTS: Final = (
    # https://github.com/sonatype/nexus-public (StorageFacet, "write policy")
    (400, "updating asset"),
    # https://jfrog.com/help/r/artifactory-how-to-resolve-403-forbidden-errors
    (403, "overwrite"),
    (403, "delete permission"),
)
_DENIED: Final = (
    "Check `maven-username` and RELEASEKIT_MAVEN_PASSWORD (input `maven-password`), and whether "
    "this user may deploy there."
)
_WRONG_PLACE: Final = (
    "`maven-registry` is the address of a repository for releases, the one that "
    "distributionManagement names, and not that of a group or a mirror."
)
_HINTS: Final = {401: _DENIED, 403: _DENIED, 404: _WRONG_PLACE, 405: _WRONG_PLACE}


def accept(response: httpx.Response, what: str, *, redact: Callable[[str], str]) -> bool:
    """Whether this request stored the file; False for one that was there, whatever its bytes are.

    Raises Transient, Denied or Rejected with what the server says and what to do about it.
    """
    words = message_of(response, redact=redact).lower()
    if response.status_code in _TAKEN or any(
        response.status_code == status and text in words for status, text in _EXISTS
    ):
        return False
    if response.has_redirect_location:
        target = one_line(redact(response.headers["Location"]))
        raise Rejected(
            f"{what}: redirected to {target}; an upload follows no redirect",
            hint="Give the address it leads to as maven-registry.",
        )
    explain(response, what, redact=redact)
    return True


def explain(response: httpx.Response, what: str, *, redact: Callable[[str], str]) -> httpx.Response:
    """`client.check`, with what to do about it."""
    try:
        return check(response, what, redact=redact)
    except PackageError as error:
        error.hint = _HINTS.get(response.status_code, "")
        raise


def most_telling(errors: Sequence[PackageError]) -> PackageError:
    """One error for all files of a package: a final one before one worth another attempt."""
    final = [error for error in errors if not isinstance(error, Transient)]
    return final[0] if final else errors[0]
