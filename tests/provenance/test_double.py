"""The double refuses what the real services refuse, and runs as a process of its own."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from provenance import signing
from provenance.sigstore_double import CERTIFY
from provenance.transparency import ENTRIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from provenance.sigstore_double import Sigstore

TESTS = Path(__file__).parents[1]


def request_for(key: ec.EllipticCurvePrivateKey) -> bytes:
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def certified(sigstore: Sigstore, token: str, csr: bytes) -> httpx.Response:
    return httpx.post(
        sigstore.url + CERTIFY,
        headers={"Authorization": f"Bearer {token}"},
        json={"certificateSigningRequest": base64.b64encode(csr).decode()},
    )


def test_a_token_has_to_be_for_sigstore_and_whole(sigstore: Sigstore) -> None:
    csr = request_for(ec.generate_private_key(ec.SECP256R1()))
    token = sigstore.issuer.token("sigstore")
    assert certified(sigstore, token, csr).status_code == 200
    header, body, signature = token.split(".")
    other = sigstore.issuer.token("sigstore").split(".")[1]
    for bad in (
        "-",
        sigstore.issuer.token("pypi"),
        f"{header}.{other}.{signature}",
        f"{header}.{body}.",
        f"{header}.{body}.A",
    ):
        assert certified(sigstore, bad, csr).status_code == 401


def test_a_request_has_to_be_signed_by_its_own_key(sigstore: Sigstore) -> None:
    token = sigstore.issuer.token("sigstore")
    csr = request_for(ec.generate_private_key(ec.SECP256R1()))
    der = bytearray(x509.load_pem_x509_csr(csr).public_bytes(Encoding.DER))
    der[-1] ^= 1
    forged = b"-----BEGIN CERTIFICATE REQUEST-----\n%s-----END CERTIFICATE REQUEST-----\n"
    for bad in (b"", b"nonsense", forged % base64.encodebytes(bytes(der))):
        assert certified(sigstore, token, bad).status_code == 400


def break_signature(proposed: dict[str, Any]) -> None:
    content = proposed["spec"]["proposedContent"]
    envelope = json.loads(content["envelope"])
    envelope["payload"] = base64.b64encode(b"{}").decode()
    content["envelope"] = json.dumps(envelope)


def break_kind(proposed: dict[str, Any]) -> None:
    proposed["kind"] = "intoto"


def break_verifier(proposed: dict[str, Any]) -> None:
    proposed["spec"]["proposedContent"]["verifiers"] = ["bm9uc2Vuc2U="]


def break_form(proposed: dict[str, Any]) -> None:
    del proposed["spec"]


@pytest.mark.parametrize("change", [break_signature, break_kind, break_verifier, break_form])
def test_the_log_takes_what_is_signed_by_the_certificate(
    sigstore: Sigstore, change: Callable[[dict[str, Any]], None]
) -> None:
    signing.signed(sigstore, [signing.about(b"x")])
    proposed = json.loads(sigstore.seen("log")[0].body)
    assert httpx.post(sigstore.url + ENTRIES, json=proposed).status_code == 409
    change(proposed)
    assert httpx.post(sigstore.url + ENTRIES, json=proposed).status_code == 400
    assert len(sigstore.entries) == 1


def test_entries_are_found_by_their_names_alone(sigstore: Sigstore) -> None:
    signing.signed(sigstore, [signing.about(b"x")])
    (entry,) = sigstore.entries
    found = httpx.get(f"{sigstore.url}{ENTRIES}/{entry.uuid}")
    assert list(found.json()) == [entry.uuid]
    assert httpx.get(f"{sigstore.url}{ENTRIES}/00").status_code == 404
    assert httpx.get(f"{sigstore.url}/elsewhere").status_code == 404
    assert entry.statement["subject"][0]["name"] == signing.WHEEL
    assert "PUBLIC KEY" in httpx.get(f"{sigstore.url}/api/v1/log/publicKey").text


def test_only_the_job_gets_its_tokens(sigstore: Sigstore) -> None:
    url = sigstore.environment["ACTIONS_ID_TOKEN_REQUEST_URL"]
    assert httpx.get(f"{url}&audience=sigstore").status_code == 401


def test_it_runs_as_a_process(tmp_path: Path) -> None:
    """For runs in containers, for those that are killed, and for benchmarks."""
    argv: list[str | Path] = [
        sys.executable,
        "-m",
        "provenance.sigstore_double",
        tmp_path,
        "--workflow",
        "pub.yml",
    ]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    with subprocess.Popen(
        argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        where = json.loads(process.stdout.readline())
        environment = where["environment"]
        assert environment["GITHUB_WORKFLOW_REF"].startswith("acme/widgets/.github/workflows/pub.y")
        request = urllib.request.Request(
            environment["ACTIONS_ID_TOKEN_REQUEST_URL"] + "&audience=sigstore"
        )
        bearer = f"Bearer {environment['ACTIONS_ID_TOKEN_REQUEST_TOKEN']}"
        request.add_header("Authorization", bearer)
        with urllib.request.urlopen(request) as answer:
            assert "value" in json.load(answer)
        trust = json.loads(Path(where["trust_config"]).read_text())
        assert trust["signingConfig"]["caUrls"][0]["url"] == where["url"]
        assert trust["trustedRoot"] == json.loads(Path(where["trusted_root"]).read_text())
        assert process.stdin is not None
        process.stdin.close()  # which ends it
        assert process.wait() == 0
