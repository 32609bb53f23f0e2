"""What a token of PyPI says of itself: the projects that it is for, and its end.

https://github.com/pypi/warehouse/blob/main/warehouse/macaroons/caveats/__init__.py has the caveats,
and https://github.com/rescrv/libmacaroons/blob/master/doc/format.txt how they are written down.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from releasekit.http.credentials import Secret

_VERSION: Final = 2
_LAST_SECOND: Final = 253_402_300_799  # of the year 9999
_END, _IDENTIFIER = 0, 2
_EXPIRATION, _PROJECT_NAME, _PROJECT_ID = 0, 1, 2


class TokenLimits(Struct, frozen=True):
    """`names` are those of the projects that a user has chosen, canonical, and `ids` those of the
    projects that trust a publisher; None where it says nothing. `expires` is a time of `time.time`.
    """

    names: frozenset[str] | None = None
    ids: frozenset[str] | None = None
    expires: float | None = None

    @property
    def end(self) -> str:
        """When it expires, to the minute; empty where it never does."""
        if self.expires is None:
            return ""
        end = datetime.fromtimestamp(self.expires, UTC)
        return end.isoformat(timespec="minutes")


def read_limits(token: Secret) -> TokenLimits:
    """Those of all its caveats; of another kind of token, none."""
    found: dict[int, list[object]] = {}
    try:
        data = base64.urlsafe_b64decode(f"{token.reveal().removeprefix('pypi-')}==")
        if data[0] != _VERSION:
            return TokenLimits()
        # The first is the name of the token itself.
        _, *caveats = [value for kind, value in _read_fields(data) if kind == _IDENTIFIER]
        for caveat in map(parse_json, caveats):
            if isinstance(caveat, list) and len(caveat) > 1:
                found.setdefault(caveat[0], []).append(caveat[1])
    except (ValueError, IndexError, TypeError, binascii.Error):
        return TokenLimits()
    ends = [each for each in found.get(_EXPIRATION, []) if isinstance(each, int | float)]
    return TokenLimits(
        _intersect(found.get(_PROJECT_NAME, [])),
        _intersect(found.get(_PROJECT_ID, [])),
        # Within what a date can show, and what a time can be subtracted from.
        max(0, min(*ends, _LAST_SECOND)) if ends else None,
    )


def _intersect(lists: list[object]) -> frozenset[str] | None:
    sets = [frozenset(map(str, each)) for each in lists if isinstance(each, list)]
    return frozenset.intersection(*sets) if sets else None


def _read_fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Raises IndexError where they are cut off."""
    at = 1
    while at < len(data):
        kind, at = _read_number(data, at)
        if kind == _END:
            continue
        size, at = _read_number(data, at)
        yield kind, data[at : at + size]
        at += size


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """A varint, and where what follows begins."""
    number = shift = 0
    while True:
        byte, at = data[at], at + 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at
