"""What is believed of a bundle, and what is wrong with one that was tampered with."""

from __future__ import annotations

import asyncio
import base64
import copy
import hashlib
import json
import random
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID
from sigstore.errors import Error as OfficialError

from provenance import authority, official, sigstore_double
from provenance.oidc import ISSUER
from provenance.shapes import (
    change_promise,
    change_proof,
    change_signature,
    change_time,
    entry,
    flipped,
)
from provenance.signing import SERVER, WHEEL, about, signed
from releasekit.errors import Rejected
from releasekit.fields import replace
from releasekit.http.client import http_client
from releasekit.http.credentials import Secret
from releasekit.model import Artifact
from releasekit.provenance.bundle import Bundle, bundled
from releasekit.provenance.certificate import Claims, NotVerified, certify, is_ours
from releasekit.provenance.instance import instance_at
from releasekit.provenance.job import Job
from releasekit.provenance.log import Signed, record
from releasekit.provenance.statement import canonical, pae
from releasekit.provenance.verifier import check, load_keys
from releasekit.provenance.verify_files import Signers, Verified

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric import ec
    from sigstore_models.trustroot.v1 import TrustedRoot as Keys

    from provenance.authority import Authority
    from provenance.sigstore_double import Sigstore

CONTENT = b"what was built"
FOREIGN = (
    "its certificate was not issued by an authority that is trusted here, or was not valid when "
    "the log took the entry: "
)
LETTERS = 'AZaz09+/=,:"{}[]-\\ \u00e9'


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Sigstore]:
    """Another instance, which nobody trusts."""
    with sigstore_double.serving(tmp_path / "other") as served:
        yield served


def trust(sigstore: Sigstore) -> Keys:
    return load_keys(sigstore.trusted_root, scratch=None, tell=pytest.fail)


def signers(sigstore: Sigstore, repository: str = "acme/widgets", workflow: str = "") -> Signers:
    return Signers(partial(check, keys=trust(sigstore), issuer=ISSUER), repository, workflow)


def one(sigstore: Sigstore, content: bytes = CONTENT) -> Bundle:
    """The second of three entries, so that its proof has some length, by a certificate that has
    been valid for a while.
    """
    sigstore.authority.age_s = 60
    _, bundle, _ = signed(sigstore, [about(b"before"), about(content), about(b"behind")])
    return bundle


def entered(sigstore: Sigstore) -> Bundle:
    """What a signer makes that asks no questions."""

    async def main() -> Bundle:
        instance = instance_at(sigstore.trust_config)
        async with http_client() as http:
            token = Secret(sigstore.issuer.token("sigstore"))
            identity = await certify(http, instance.authority, token, redact=str)
            statement = about(CONTENT)
            of_it = Signed(
                statement=statement,
                signature=identity.sign(pae(statement)),
                certificate=identity.pem,
            )
            entry = await record(http, instance.log, of_it, redact=str)
            return bundled(of_it, entry, certificate=identity.der)

    return asyncio.run(main())


def refusal(bundle: Bundle, trusted: Keys) -> str:
    with pytest.raises(NotVerified) as caught:
        check(bundle, trusted, ISSUER)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def refused_by_all(bundle: Bundle, sigstore: Sigstore, *, by: Sigstore | None = None) -> str:
    """The reason; the official client refuses it too."""
    with pytest.raises(OfficialError):
        official.python(by or sigstore, bundle)
    return refusal(bundle, trust(by or sigstore))


def changed(bundle: Bundle, change: Callable[[dict[str, Any]], None]) -> Bundle:
    document = copy.deepcopy(dict(bundle.document))
    change(document)
    return Bundle.parse(json.dumps(document).encode())


def test_what_a_job_has_signed_is_verified(sigstore: Sigstore) -> None:
    bundle = one(sigstore)
    claims = check(bundle, trust(sigstore), ISSUER)
    assert official.python(sigstore, bundle) == bundle.payload
    assert claims.repository == "https://github.com/acme/widgets"
    assert claims.workflow_uri == (
        "https://github.com/acme/widgets/.github/workflows/release.yml@refs/heads/main"
    )
    assert claims.issuer == ISSUER
    assert claims.workflow == ".github/workflows/release.yml"
    assert claims.commit == sigstore.claims["sha"]
    assert claims.run_url == "https://github.com/acme/widgets/actions/runs/42/attempts/1"
    assert (claims.ref, claims.event) == ("refs/heads/main", "push")
    verified = Verified(claims=claims, subjects=bundle.subjects, log_index=1)
    assert signers(sigstore).verify(bundle) == verified
    assert signers(sigstore, workflow="release.yml").verify(bundle) == verified


