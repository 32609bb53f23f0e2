"""A bundle that is sound in its form; nobody has signed it."""

from __future__ import annotations

import base64
import json
from typing import Any

from releasekit.provenance.statement import PAYLOAD_TYPE

STATEMENT: dict[str, Any] = {
    "_type": "https://in-toto.io/Statement/v1",
    "subject": [{"name": "widgets-1.0.0.tar.gz", "digest": {"sha256": "0" * 64}}],
    "predicateType": "https://docs.pypi.org/attestations/publish/v1",
    "predicate": None,
}


def base64_of(document: object) -> str:
    return base64.b64encode(json.dumps(document).encode()).decode()


def document(statement: object = STATEMENT) -> dict[str, Any]:
    entry = {
        "logIndex": "7",
        "logId": {"keyId": "AA=="},
        "kindVersion": {"kind": "dsse", "version": "0.0.1"},
        "integratedTime": "1700000000",
        "inclusionPromise": {"signedEntryTimestamp": "AA=="},
        "inclusionProof": {"logIndex": "7"},
        "canonicalizedBody": "AA==",
    }
    return {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {"certificate": {"rawBytes": "AAAA"}, "tlogEntries": [entry]},
        "dsseEnvelope": {
            "payload": base64_of(statement),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": "AAAA"}],
        },
    }
