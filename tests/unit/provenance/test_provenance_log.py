from __future__ import annotations

import asyncio
import base64
import copy
import hashlib
import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from releasekit.errors import PackageError, Rejected
from releasekit.http.client import http_client
from releasekit.provenance.bundle import bundled
from releasekit.provenance.log import Entry, Signed, record
from releasekit.provenance.statement import Subject, publish

LOG = httpx.URL("https://rekor.example/log/")
STATEMENT = publish(Subject(name="widgets-1.0.0.tar.gz", digests={"sha256": "0" * 64}))
SIGNED = Signed(statement=STATEMENT, signature=b"signature", certificate=b"certificate")


def body(*, signature: bytes = b"signature", **changes: object) -> str:
    digest = hashlib.sha256(STATEMENT).hexdigest()
    one = {"signature": base64_of(signature), "verifier": base64_of(b"certificate")}
    document = {
        "apiVersion": "0.0.1",
        "kind": "dsse",
        "spec": {
            "payloadHash": {"algorithm": "sha256", "value": digest},
            "signatures": [one],
        },
        **changes,
    }
    return base64_of(json.dumps(document).encode())


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def answer(text: str) -> dict[str, Any]:
    proof = {
        "checkpoint": "a note",
        "hashes": ["00" * 32],
        "logIndex": 3,
        "rootHash": "11" * 32,
        "treeSize": 5,
    }
    return {
        "uuid": {
            "body": text,
            "integratedTime": 1_700_000_000,
            "logID": "22" * 32,
            "logIndex": 1_000_003,
            "verification": {"signedEntryTimestamp": "AAAA", "inclusionProof": proof},
        }
    }


def recorded(document: object, requests: list[httpx.Request] | None = None) -> Entry:
    seen: list[httpx.Request] = [] if requests is None else requests

    def answered(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(201, content=json.dumps(document))

    async def main() -> Entry:
        async with http_client(transport=httpx.MockTransport(answered)) as http:
            return await record(http, LOG, SIGNED, redact=str)

    return asyncio.run(main())


def test_an_entry_is_written_as_bundles_have_it() -> None:
    """The index of an entry is one of all logs, that of its proof one of its own tree."""
    requests: list[httpx.Request] = []
    entry = recorded(answer(body()), requests)
    assert entry.integrated_s == 1_700_000_000
    assert entry.document == {
        "logIndex": "1000003",
        "logId": {"keyId": base64_of(b"\x22" * 32)},
        "kindVersion": {"kind": "dsse", "version": "0.0.1"},
        "integratedTime": "1700000000",
        "inclusionPromise": {"signedEntryTimestamp": "AAAA"},
        "inclusionProof": {
            "logIndex": "3",
            "rootHash": base64_of(b"\x11" * 32),
            "treeSize": "5",
            "hashes": [base64_of(b"\0" * 32)],
            "checkpoint": {"envelope": "a note"},
        },
        "canonicalizedBody": body(),
    }
    (request,) = requests
    assert str(request.url) == "https://rekor.example/log/api/v1/log/entries"
    content = json.loads(request.content)["spec"]["proposedContent"]
    assert content["verifiers"] == [base64_of(b"certificate")]
    assert json.loads(content["envelope"])["payload"] == base64_of(STATEMENT)
    assert bundled(SIGNED, entry, certificate=b"der").log_index == 1_000_003


@pytest.mark.parametrize(
    "other",
    [
        body(kind="hashedrekord"),
        body(apiVersion="0.0.2"),
        body(spec={}),
        body(signature=b"of another"),
        base64_of(b"[]"),
    ],
)
def test_the_entry_of_another_signature_is_refused(other: str) -> None:
    with pytest.raises(Rejected, match="the entry of another signature"):
        recorded(answer(other))


def paths(value: object, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    match value:
        case dict():
            inner = [each for key in value for each in paths(value[key], (*at, key))]
        case list():
            inner = [each for key, item in enumerate(value) for each in paths(item, (*at, key))]
        case _:
            inner = []
    return [at, *inner]


ANSWER = answer(body())
STRANGE: st.SearchStrategy[object] = st.sampled_from(
    [
        None,
        True,
        -1,
        2**63,
        1.5,
        "",
        "zz",
        "é",
        "!",
        [],
        [7],
        {},
        "AAAA",
        "0" * 10_000,
        base64_of(b"{"),
    ]
)


@given(st.sampled_from(paths(ANSWER)), STRANGE)
def test_any_answer_is_an_entry_or_an_error_of_the_package(
    path: tuple[str | int, ...], value: object
) -> None:
    """R19: a log that answers nonsense ends no run."""
    document: Any = {"": copy.deepcopy(ANSWER)}
    *inner, last = ("", *path)
    place = document
    for key in inner:
        place = place[key]
    place[last] = value
    try:
        entry = recorded(document[""])
    except PackageError:
        return
    assert bundled(SIGNED, entry, certificate=b"der").payload == STATEMENT