def test_proofs_of_every_shape_lead_to_the_root(sigstore: Sigstore) -> None:
    """Of each entry in a tree of 17."""
    for bundle in signed(sigstore, [about(bytes([number])) for number in range(17)]):
        assert check(bundle, trust(sigstore), ISSUER).event == "push"


def with_other(sigstore: Sigstore, part: str) -> Bundle:
    """A sound bundle with this part of another one, which is sound too."""
    stranger = one(sigstore, b"other").document["verificationMaterial"]

    def exchange(document: dict[str, Any]) -> None:
        document["verificationMaterial"][part] = stranger[part]

    return changed(one(sigstore), exchange)


def change_statement(document: dict[str, Any]) -> None:
    document["dsseEnvelope"]["payload"] = base64.b64encode(about(b"another file")).decode()


def change_subject(document: dict[str, Any]) -> None:
    payload = base64.b64decode(document["dsseEnvelope"]["payload"])
    renamed = payload.replace(b"widgets-1.0.0", b"widgets-1.0.1")
    document["dsseEnvelope"]["payload"] = base64.b64encode(renamed).decode()


def change_index(document: dict[str, Any]) -> None:
    entry(document)["logIndex"] = "7"


def shorten_proof(document: dict[str, Any]) -> None:
    entry(document)["inclusionProof"]["hashes"].pop()


def change_place(document: dict[str, Any]) -> None:
    entry(document)["inclusionProof"]["logIndex"] = "0"


def change_root(document: dict[str, Any]) -> None:
    proof = entry(document)["inclusionProof"]
    proof["rootHash"] = flipped(proof["rootHash"])


def change_checkpoint(document: dict[str, Any]) -> None:
    checkpoint = entry(document)["inclusionProof"]["checkpoint"]
    note, _, line = checkpoint["envelope"].rpartition(" ")
    checkpoint["envelope"] = f"{note} {flipped(line.strip())}\n"


def change_hint(document: dict[str, Any]) -> None:
    """Which says whose signature it is."""
    checkpoint = entry(document)["inclusionProof"]["checkpoint"]
    note, _, line = checkpoint["envelope"].rpartition(" ")
    signature = base64.b64decode(line)
    hinted = base64.b64encode(bytes([signature[0] ^ 1]) + signature[1:]).decode()
    checkpoint["envelope"] = f"{note} {hinted}\n"


def of_another_log(document: dict[str, Any]) -> None:
    entry(document)["logId"]["keyId"] = flipped(entry(document)["logId"]["keyId"])


def without_promise(document: dict[str, Any]) -> None:
    del entry(document)["inclusionPromise"]


def of_another_kind(document: dict[str, Any]) -> None:
    entry(document)["kindVersion"] = {"kind": "intoto", "version": "0.0.2"}


SENTENCES: dict[Callable[[dict[str, Any]], None], str] = {
    change_statement: "its attestation is not valid: DSSE: invalid signature",
    change_subject: "its attestation is not valid: DSSE: invalid signature",
    change_signature: "its attestation is not valid: DSSE: invalid signature",
    change_promise: "invalid log entry: SET: invalid inclusion promise: ",
    change_time: "invalid log entry: SET: invalid inclusion promise: ",
    change_index: "invalid log entry: SET: invalid inclusion promise: ",
    change_proof: "invalid log entry: inclusion proof contains invalid root hash: ",
    shorten_proof: "invalid log entry: inclusion proof has wrong size: ",
    change_place: "invalid log entry: inclusion proof ",
    change_root: "invalid log entry: inclusion proof contains invalid root hash: ",
    change_checkpoint: "invalid log entry: checkpoint: invalid signature",
    change_hint: "invalid log entry: checkpoint: Signature not found for log ID ",
    of_another_log: "invalid log entry: SET: invalid inclusion promise: ",
    without_promise: "bundle must contain an inclusion promise or signed timestamp(s)",
    of_another_kind: "Integrated time only supported for dsse/hashedrekord 0.0.1 types",
}


