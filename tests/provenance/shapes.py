"""Documents of one form that say different things."""

from __future__ import annotations

import base64


def shape(document: object, where: str = "") -> set[str]:
    """The keys and types of a document."""
    match document:
        case dict():
            inner = {x for key, each in document.items() for x in shape(each, f"{where}.{key}")}
            return inner or {where}
        case list():
            return {x for each in document for x in shape(each, f"{where}[]")} or {where}
        case _:
            return {f"{where}: {type(document).__name__}"}


def flipped(text: str) -> str:
    """Base64 of the same length, of other bytes."""
    data = bytearray(base64.b64decode(text))
    data[len(data) // 2] ^= 1
    return base64.b64encode(data).decode()
