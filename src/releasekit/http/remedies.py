"""What to do about a status that a registry says no more about: never nothing."""

from __future__ import annotations

from typing import Final

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
    408: PASSING,
    409: f"Something of that name is there, or is being changed: look at it, then {_AGAIN}.",
    410: _NO_SUCH_PLACE,
    412: f"Something of that name is there: look at it, then {_AGAIN}.",
    413: _TOO_LARGE,
    414: "A name or a version is longer than the server takes.",
    421: "Check the address of the registry, and proxies on the way: the server is another one.",
    422: f"The registry has read it and refuses it: correct what it says, then {_AGAIN}.",
    423: PASSING,
    425: PASSING,
    429: f"The registry takes only so much in a while, however slowly it is asked: {_AGAIN} later.",
    431: "A name, a version or a token is longer than the server takes: look at the token.",
    451: "The registry refuses for legal reasons: ask its operator.",
    501: "The server knows no such requests: check the address of the registry.",
    505: "The server speaks another HTTP: check the address of the registry, and proxies.",
    507: "The registry has no storage left: tell its operator.",
    511: _PROXY,
}
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
