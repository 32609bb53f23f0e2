"""What is signed in a job of gitlab.com, judged by those who look at it: npm's own code on both
sides, PyPI's verifier, Sigstore's client, and `releasekit verify`.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pypi_attestations
import pytest

from provenance import official, signing, targets
from provenance.oidc import GITLAB, ISSUER
from provenance.test_npm_itself import PURL, TARBALL, installed, node, subject
from releasekit.provenance.bundle import Bundle
from releasekit.provenance.certificate import NotVerified, describe_publisher, publisher_of
from releasekit.provenance.statement import EARLIER_SLSA, SLSA, Subject, npm_provenance, slsa
from releasekit.provenance.verifier import check, load_keys
from releasekit.provenance.verify_files import Signers

if TYPE_CHECKING:
    from pathlib import Path

    from provenance.sigstore_double import Sigstore

PROJECT = "acme/tools/widgets"
PAGE = f"{GITLAB}/{PROJECT}"
WRITTEN = ("sample-user", "example.com", "Say what only we may read", "saas-linux")
_SIGN = """
const [npm, purl, sha512, url, identityToken] = process.argv.slice(1)
const { generateProvenance } = require(`${npm}/node_modules/libnpmpublish/lib/provenance.js`)
const options = { fulcioURL: url, rekorURL: url, identityToken }
generateProvenance([{ name: purl, digest: { sha512 } }], options)
  .then(bundle => console.log(JSON.stringify(bundle)))
