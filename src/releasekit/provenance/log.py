"""The transparency log: a signature goes into it, and the proof of that comes back. Which version
of the log is spoken is known here alone.

https://github.com/sigstore/rekor/blob/main/openapi.yaml
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any, Final

import httpx
from msgspec import Struct

from releasekit.errors import Rejected, Transient
from releasekit.http.origins import describe_request, same_origin
from releasekit.problems import Problem
from releasekit.provenance.services import ask
from releasekit.provenance.statement import PAYLOAD_TYPE, canonical
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from releasekit.http.circuit import Circuit

_ENTRIES: Final = "/api/v1/log/entries"
_KIND: Final = {"kind": "dsse", "version": "0.0.1"}
_IS_THERE: Final = 409
_MAX_NUMBER: Final = 2**63


class Signed(Struct, frozen=True, kw_only=True):
    """A statement, its signature, and the certificate of the key in PEM."""

    statement: bytes
    signature: bytes
    certificate: bytes

    @property
    def envelope(self) -> dict[str, Any]:
        return {
            "payload": encoded(self.statement),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": encoded(self.signature)}],
        }


class Entry(Struct, frozen=True):
    """`document` is as bundles hold it: numbers are text, bytes are base64."""

    document: dict[str, Any]
    integrated_s: int


async def record(
    http: httpx.AsyncClient,
    log: httpx.URL,
    signed: Signed,
    *,
    redact: Callable[[str], str],
    circuit: Circuit | None = None,
) -> Entry:
    """The entry of this very signature, new or from an earlier attempt whose answer was lost. One
    attempt, at the pace of the log's `circuit`; raises Transient, Denied, Rejected.
    """
    request = http.build_request("POST", _url(log), json=_proposed(signed))
    response = await ask(http, request, redact=redact, expected=(_IS_THERE,), circuit=circuit)
    if response.status_code == _IS_THERE:
        request = http.build_request("GET", _existing(log, request, response))
        response = await ask(http, request, redact=redact, circuit=circuit)
    try:
        entry, body = _entry(response.content)
    except (ValueError, TypeError) as error:
        raise Transient(
            f"{describe_request(request)}: not an entry of a log ({error})",
            problem=Problem.STRANGE_ANSWER,
        ) from error
    if not _is_of(body, signed):
        raise Rejected(
            f"{describe_request(request)}: the entry of another signature",
            problem=Problem.STRANGE_ANSWER,
        )
    return entry


def _url(log: httpx.URL) -> str:
    return f"{str(log).rstrip('/')}{_ENTRIES}"


def _proposed(signed: Signed) -> dict[str, Any]:
    content = {
        "envelope": canonical(signed.envelope).decode(),
        "verifiers": [encoded(signed.certificate)],
    }
    return {
        "apiVersion": _KIND["version"],
        "kind": _KIND["kind"],
        "spec": {"proposedContent": content},
    }


def _existing(log: httpx.URL, request: httpx.Request, response: httpx.Response) -> httpx.URL:
    """Where the log says that it has the entry."""
    location = response.headers.get("Location", "")
    try:
        url = request.url.join(location)
    except (ValueError, httpx.InvalidURL) as error:
        raise Transient(
            f"{describe_request(request)}: HTTP 409 without an address",
            problem=Problem.STRANGE_ANSWER,
        ) from error
    if not location or not same_origin(url, log):
        raise Transient(
            f"{describe_request(request)}: HTTP 409 without an address in this log",
            problem=Problem.STRANGE_ANSWER,
        )
    return url


def _entry(answer: bytes) -> tuple[Entry, object]:
    """The one entry of an answer, and its body. Raises ValueError, TypeError."""
    match parse_json(answer):
        case {**entries} if len(entries) == 1:
            (entry,) = entries.values()
        case _:
            raise ValueError("not one entry")
    match entry:
        case {
            "body": str(body),
            "logID": str(log_id),
            "logIndex": int(index),
            "integratedTime": int(integrated_s),
            "verification": {
                "signedEntryTimestamp": str(promise),
                "inclusionProof": {
                    "checkpoint": str(checkpoint),
                    "hashes": [*hashes],
                    "logIndex": int(place),
                    "rootHash": str(root),
                    "treeSize": int(size),
                },
            },
        }:
            pass
        case _:
            raise ValueError("something is missing in it")
    document = {
        "logIndex": _number(index),
        "logId": {"keyId": _from_hex(log_id)},
        "kindVersion": dict(_KIND),
        "integratedTime": _number(integrated_s),
        "inclusionPromise": {"signedEntryTimestamp": promise},
        "inclusionProof": {
            "logIndex": _number(place),
            "rootHash": _from_hex(root),
            "treeSize": _number(size),
            "hashes": [_from_hex(each) for each in hashes],
            "checkpoint": {"envelope": checkpoint},
        },
        "canonicalizedBody": body,
    }
    return Entry(document, integrated_s), parse_json(base64.b64decode(body, validate=True))


def _number(value: int) -> str:
    if isinstance(value, bool) or not 0 <= value < _MAX_NUMBER:
        raise ValueError("a number that no log counts to")
    return str(value)


def _is_of(body: object, signed: Signed) -> bool:
    digest = hashlib.sha256(signed.statement).hexdigest()
    match body:
        case {
            "kind": "dsse",
            "apiVersion": "0.0.1",
            "spec": {
                "payloadHash": {"algorithm": "sha256", "value": payload},
                "signatures": [{"signature": signature, "verifier": verifier}],
            },
        }:
            return (payload, signature, verifier) == (
                digest,
                encoded(signed.signature),
                encoded(signed.certificate),
            )
        case _:
            return False


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _from_hex(text: str) -> str:
    return encoded(bytes.fromhex(text))
