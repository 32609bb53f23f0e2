"""What is signed here is accepted by the verifiers that registries and their users run, and what
was tampered with is not.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import zipfile
from typing import TYPE_CHECKING, Any

import pypi_attestations
import pytest
from sigstore.dsse import DigestSet, StatementBuilder
from sigstore.dsse import Subject as OfficialSubject
from sigstore.errors import Error as SigstoreError
from sigstore.oidc import IdentityToken

from provenance import official, signing
from provenance.shapes import (
    change_promise,
    change_proof,
    change_signature,
    change_time,
    entry,
    flipped,
    shape,
)
from releasekit.provenance.bundle import Bundle
from releasekit.provenance.certificate import describe_publisher
from releasekit.provenance.job import Job
from releasekit.provenance.statement import PUBLISH, SLSA, Subject, publish, slsa

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from provenance.sigstore_double import Sigstore

TARBALL = b"a tarball of npm"
REFUSED = (SigstoreError, pypi_attestations.AttestationError, ValueError)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / signing.WHEEL
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("widgets/__init__.py", "")
    return path


def provenance(sigstore: Sigstore, *subjects: Subject) -> bytes:
    return slsa(subjects, Job.from_token(sigstore.issuer.token("x"), server=signing.SERVER))


def npm_subject() -> Subject:
    digest = hashlib.sha512(TARBALL).hexdigest()
    return Subject(name="pkg:npm/%40acme/widgets@1.0.0", digests={"sha512": digest})


def test_pypi_takes_what_is_signed(sigstore: Sigstore, wheel: Path) -> None:
    """R14: the certificate, the log's proof and promise, the signature, and the file's digest."""
    (bundle,) = signing.signed(sigstore, [signing.about(wheel.read_bytes())])
    assert official.pypi(sigstore, bundle.pep740(), wheel) == PUBLISH
    assert official.python(sigstore, bundle) == bundle.payload


def test_pypi_refuses_another_file_and_another_repository(sigstore: Sigstore, wheel: Path) -> None:
    (bundle,) = signing.signed(sigstore, [signing.about(b"another file")])
    with pytest.raises(pypi_attestations.VerificationError, match="digest"):
        official.pypi(sigstore, bundle.pep740(), wheel)
    (bundle,) = signing.signed(sigstore, [signing.about(wheel.read_bytes())])
    with pytest.raises(pypi_attestations.VerificationError):
        official.pypi(sigstore, bundle.pep740(), wheel, repository="evil/widgets")
    sigstore.become("evil/widgets")
    (bundle,) = signing.signed(sigstore, [signing.about(wheel.read_bytes())])
    with pytest.raises(pypi_attestations.VerificationError):
        official.pypi(sigstore, bundle.pep740(), wheel)


def test_npm_takes_what_is_signed(sigstore: Sigstore) -> None:
    """With the very verifier that `npm audit signatures` runs."""
    (bundle,) = signing.signed(sigstore, [provenance(sigstore, npm_subject())])
    done = official.javascript(sigstore, bundle)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == (
        "https://github.com/acme/widgets/.github/workflows/release.yml@refs/heads/main"
    )
    assert official.python(sigstore, bundle) == bundle.payload
    of_another = "https://github.com/evil/widgets/.github/workflows/release.yml@refs/heads/main"
    assert official.javascript(sigstore, bundle, workflow=of_another).returncode == 1


def test_a_statement_about_a_whole_release_is_taken(sigstore: Sigstore) -> None:
    subjects = [Subject(name=f"f{n}.whl", digests={"sha256": f"{n:064x}"}) for n in range(1024)]
    (bundle,) = signing.signed(sigstore, [provenance(sigstore, *subjects)])
    assert official.python(sigstore, bundle) == bundle.payload
    assert official.javascript(sigstore, bundle).returncode == 0
    assert len(bundle.subjects) == 1024


def test_every_entry_of_a_log_that_grows_is_proved(sigstore: Sigstore, wheel: Path) -> None:
    """Proofs of all shapes: the tree of the log is seldom a full one."""
    statements = [signing.about(wheel.read_bytes() + bytes([n])) for n in range(9)]
    for number, bundle in enumerate(signing.signed(sigstore, statements)):
        assert bundle.log_index == number
        assert official.python(sigstore, bundle) == statements[number]


def test_it_has_the_shape_of_what_pypis_own_signer_makes(sigstore: Sigstore, wheel: Path) -> None:
    """Both are the second entry of a log, so that both have a proof of some length."""
    ours = signing.signed(sigstore, [signing.about(b"x"), signing.about(wheel.read_bytes())])[1]
    sigstore.log.entries.clear()
    sigstore.log._roots.clear()
    token = IdentityToken(sigstore.issuer.token("sigstore"))
    distribution = pypi_attestations.Distribution.from_file(wheel)
    with official.context(sigstore).signer(token) as signer:
        pypi_attestations.Attestation.sign(signer, pypi_attestations.Distribution.from_file(wheel))
        theirs = pypi_attestations.Attestation.sign(signer, distribution)
    document = json.loads(theirs.model_dump_json())
    assert shape(document) == shape(ours.pep740())
    statement = json.loads(base64.b64decode(document["envelope"]["statement"]))
    assert statement == ours.statement
    assert official.pypi(sigstore, document, wheel) == PUBLISH


def test_it_has_the_shape_of_what_sigstores_own_signer_makes(sigstore: Sigstore) -> None:
    """The statement that npm makes of a tarball."""
    first, second = provenance(sigstore, npm_subject()), signing.about(b"x")
    ours = signing.signed(sigstore, [second, first])[1]
    sigstore.log.entries.clear()
    sigstore.log._roots.clear()
    subject = npm_subject()
    built = (
        StatementBuilder()
        .subjects(
            [OfficialSubject(name=subject.name, digest=DigestSet.model_validate(subject.digests))]
        )
        .predicate_type(SLSA)
        .predicate(ours.statement["predicate"])
        .build()
    )
    token = IdentityToken(sigstore.issuer.token("sigstore"))
    with official.context(sigstore).signer(token) as signer:
        signer.sign_dsse(built)
        theirs = json.loads(signer.sign_dsse(built).to_json())
    timestamps = theirs["verificationMaterial"]["timestampVerificationData"]
    assert timestamps.pop("rfc3161Timestamps") == []  # npm leaves out what is empty
    assert shape(theirs) == shape(dict(ours.document))
    read = Bundle.parse(json.dumps(theirs).encode())
    assert read.statement == ours.statement
    assert read.subjects == (subject,)


def change_payload(document: dict[str, Any]) -> None:
    payload = base64.b64decode(document["dsseEnvelope"]["payload"])
    other = publish(Subject(name="evil-1.0.0.tar.gz", digests={"sha256": "0" * 64}))
    assert payload != other
    document["dsseEnvelope"]["payload"] = base64.b64encode(other).decode()


def change_certificate(document: dict[str, Any]) -> None:
    certificate = document["verificationMaterial"]["certificate"]
    certificate["rawBytes"] = flipped(certificate["rawBytes"])


def change_body(document: dict[str, Any]) -> None:
    entry(document)["canonicalizedBody"] = flipped(entry(document)["canonicalizedBody"])


@pytest.mark.parametrize(
    "change",
    [
        change_payload,
        change_signature,
        change_certificate,
        change_promise,
        change_time,
        change_proof,
        change_body,
    ],
)
def test_what_was_tampered_with_is_refused_by_all(
    sigstore: Sigstore, wheel: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    statement = signing.about(wheel.read_bytes())
    sound = signing.signed(sigstore, [signing.about(b"x"), statement])[1]
    document = copy.deepcopy(dict(sound.document))
    change(document)
    tampered = Bundle.parse(json.dumps(document).encode())
    assert official.javascript(sigstore, sound).returncode == 0
    assert official.javascript(sigstore, tampered).returncode == 1
    with pytest.raises(REFUSED):
        official.python(sigstore, tampered)
    with pytest.raises(REFUSED):
        official.pypi(sigstore, tampered.pep740(), wheel)


def test_the_publisher_is_who_pypi_would_show(sigstore: Sigstore) -> None:
    sigstore.become("acme/gadgets", "publish.yml")
    (bundle,) = signing.signed(sigstore, [signing.about(b"x")])
    publisher = pypi_attestations.GitHubPublisher.model_validate(
        describe_publisher(bundle.certificate)
    )
    assert publisher == pypi_attestations.GitHubPublisher(
        repository="acme/gadgets", workflow="publish.yml"
    )