"""


@pytest.fixture
def sigstore(sigstore: Sigstore) -> Sigstore:
    sigstore.become_gitlab()
    return sigstore


def signed(sigstore: Sigstore, statement: bytes) -> Bundle:
    (bundle,) = signing.signed(sigstore, [statement])
    return bundle


def signers(
    sigstore: Sigstore, repository: str = PAGE, issuer: str = GITLAB, **changes: str
) -> Signers:
    keys = load_keys(sigstore.trusted_root, scratch=None, tell=pytest.fail)
    return Signers(partial(check, keys=keys, issuer=issuer), repository, **changes)


def test_npm_signs_the_same_but_for_what_people_write(sigstore: Sigstore) -> None:
    """R14: the registry compares parts of the statement with the package and the certificate."""
    ours = signed(sigstore, npm_provenance(subject(), targets.job(sigstore)))
    token = sigstore.issuer.token("sigstore")
    digest = subject().digests["sha512"]
    done = node(_SIGN, PURL, digest, sigstore.url, token, **sigstore.environment)
    assert done.returncode == 0, done.stderr
    theirs = Bundle.parse(done.stdout.encode())
    assert theirs.predicate_type == ours.predicate_type == EARLIER_SLSA
    told, wanted = _predicate(ours), _predicate(theirs)
    parameters = told["invocation"].pop("parameters")
    # It also stands below `environment`, where npm has it too.
    del parameters["CI_RUNNER_EXECUTABLE_ARCH"]
    assert parameters.items() <= wanted["invocation"].pop("parameters").items()
    assert {"CI_JOB_NAME", "CI_PIPELINE_URL", "CI_PROJECT_VISIBILITY"} <= parameters.keys()
    # Of a runner, this is what its owner calls it.
    del wanted["invocation"]["environment"]["name"]
    # Not all are told, and it says so.
    assert told["metadata"].pop("completeness")["parameters"] is False
    del wanted["metadata"]["completeness"]
    assert told == wanted
    assert ours.statement["_type"] == theirs.statement["_type"]
    assert not any(word in ours.payload.decode() for word in WRITTEN)


def _predicate(bundle: Bundle) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bundle.payload)["predicate"]
    return found


def test_npm_installs_what_is_signed(sigstore: Sigstore, tmp_path: Path) -> None:
    bundle = signed(sigstore, npm_provenance(subject(), targets.job(sigstore)))
    done = installed(sigstore, bundle, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["provenance"] == {"predicateType": EARLIER_SLSA}
    refused = installed(sigstore, bundle, tmp_path / "other", TARBALL[::-1])
    assert refused.stderr.startswith("EATTESTATIONSUBJECT")


def test_pypi_takes_what_is_signed(sigstore: Sigstore, tmp_path: Path) -> None:
    """R14: its publisher is a project in groups, and the CI file."""
    wheel = tmp_path / signing.WHEEL
    wheel.write_bytes(b"wheel")
    bundle = signed(sigstore, signing.about(b"wheel"))
    assert official.pypi(sigstore, bundle.pep740(), wheel, repository=PROJECT)
    with pytest.raises(pypi_attestations.VerificationError):
        official.pypi(sigstore, bundle.pep740(), wheel, repository="tools/widgets")
    publisher = pypi_attestations.GitLabPublisher.model_validate(
        describe_publisher(bundle.certificate)
    )
    assert (publisher.repository, publisher.workflow_filepath) == (PROJECT, ".gitlab-ci.yml")


def test_sigstore_and_npm_accept_the_release_statement(sigstore: Sigstore) -> None:
    files = [Subject(name=name, digests={"sha256": "0" * 64}) for name in ("a.crate", "b.jar")]
    bundle = signed(sigstore, slsa(files, targets.job(sigstore)))
    assert official.python(sigstore, bundle, repository=PROJECT) == bundle.payload
    done = official.javascript(sigstore, bundle)
    assert done.stdout.strip() == f"{PAGE}//.gitlab-ci.yml@refs/heads/main", done.stderr
    assert bundle.predicate_type == SLSA
    assert not any(word in bundle.payload.decode() for word in WRITTEN)
    definition = _predicate(bundle)["buildDefinition"]
    assert definition["buildType"].startswith("https://docs.gitlab.com/")
    assert definition["externalParameters"]["source"] == PAGE
    assert definition["externalParameters"]["entryPoint"] == "publish"
    assert definition["resolvedDependencies"] == [{"uri": PAGE, "digest": {"gitCommit": "a" * 40}}]


def test_files_of_a_project_are_verified(sigstore: Sigstore) -> None:
    """R14: by its page, its CI file, the ref and the event."""
    bundle = signed(sigstore, signing.about(b"wheel"))
    claims = signers(sigstore).verify(bundle).claims
    assert (claims.repository, claims.workflow) == (PAGE, ".gitlab-ci.yml")
    assert publisher_of(bundle.certificate) == claims
    named = {"workflow": ".gitlab-ci.yml", "ref": "refs/heads/main", "event": "push"}
    upper = signers(sigstore, f"{GITLAB}/ACME/tools/Widgets", **named).verify(bundle)
    assert upper.claims == claims


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"repository": f"{GITLAB}/tools/widgets"}, "it was signed in https://gitlab.com/acme/"),
        ({"repository": f"{PAGE}/more"}, "it was signed in"),
        ({"repository": "tools/widgets"}, "it was signed in"),
        ({"repository": PROJECT.replace("acme/", "")}, "it was signed in"),
        ({"workflow": "ci.yml"}, "signed by the workflow .gitlab-ci.yml, not by ci.yml"),
        ({"workflow": "gitlab-ci.yml"}, "signed by the workflow"),
        ({"ref": "refs/tags/main"}, "it was signed at refs/heads/main"),
        # What a certificate says of a project counts from its GitLab alone.
        ({"issuer": ISSUER}, "not valid"),
        ({"issuer": "https://gitlab.archlinux.org"}, "not valid"),
    ],
)
def test_what_another_project_has_signed_is_refused(
    sigstore: Sigstore, asked: dict[str, str], says: str
) -> None:
    bundle = signed(sigstore, signing.about(b"wheel"))
    with pytest.raises(NotVerified, match=says):
        signers(sigstore, **asked).verify(bundle)


def test_a_merge_request_has_to_be_meant(sigstore: Sigstore) -> None:
    """Its certificate has the name of its branch, which may be that of a fork."""
    sigstore.claims["pipeline_source"] = "merge_request_event"
    bundle = signed(sigstore, signing.about(b"wheel"))
    for ref in ("", "refs/heads/main"):
        with pytest.raises(NotVerified, match="write --event merge_request_event if that is meant"):
            signers(sigstore, ref=ref).verify(bundle)
    meant = signers(sigstore, event="merge_request_event").verify(bundle)
    assert meant.claims.event == "merge_request_event"
