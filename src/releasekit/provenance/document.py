"""A JSON document of a stranger, member by member: what is not as it should be is a ValueError that
says where.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# 64 bits, which protobuf's JSON writes as texts. https://protobuf.dev/programming-guides/json/
_MAX_DIGITS: Final = 19


@dataclass(frozen=True, slots=True)
class Document:
    """`value` stands at `path` of the document that it is a part of."""

    value: object
    path: str

    def __getitem__(self, name: str) -> Document:
        found = self.value.get(name) if isinstance(self.value, dict) else None
        return Document(found, f"{self.path}.{name}" if self.path else name)

    def __bool__(self) -> bool:
        """Whether anything is there."""
        return self.value not in (None, "", {}, [])

    def items(self) -> Iterator[Document]:
        if not isinstance(self.value, list):
            raise ValueError(f"{self.path} is no list")  # noqa: TRY004 - of a document
        for number, each in enumerate(self.value):
            yield Document(each, f"{self.path}[{number}]")

    def only(self) -> Document:
        """The one item of a list."""
        found = list(self.items())
        if len(found) != 1:
            raise ValueError(f"{self.path} has {len(found)} items, and one is needed")
        return found[0]

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value:
            raise ValueError(f"{self.path} is missing, or no text")
        return self.value

    def binary(self) -> bytes:
        try:
            return base64.b64decode(self.text(), validate=True)
        except binascii.Error as error:
            raise ValueError(f"{self.path} is not base64") from error

    def number(self) -> int:
        value = self.value
        if isinstance(value, str) and value.isascii() and value.isdigit():
            if len(value) <= _MAX_DIGITS:
                return int(value)
        elif isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        raise ValueError(f"{self.path} is missing, or no number from 0 on")
