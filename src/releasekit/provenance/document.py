"""A JSON document of a stranger, member by member: what is not as it should be is a ValueError that
says where, what it is, and what it has to be.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

# What protobuf's JSON writes as texts. https://protobuf.dev/programming-guides/json/
_MAX_NUMBER: Final = 2**63 - 1
_MAX_DIGITS: Final = 19
_MAX_SHOWN: Final = 100


class Document(Struct, frozen=True):
    """`value` stands at `path` of the document that it is a part of."""

    value: object
    path: str

    def __getitem__(self, name: str) -> Document:
        found = self.value.get(name) if isinstance(self.value, dict) else None
        return Document(found, f"{self.path}.{name}" if self.path else name)

    def __bool__(self) -> bool:
        """Whether anything is there."""
        return self.value not in (None, "", {}, [])

    def members(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return self.value

    def items(self) -> Iterator[Document]:
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        for number, each in enumerate(self.value):
            yield Document(each, f"{self.path}[{number}]")

    def only(self) -> Document:
        """The one item of a list."""
        found = list(self.items())
        if len(found) != 1:
            raise self.wrong("a list of one")
        return found[0]

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value:
            raise self.wrong("a text")
        return self.value

    def binary(self) -> bytes:
        text = self.text()
        try:
            return base64.b64decode(text, validate=True)
        except ValueError as error:  # binascii.Error is one, and it is another for other letters
            raise self.wrong("base64") from error

    def number(self) -> int:
        value = self.value
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value) if len(value) <= _MAX_DIGITS else None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_NUMBER:
            return value
        raise self.wrong("a number from 0 on")

    def moment(self) -> datetime | None:
        """None where nothing is there; in UTC where it says no zone."""
        if not self:
            return None
        try:
            found = datetime.fromisoformat(self.text())
        except ValueError as error:
            raise self.wrong("a time like 2026-01-31T00:00:00Z") from error
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    def require(self, *wanted: str) -> None:
        """That it is one of these."""
        if self.value not in wanted:
            raise self.wrong(" or ".join(wanted))

    def wrong(self, wanted: str) -> ValueError:
        shown = "not there" if self.value is None else clip(visible(repr(self.value)), _MAX_SHOWN)
        where = clip(visible(self.path), _MAX_SHOWN) or "the document"
        return ValueError(f"{where} is {shown}; it has to be {wanted}")
