"""Rekor v1: bodies, proofs, checkpoints and promises as the real one makes them, of the kind dsse.

https://github.com/sigstore/rekor/blob/main/openapi.yaml,
https://github.com/sigstore/rekor/blob/main/pkg/types/dsse/v0.0.1/entry.go and
https://www.rfc-editor.org/rfc/rfc6962#section-2.1
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from provenance.authority import public_bytes

ENTRIES = "/api/v1/log/entries"
# The name that checkpoints go by; sigstore-js looks for it in the base URL of the trusted root.
NAME = "127.0.0.1"
_TREE = 7


class BadEntry(Exception):
    """The log takes no such entry."""


@dataclass(frozen=True)
class Entry:
    """`payload` is the statement that was signed, which the log itself does not show."""

    body: bytes
    payload: bytes
    integrated_s: int

    @property
    def leaf(self) -> bytes:
        return _sha256(b"\0" + self.body)

    @property
    def uuid(self) -> str:
        return f"{_TREE:016x}{self.leaf.hex()}"

    @property
    def statement(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.payload)
        return document


@dataclass
class Log:
    """`shift_s` is how far its clock is ahead of ours."""

    shift_s: int = 0
    entries: list[Entry] = field(default_factory=list)
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    _roots: dict[tuple[int, int], bytes] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def log_id(self) -> bytes:
        return _sha256(public_bytes(self.key.public_key()))

    def add(self, proposed: dict[str, Any]) -> tuple[Entry, bool]:
        """The entry, and whether it is new. Raises BadEntry."""
        body, payload = _canonical(proposed)
        with self._lock:
            entry = Entry(body, payload, int(time.time()) + self.shift_s)
            for known in self.entries:
                if known.body == body:
                    return known, False
            self.entries.append(entry)
            return entry, True

    def find(self, uuid: str) -> Entry | None:
        return next((each for each in self.entries if each.uuid == uuid), None)

    def shown(self, entry: Entry) -> dict[str, Any]:
        """As Rekor answers, with a proof for the log as it is now."""
        with self._lock:
            index, size = self.entries.index(entry), len(self.entries)
            root, path = self._root(0, size), self._path(index, 0, size)
        note = f"{NAME} - {_TREE}\n{size}\n{_base64(root)}\n"
        signature = self.log_id[:4] + self._sign(note.encode())
        shown = {
            "body": _base64(entry.body),
            "integratedTime": entry.integrated_s,
            "logID": self.log_id.hex(),
            "logIndex": index,
        }
        promise = self._sign(json.dumps(shown, separators=(",", ":"), sort_keys=True).encode())
        proof = {
            "checkpoint": f"{note}\n\N{EM DASH} {NAME} {_base64(signature)}\n",
            "hashes": [each.hex() for each in path],
            "logIndex": index,
            "rootHash": root.hex(),
            "treeSize": size,
        }
        verification = {"signedEntryTimestamp": _base64(promise), "inclusionProof": proof}
        return {entry.uuid: {**shown, "verification": verification}}

    def _sign(self, data: bytes) -> bytes:
        return self.key.sign(data, ec.ECDSA(hashes.SHA256()))

    def _root(self, start: int, end: int) -> bytes:
        if end - start == 1:
            return self.entries[start].leaf
        if (known := self._roots.get((start, end))) is not None:
            return known
        middle = _split(start, end)
        self._roots[start, end] = _sha256(
            b"\1" + self._root(start, middle) + self._root(middle, end)
        )
        return self._roots[start, end]

    def _path(self, index: int, start: int, end: int) -> list[bytes]:
        if end - start == 1:
            return []
        middle = _split(start, end)
        if index < middle:
            return [*self._path(index, start, middle), self._root(middle, end)]
        return [*self._path(index, middle, end), self._root(start, middle)]


def _canonical(proposed: dict[str, Any]) -> tuple[bytes, bytes]:
    """What the log keeps of an entry whose signature is sound, and the payload."""
    try:
        if (proposed["kind"], proposed["apiVersion"]) != ("dsse", "0.0.1"):
            raise BadEntry("unsupported kind of entry")
        content = proposed["spec"]["proposedContent"]
        envelope: str = content["envelope"]
        document = json.loads(envelope)
        payload = base64.b64decode(document["payload"], validate=True)
        ((signature,), (verifier,)) = document["signatures"], content["verifiers"]
        kind = document["payloadType"].encode()
        certificate = x509.load_pem_x509_certificate(base64.b64decode(verifier, validate=True))
        key = certificate.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
        key.verify(base64.b64decode(signature["sig"]), signed, ec.ECDSA(hashes.SHA256()))
    except (KeyError, TypeError, ValueError) as error:
        raise BadEntry("error processing entry") from error
    except InvalidSignature as error:
        raise BadEntry("could not verify envelope") from error
    spec = {
        "envelopeHash": {"algorithm": "sha256", "value": _sha256(envelope.encode()).hex()},
        "payloadHash": {"algorithm": "sha256", "value": _sha256(payload).hex()},
        "signatures": [{"signature": signature["sig"], "verifier": verifier}],
    }
    kept = {"apiVersion": "0.0.1", "kind": "dsse", "spec": spec}
    return json.dumps(kept, separators=(",", ":"), sort_keys=True).encode(), payload


def _split(start: int, end: int) -> int:
    """After the largest power of two that is smaller than the whole."""
    return start + (1 << (end - start - 1).bit_length() - 1)


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