@pytest.mark.parametrize("change", SENTENCES, ids=lambda change: change.__name__)
def test_what_was_tampered_with_is_refused_by_its_name(
    sigstore: Sigstore, change: Callable[[dict[str, Any]], None]
) -> None:
    reason = refused_by_all(changed(one(sigstore), change), sigstore)
    assert SENTENCES[change] in reason


def test_the_certificate_of_another_key_is_refused(sigstore: Sigstore) -> None:
    reason = refused_by_all(with_other(sigstore, "certificate"), sigstore)
    assert reason == "its attestation is not valid: DSSE: invalid signature"


def test_a_signature_that_is_none_of_the_key_is_refused(sigstore: Sigstore) -> None:
    def change(document: dict[str, Any]) -> None:
        change_statement(document)
        change_signature(document)

    reason = refused_by_all(changed(one(sigstore), change), sigstore)
    assert reason == "its attestation is not valid: DSSE: invalid signature"


@pytest.mark.parametrize("note", ["\n", "origin\n", "origin\nmany\nAA==\n", "origin\n3\n?\n"])
def test_a_checkpoint_that_says_nothing_is_refused(sigstore: Sigstore, note: str) -> None:
    """Even if the log has signed it."""
    signature = sigstore.log.log_id[:4] + sigstore.log._sign(note.encode())
    lines = (
        f"\N{EM DASH} 127.0.0.1 ?\n\N{EM DASH} 127.0.0.1 {base64.b64encode(signature).decode()}\n"
    )

    def change(document: dict[str, Any]) -> None:
        entry(document)["inclusionProof"]["checkpoint"]["envelope"] = f"{note}\n{lines}"

    assert "invalid log entry: " in refused_by_all(changed(one(sigstore), change), sigstore)


def test_the_entry_of_another_statement_is_refused(sigstore: Sigstore) -> None:
    """Both are sound, and in the log. https://nvd.nist.gov/vuln/detail/CVE-2022-36056"""
    reason = refused_by_all(with_other(sigstore, "tlogEntries"), sigstore)
    assert reason == "its attestation is not valid: log entry payload hash does not match bundle"


def test_what_another_instance_has_certified_is_refused(
    sigstore: Sigstore, other: Sigstore
) -> None:
    bundle = one(sigstore)
    reason = refused_by_all(bundle, sigstore, by=other)
    assert reason.startswith(FOREIGN)
    ours, theirs = trust(sigstore), trust(other)
    for name, sentence in {
        "tlogs": "invalid log entry: ",
        "ctlogs": "failed to verify SCT on signing certificate: ",
        "certificate_authorities": FOREIGN,
    }.items():
        mixed = ours.model_copy(update={name: getattr(theirs, name)})
        assert sentence in refusal(bundle, mixed)


def respell_time(document: dict[str, Any]) -> None:
    """As the client reads it too."""
    entry(document)["integrated_time"] = entry(document).pop("integratedTime")


