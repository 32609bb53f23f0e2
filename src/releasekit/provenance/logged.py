"""Whether an entry is in a log that is trusted, as the log has signed it twice: a promise, with the
time at which it took the entry, and the root of its tree, to which a proof leads from the entry.

https://www.rfc-editor.org/rfc/rfc9162#section-2.1.3.2
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Self

from releasekit.provenance.document import Document
from releasekit.provenance.keys import is_signed
from releasekit.provenance.trust import NotVerified
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.provenance.trust import LogKey, TrustedRoot

KIND: Final = ("dsse", "0.0.1")
# The last that datetime knows; a later one is a lie anyway.
_LAST_SECOND: Final = 253_402_300_799


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One of a log: `body` is what the log keeps, `proof` how it is found in its tree."""

    index: int
    log_id: bytes
    integrated_s: int
    promise: bytes
    body: bytes
    proof: Document

    @classmethod
    def of(cls, document: Document) -> Self:
        """Raises ValueError for what no entry of a dsse statement is."""
        version = document["kindVersion"]
        kind = (version["kind"].text(), version["version"].text())
        if kind != KIND:
            raise ValueError(
                f"{version.path} is {kind[0][:40]} {kind[1][:40]}, and only {' '.join(KIND)} is "
                "known"
            )
        return cls(
            index=document["logIndex"].number(),
            log_id=document["logId"]["keyId"].binary(),
            integrated_s=min(document["integratedTime"].number(), _LAST_SECOND),
            promise=document["inclusionPromise"]["signedEntryTimestamp"].binary(),
            body=document["canonicalizedBody"].binary(),
            proof=document["inclusionProof"],
        )

    @property
    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.integrated_s, UTC)

    def others_than(self, payload: bytes, signature: bytes, certificate: bytes) -> list[str]:
        """What the log has in place of these, in words."""
        spec = Document(parse_json(self.body), "canonicalizedBody")["spec"]
        signed = spec["signatures"].only()
        hashed = spec["payloadHash"]
        found = {
            "statement": (hashed["algorithm"].text(), hashed["value"].text())
            == ("sha256", hashlib.sha256(payload).hexdigest()),
            "signature": signed["signature"].binary() == signature,
            "certificate": _unarmoured(signed["verifier"]) == certificate,
        }
        return [name for name, is_same in found.items() if not is_same]


def check_logged(entry: Entry, trust: TrustedRoot) -> LogKey:
    """The log that has it. Raises NotVerified, or ValueError for what is not even a proof."""
    log = trust.log(entry.log_id, entry.moment)
    if log is None:
        raise NotVerified(f"the log {entry.log_id.hex()[:16]}… of its entry is not trusted here")
    if not is_signed(log.der, entry.promise, _promised(entry)):
        raise NotVerified(
            f"its log entry is not as {log.url} has signed it: index, time or content differ"
        )
    root, size = _checkpoint(entry.proof["checkpoint"]["envelope"].text(), log)
    proof = entry.proof
    if (proof["rootHash"].binary(), proof["treeSize"].number()) != (root, size):
        raise NotVerified(f"its proof ends at another tree than {log.url} has signed")
    leaf = hashlib.sha256(b"\x00" + entry.body).digest()
    path = [each.binary() for each in proof["hashes"].items()]
    if _root(leaf, proof["logIndex"].number(), size, path) != root:
        raise NotVerified(f"its proof does not lead to the tree that {log.url} has signed")
    return log


def _promised(entry: Entry) -> bytes:
    document = {
        "body": base64.b64encode(entry.body).decode(),
        "integratedTime": entry.integrated_s,
        "logID": entry.log_id.hex(),
        "logIndex": entry.index,
    }
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def _root(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Of the tree of that size in which `path` leads up from the leaf; None where it cannot."""
    if index >= size:
        return None
    last, found = size - 1, leaf
    for sibling in path:
        if last == 0:
            return None
        if index & 1 or index == last:
            found = hashlib.sha256(b"\x01" + sibling + found).digest()
            while index and not index & 1:
                index, last = index >> 1, last >> 1
        else:
            found = hashlib.sha256(b"\x01" + found + sibling).digest()
        index, last = index >> 1, last >> 1
    return found if last == 0 else None


def _checkpoint(text: str, log: LogKey) -> tuple[bytes, int]:
    """The root of the log's tree and its size, as the log has signed them.

    https://github.com/transparency-dev/formats/blob/main/log/README.md
    """
    note, _, signatures = text.partition("\n\n")
    signed = (note + "\n").encode()
    if not any(is_signed(log.der, each, signed) for each in _signatures(signatures, log.id)):
        raise NotVerified(f"the checkpoint of its proof is not signed by {log.url}")
    try:
        _, size, root, *_ = note.split("\n")
        return base64.b64decode(root, validate=True), Document(size, "checkpoint").number()
    except ValueError as error:  # binascii.Error is one
        raise ValueError("the checkpoint of its proof has no size and root") from error


def _signatures(lines: str, log_id: bytes) -> list[bytes]:
    """Of those that say by the first four bytes that they are of the log."""
    found = []
    for line in lines.splitlines():
        dash, _, rest = line.partition(" ")
        try:
            data = base64.b64decode(rest.rpartition(" ")[2], validate=True)
        except binascii.Error:
            continue
        if dash == "\N{EM DASH}" and data[:4] == log_id[:4]:
            found.append(data[4:])
    return found


def _unarmoured(document: Document) -> bytes:
    """The DER in PEM in base64."""
    lines = document.binary().decode("ascii", "replace").split()
    # BEGIN and END are two words each, of which the hyphens are a part.
    inner = "".join(line for line in lines if not line.startswith("-") and not line.endswith("-"))
    try:
        return base64.b64decode(inner, validate=True)
    except binascii.Error as error:
        raise ValueError(f"{document.path} is no certificate") from error
