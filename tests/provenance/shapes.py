"""Documents of one form that say different things, and bundles that were tampered with."""

from __future__ import annotations

import base64
from typing import Any


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
    """Base64 of other bytes; of a signature, one that is still well formed."""
    data = bytearray(base64.b64decode(text))
    data[-1] ^= 1
    return base64.b64encode(data).decode()


def entry(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["verificationMaterial"]["tlogEntries"][0]
    return found


def change_signature(document: dict[str, Any]) -> None:
    signature = document["dsseEnvelope"]["signatures"][0]
    signature["sig"] = flipped(signature["sig"])


def change_promise(document: dict[str, Any]) -> None:
    promise = entry(document)["inclusionPromise"]
    promise["signedEntryTimestamp"] = flipped(promise["signedEntryTimestamp"])


def change_time(document: dict[str, Any]) -> None:
    entry(document)["integratedTime"] = str(int(entry(document)["integratedTime"]) - 1)


def change_proof(document: dict[str, Any]) -> None:
    path = entry(document)["inclusionProof"]["hashes"]
    path[0] = flipped(path[0])