@pytest.mark.parametrize("change", [lambda document: None, respell_time])
def test_keys_are_trusted_in_their_time_alone(
    sigstore: Sigstore, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    """R40"""
    bundle, file = changed(one(sigstore), change), tmp_path / "past.json"
    check(bundle, trust(sigstore), ISSUER)
    for name, sentence in {
        "tlogs": "trusted root contains no transparency log instances",
        "ctlogs": "CTFE keys not found in trusted root",
        "certificateAuthorities": "Fulcio certificates not found in trusted root",
    }.items():
        past = sigstore.root
        key = past[name][0]
        key.get("publicKey", key)["validFor"]["end"] = "2026-01-02T00:00:00.999Z"
        file.write_text(json.dumps(past))
        trusted = load_keys(file, scratch=None, tell=pytest.fail)
        assert sentence in refusal(bundle, trusted)


def test_a_time_that_no_calendar_has_is_refused(sigstore: Sigstore) -> None:
    """R40: it ended the check of all files."""

    def change(document: dict[str, Any]) -> None:
        entry(document)["integratedTime"] = str(10**17)

    assert "is not valid" in refusal(changed(one(sigstore), change), trust(sigstore))


def resigned(
    by: Authority,
    change: Callable[[x509.Extension[Any]], list[tuple[Any, bool]]],
    *,
    logged: bool = False,
) -> None:
    """From now on it makes certificates with other extensions, which its log promises to show where
    they are `logged`.
    """
    original = by._leaf

    def leaf(key: ec.EllipticCurvePublicKey, claims: dict[str, Any]) -> x509.Certificate:
        made = original(key, claims)
        builder = (
            x509.CertificateBuilder()
            .subject_name(made.subject)
            .issuer_name(made.issuer)
            .public_key(key)
            .serial_number(made.serial_number)
            .not_valid_before(made.not_valid_before_utc)
            .not_valid_after(made.not_valid_after_utc)
        )
        for extension in made.extensions:
            for value, critical in change(extension):
                if not (logged and _is_promise(value)):
                    builder = builder.add_extension(value, critical=critical)
        if logged:
            precertificate = builder.sign(by._key, hashes.SHA384()).tbs_certificate_bytes
            oid = x509.PrecertificateSignedCertificateTimestamps.oid
            promises = x509.UnrecognizedExtension(oid, by._promised(precertificate))
            builder = builder.add_extension(promises, critical=False)
        return builder.sign(by._key, hashes.SHA384())

    by._leaf = leaf  # type: ignore[method-assign]


def _is_promise(value: x509.ExtensionType) -> bool:
    return isinstance(value, x509.PrecertificateSignedCertificateTimestamps)


def test_a_certificate_that_no_log_has_seen_is_refused(sigstore: Sigstore) -> None:
    def change(extension: x509.Extension[Any]) -> list[tuple[Any, bool]]:
        return [] if _is_promise(extension.value) else [(extension.value, extension.critical)]

    resigned(sigstore.authority, change)
    reason = refused_by_all(one(sigstore), sigstore)
    assert "failed to verify SCT on signing certificate: " in reason


def test_the_timestamp_of_another_certificate_is_refused(sigstore: Sigstore) -> None:
    """What the log has promised is about all that the certificate says."""

    def change(extension: x509.Extension[Any]) -> list[tuple[Any, bool]]:
        kept = [(extension.value, extension.critical)]
        if isinstance(extension.value, x509.KeyUsage):
            kept.append((x509.BasicConstraints(ca=False, path_length=None), True))
        return kept

    resigned(sigstore.authority, change)
    reason = refused_by_all(one(sigstore), sigstore)
    assert "failed to verify SCT on signing certificate: " in reason


def test_a_certificate_for_something_else_is_refused(sigstore: Sigstore) -> None:
    def change(extension: x509.Extension[Any]) -> list[tuple[Any, bool]]:
        if isinstance(extension.value, x509.ExtendedKeyUsage):
            return [(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), False)]
        return [(extension.value, extension.critical)]

    resigned(sigstore.authority, change, logged=True)
    reason = refused_by_all(one(sigstore), sigstore)
    assert reason.endswith("Extended usage does not contain `code signing`")


def test_a_certificate_for_nothing_is_refused(sigstore: Sigstore) -> None:
    def change(extension: x509.Extension[Any]) -> list[tuple[Any, bool]]:
        dropped = isinstance(extension.value, x509.ExtendedKeyUsage)
        return [] if dropped else [(extension.value, extension.critical)]

    resigned(sigstore.authority, change, logged=True)
    bundle = one(sigstore)
    with pytest.raises((OfficialError, x509.ExtensionNotFound)):
        official.python(sigstore, bundle)
    assert "ExtendedKeyUsage'> extension was found" in refusal(bundle, trust(sigstore))


def test_the_certificate_of_a_person_is_refused(sigstore: Sigstore) -> None:
    """Of whom the authority knows no repository."""

    def change(extension: x509.Extension[Any]) -> list[tuple[Any, bool]]:
        of_a_job = extension.oid.dotted_string == "1.3.6.1.4.1.57264.1.12"
        return [] if of_a_job else [(extension.value, extension.critical)]

    resigned(sigstore.authority, change)
    with pytest.raises(Rejected, match="not a job's: its certificate names no repository: it is"):
        one(sigstore)
    certificate = sigstore.authority.issued[-1].public_bytes(Encoding.DER)
    with pytest.raises(NotVerified, match="names no repository: it is not that of a workflow"):
        Claims.of(certificate)


@pytest.mark.parametrize("shift_s", [-3_600, 3_600])
def test_an_entry_from_when_the_certificate_was_not_valid_is_refused(
    sigstore: Sigstore, shift_s: int
) -> None:
    sigstore.log.shift_s = shift_s
    reason = refused_by_all(entered(sigstore), sigstore)
    assert reason.startswith(FOREIGN)
    assert "cert is not valid at validation time" in reason


