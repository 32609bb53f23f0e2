"""One question to a service that signing takes, and what its answers mean for a package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httpx

from releasekit.errors import Denied, Transient
from releasekit.http.answers import check
from releasekit.http.client import send
from releasekit.http.origins import describe_request
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from releasekit.errors import PackageError
    from releasekit.http.circuit import Circuit

_WITHOUT: Final = "or publish without attestations: `attestations: off`"
_LATER: Final = (
    "Nothing of the package was sent. Run the same command again when the service is back, "
    f"{_WITHOUT}."
)
_DENIED: Final = f"Check the job's `permissions`: it needs `id-token: write`; {_WITHOUT}."
_REFUSED: Final = f"Nothing of the package was sent. Correct what the service says, {_WITHOUT}."


async def ask(
    http: httpx.AsyncClient,
    request: httpx.Request,
    *,
    redact: Callable[[str], str],
    expected: Collection[int] = (),
    circuit: Circuit | None = None,
) -> httpx.Response:
    """One attempt; the answer is a success, or has one of the `expected` statuses.

    Raises Transient, Denied, Rejected.
    """
    response = await send(http, request, circuit=circuit)
    if response.status_code in expected:
        return response
    return check(response, describe_request(request), redact=redact)


def explain(error: PackageError) -> PackageError:
    """The error as something that happened while a file was signed: no upload has begun, so that
    there is nothing to ask a registry about.
    """
    match error:
        case Transient():
            error = error.with_(ambiguous=False)
            problem, hint = Problem.ATTESTATIONS_DOWN, _LATER
        case Denied():
            problem, hint = Problem.NOT_ATTESTED, _DENIED
        case _:
            problem, hint = Problem.NOT_ATTESTED, _REFUSED
    if error.problem is Problem.CERTIFICATE:
        problem = error.problem
    # Hints about answers speak of registries; those about proxies and certificates hold here too.
    kept = error.hint if isinstance(error.__cause__, httpx.TransportError) else ""
    return error.with_(problem=problem, hint=f"{kept} {hint}".lstrip())