def test_an_old_signature_stays_valid(sigstore: Sigstore) -> None:
    """The certificate has expired since; it had not when the log took the entry."""
    sigstore.authority.age_s = 12 * 3_600
    sigstore.log.shift_s = 60 - 12 * 3_600
    bundle = entered(sigstore)
    (certificate,) = sigstore.authority.issued
    assert certificate.not_valid_after_utc < datetime.now(UTC) - timedelta(hours=11)
    assert check(bundle, trust(sigstore), ISSUER).repository == "https://github.com/acme/widgets"
    assert official.python(sigstore, bundle) == bundle.payload


def test_a_job_of_another_repository_is_refused(sigstore: Sigstore) -> None:
    sigstore.become("evil/widgets")
    bundle = one(sigstore)
    with pytest.raises(OfficialError):
        official.python(sigstore, bundle)
    assert check(bundle, trust(sigstore), ISSUER).repository == "https://github.com/evil/widgets"
    with pytest.raises(NotVerified, match=r"signed in evil/widgets, not in acme/widgets"):
        signers(sigstore).verify(bundle)


def test_another_workflow_is_refused_where_one_is_named(sigstore: Sigstore) -> None:
    sigstore.become("acme/widgets", "nightly.yml")
    bundle = one(sigstore)
    claims = signers(sigstore).verify(bundle).claims
    with pytest.raises(NotVerified, match=r"nightly\.yml, not by release\.yml"):
        signers(sigstore, workflow="release.yml").verify(bundle)
    assert (claims.ref, claims.event) == ("refs/heads/main", "push")


def test_an_identity_of_another_issuer_is_refused(
    sigstore: Sigstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = authority._said
    elsewhere = {8: "https://evil.example"}
    monkeypatch.setattr(authority, "_said", lambda claims: {**said(claims), **elsewhere})
    assert "https://evil.example" in refused_by_all(one(sigstore), sigstore)


def artifact(tmp_path: Path, content: bytes = CONTENT, name: str = WHEEL) -> Artifact:
    digest = hashlib.sha256(content).hexdigest()
    return Artifact(path=tmp_path / name, size=len(content), digests={"sha256": digest})


def test_an_attestation_is_ours_where_all_of_it_fits(sigstore: Sigstore, tmp_path: Path) -> None:
    """R45: a resumed run sends what an earlier one has signed, and nothing else."""
    bundle = one(sigstore)
    job = Job.from_token(sigstore.issuer.token("sigstore"), server=SERVER)
    assert is_ours(bundle, artifact(tmp_path), job)
    assert not is_ours(bundle, artifact(tmp_path, b"rebuilt"), job)
    assert not is_ours(bundle, artifact(tmp_path, name="other-1.0.0.tar.gz"), job)
    for change in (change_statement, change_signature):
        assert not is_ours(changed(bundle, change), artifact(tmp_path), job)
    elsewhere = replace(job, repository="acme/fork")
    assert not is_ours(bundle, artifact(tmp_path), elsewhere)
    workflow = ".github/workflows/nightly.yml"
    assert not is_ours(bundle, artifact(tmp_path), replace(job, workflow_path=workflow))
    assert is_ours(bundle, artifact(tmp_path), replace(job, sha="b" * 40))
    told = json.loads(about(CONTENT))
    told["subject"].append({**told["subject"][0], "name": "other-1.0.0.tar.gz"})
    (several,) = signed(sigstore, [canonical(told)])
    assert signers(sigstore).verify(several).covers(WHEEL, artifact(tmp_path).digests)
    assert not is_ours(several, artifact(tmp_path), job)


@pytest.mark.parametrize("seed", range(4))
def test_no_damage_changes_what_is_believed(sigstore: Sigstore, seed: int) -> None:
    """A character anywhere: it is refused in one sentence, or means the same as before."""
    bundle, trusted, rng = one(sigstore), trust(sigstore), random.Random(seed)
    believed, text = check(bundle, trusted, ISSUER), bundle.text.decode()
    refused = 0
    for _ in range(250):
        at = rng.randrange(len(text))
        damaged = f"{text[:at]}{rng.choice(LETTERS)}{text[at + 1 :]}".encode()
        try:
            parsed = Bundle.parse(damaged)
        except ValueError:
            refused += 1
            continue
        try:
            assert check(parsed, trusted, ISSUER) == believed
        except NotVerified:
            refused += 1
    assert refused > 200
