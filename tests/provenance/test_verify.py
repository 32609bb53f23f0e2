"""`releasekit verify`, as whoever gets packages runs it; what is signed comes of the doubles."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest
from sigstore._utils import read_embedded
from sigstore.models import ClientTrustConfig
from sigstore_models.trustroot.v1 import TrustedRoot as Keys

from harness.http_server import Handler, serving
from integration.servers import static_server
from provenance import sigstore_double, tuf
from provenance.signing import SERVER, WHEEL, about, signed
from provenance.test_directories import npm_package, publish, python_package
from releasekit.__main__ import main
from releasekit.errors import ConfigError
from releasekit.provenance import verifier, verify_files
from releasekit.provenance.certificate import describe_publisher
from releasekit.provenance.job import Job
from releasekit.provenance.statement import SLSA, Subject, canonical, slsa
from releasekit.provenance.verify_files import find_attestations, parse_bundles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provenance.sigstore_double import Sigstore
    from releasekit.provenance.bundle import Bundle

CONTENT = b"what was built"
SDIST = "widgets-1.0.0.tar.gz"
TARBALL = "core-1.0.0.tgz"
ROOT = {
    "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    **dict.fromkeys(("tlogs", "ctlogs", "certificateAuthorities"), ()),
}


@dataclass
class Verifying:
    """A person with a directory of files, who trusts the double."""

    sigstore: Sigstore
    place: Path
    capsys: pytest.CaptureFixture[str]
    lines: list[str] = field(default_factory=list)
    error: str = ""

    def put(self, name: str, content: bytes = CONTENT) -> Path:
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def attested(self, name: str = WHEEL, content: bytes = CONTENT) -> Path:
        path = self.put(name, content)
        (bundle,) = signed(self.sigstore, [about(content, name)])
        self.put(f"{name}.sigstore.json", bundle.text)
        return path

    def statement(self, *names: str, content: bytes = CONTENT) -> Bundle:
        """About all files of a release."""
        sha256 = {"sha256": hashlib.sha256(content).hexdigest()}
        job = Job.from_token(self.sigstore.issuer.token("sigstore"), server=SERVER)
        subjects = [Subject(name=name, digests=sha256) for name in names]
        (bundle,) = signed(self.sigstore, [slsa(subjects, job)])
        return bundle

    def verify(self, *what: object, repository: str = "acme/widgets", public: bool = False) -> int:
        """Where it is `public`, the trusted root of the double is not named."""
        self.capsys.readouterr()
        private = [] if public else ["--trust-config", str(self.sigstore.trusted_root)]
        words = ["verify", *map(str, what), *private]
        code = main([*words, *(["--repository", repository] if repository else [])])
        printed = self.capsys.readouterr()
        self.lines, self.error = printed.out.splitlines(), printed.err
        assert "Traceback" not in self.error
        return code

    @property
    def failures(self) -> list[str]:
        return [line.removesuffix(" [RK-118]") for line in self.lines if line.startswith("FAILED ")]


@pytest.fixture
def verifying(
    sigstore: Sigstore,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Verifying:
    place = tmp_path / "downloads"
    place.mkdir()
    monkeypatch.chdir(place)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"):
        monkeypatch.delenv(name, raising=False)
    return Verifying(sigstore, place, capsys)


def test_a_file_with_its_bundle_beside_it_is_verified(verifying: Verifying) -> None:
    path = verifying.attested()
    assert verifying.verify(path) == 0
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    commit = verifying.sigstore.claims["sha"]
    assert verifying.lines == [
        (
            f"ok {WHEEL} sha256:{sha256} acme/widgets .github/workflows/release.yml "
            f"refs/heads/main push {commit}, log entry 0"
        ),
        "1 of 1 verified",
    ]
    assert verifying.verify("--workflow", "release.yml", WHEEL, path) == 0
    assert len(verifying.lines) == 3


def test_files_at_hand_take_no_network(
    verifying: Verifying, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = verifying.attested()
    asked = len(verifying.sigstore.requests)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert verifying.verify(path) == 0
    assert len(verifying.sigstore.requests) == asked


def test_without_the_extra_one_line_says_what_to_install(
    verifying: Verifying, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = verifying.attested()
    monkeypatch.delitem(sys.modules, "releasekit.provenance.verifier")
    monkeypatch.setitem(sys.modules, "sigstore.errors", None)
    assert verifying.verify(path) == 2
    (error,) = [line for line in verifying.error.splitlines() if line.startswith("error: ")]
    assert "not installed: pip install 'releasekit-action[verify]' [RK-213]" in error


@pytest.mark.parametrize("offered", ["its own", "a stranger's", "none"])
def test_keys_of_the_public_instance_are_refreshed_for_what_is_served(
    verifying: Verifying, registry: Served, monkeypatch: pytest.MonkeyPatch, offered: str
) -> None:
    """For files at hand, those count that came with the client, to which the double is strange."""
    keys = verifying.sigstore.trusted_root.read_bytes()
    files = tuf.served(keys)
    embedded = {
        "root.json": (files if offered == "its own" else tuf.served(keys))["root.json"],
        "trusted_root.json": read_embedded("trusted_root.json", verifier._TUF),
    }
    monkeypatch.setattr(verifier, "read_embedded", lambda name, _: embedded[name])
    monkeypatch.setattr(verifier, "_TUF", f"{registry.url}/tuf")
    if offered != "none":
        registry.pages.update({f"/tuf/{name}": data for name, data in files.items()})
    path = verifying.attested()
    assert verifying.verify(path, public=True) == 1
    assert registry.asked == []
    registry.pages[f"/{WHEEL}"] = CONTENT
    beside = verifying.place / f"{WHEEL}.sigstore.json"
    registry.pages[f"/{WHEEL}.provenance"] = beside.read_bytes()
    is_fresh = offered == "its own"
    assert verifying.verify(f"{registry.url}/{WHEEL}", public=True) == (0 if is_fresh else 1)
    told = "Sigstore's keys could not be refreshed; those of the installed client count"
    assert (told in verifying.lines) is not is_fresh
    assert ("an authority that is trusted here" in "".join(verifying.failures)) is not is_fresh


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (b"{", "trust.json: is not JSON: "),
        (b"[]", "trust.json: the document is []; it has to be an object"),
        (b"{}", "trust.json: mediaType: Field required"),
        (canonical({**ROOT, "mediaType": "text/plain"}), "trust.json: mediaType: Input should be"),
        (canonical(ROOT), "trust.json: Fulcio certificates not found in trusted root"),
    ],
)
def test_what_is_no_trusted_root_is_named_in_one_line(
    verifying: Verifying, document: bytes, says: str
) -> None:
    path = verifying.put("trust.json", document)
    assert verifying.verify("x", "--trust-config", path, public=True) == 2
    (error,) = [line for line in verifying.error.splitlines() if line.startswith("error: ")]
    assert says in error
    assert "; write the path of a trusted root of Sigstore" in error


def provenance_object(*bundles: Bundle) -> dict[str, Any]:
    """As Python indexes show it. https://docs.pypi.org/api/integrity/"""
    group = {
        "publisher": describe_publisher(bundles[0].certificate),
        "attestations": [each.pep740() for each in bundles],
    }
    return {"version": 1, "attestation_bundles": [group]}


def npm_list(*bundles: Bundle) -> dict[str, Any]:
    """As npm's registry shows it, with what it has signed itself first."""
    own = {
        "predicateType": "https://github.com/npm/attestation/tree/main/specs/publish/v0.1",
        "bundle": {
            "mediaType": "application/vnd.dev.sigstore.bundle+json;version=0.2",
            "verificationMaterial": {"publicKey": {"hint": "SHA256:x"}, "tlogEntries": []},
        },
    }
    theirs = [{"predicateType": SLSA, "bundle": dict(each.document)} for each in bundles]
    return {"attestations": [own, *theirs]}


@pytest.mark.parametrize("suffix", [".publish.attestation", ".provenance", ".sigstore"])
def test_each_form_of_an_attestation_is_read(verifying: Verifying, suffix: str) -> None:
    path = verifying.put(WHEEL)
    (bundle,) = signed(verifying.sigstore, [about(CONTENT)])
    documents = {
        ".publish.attestation": bundle.pep740(),
        ".provenance": provenance_object(bundle, bundle),
        ".sigstore": bundle.document,
    }
    verifying.put(WHEEL + suffix, json.dumps(documents[suffix], indent=2).encode())
    assert verifying.verify(path) == 0
    path.write_bytes(b"another")
    assert verifying.verify(path) == 1
    assert verifying.failures[0].startswith(f"FAILED {WHEEL}: its sha256 is ")


def test_one_that_nobody_has_signed_is_a_failure(verifying: Verifying) -> None:
    path = verifying.put(WHEEL)
    assert verifying.verify(path) == 1
    assert verifying.lines[0] == f"FAILED {WHEEL}: there is no attestation about it [RK-118]"
    assert verifying.lines[1] == "0 of 1 verified"
    assert verifying.lines[2].endswith("/docs/problems.md#rk-118")


def test_a_broken_attestation_is_not_passed_over(verifying: Verifying) -> None:
    """Another one that is sound does not make up for it."""
    path = verifying.attested()
    verifying.put(f"{WHEEL}.provenance", b'{"version": 1')
    assert verifying.verify(path) == 1
    assert f"FAILED {WHEEL}: {WHEEL}.provenance " in verifying.failures[0]
    document = json.loads((verifying.place / f"{WHEEL}.sigstore.json").read_bytes())
    document["dsseEnvelope"]["signatures"][0]["sig"] = "AAAA"
    verifying.put(f"{WHEEL}.provenance", json.dumps(document).encode())
    assert verifying.verify(path) == 1
    assert verifying.failures == [
        f"FAILED {WHEEL}: its attestation is not valid: DSSE: invalid signature"
    ]


def test_names_are_taken_as_people_write_them(verifying: Verifying) -> None:
    """GitHub does not mind capitals, and a line of `verify` has the whole path of a workflow."""
    path = verifying.attested()
    assert verifying.verify(path, repository="ACME/Widgets") == 0
    assert verifying.verify(path, "--workflow", ".github/workflows/release.yml") == 0
    assert verifying.verify(path, "--workflow", ".github/workflows/other.yml") == 1
    assert verifying.failures[0].endswith("release.yml, not by other.yml")


def test_another_repository_and_another_workflow_are_refused(verifying: Verifying) -> None:
    path = verifying.attested()
    assert verifying.verify(path, repository="acme/other") == 1
    assert verifying.failures == [
        f"FAILED {WHEEL}: it was signed in acme/widgets, not in acme/other"
    ]
    assert verifying.verify(path, "--workflow", "other.yml") == 1
    assert "by the workflow .github/workflows/release.yml, not by other.yml" in verifying.lines[0]


def of_pull_request(verifying: Verifying, event: str, ref: str) -> Path:
    """A file that a job signed for a pull request, with the workflow that signs releases."""
    workflow_ref = f"acme/widgets/.github/workflows/release.yml@{ref}"
    verifying.sigstore.claims.update(
        event_name=event, ref=ref, workflow_ref=workflow_ref, job_workflow_ref=workflow_ref
    )
    return verifying.attested()


def test_what_a_pull_request_signed_is_refused_unless_its_ref_is_asked_for(
    verifying: Verifying,
) -> None:
    ref = "refs/pull/7/merge"
    path = of_pull_request(verifying, "pull_request", ref)
    assert verifying.verify(path, "--workflow", "release.yml") == 1
    assert verifying.failures == [
        (
            f"FAILED {WHEEL}: it was signed for a pull request, by the event pull_request at "
            f"{ref}; write --ref {ref} if that is meant"
        )
    ]
    assert verifying.verify(path, "--ref", "refs/heads/main") == 1
    assert verifying.failures == [
        f"FAILED {WHEEL}: it was signed at {ref} (event pull_request), not at refs/heads/main"
    ]
    assert verifying.verify(path, "--ref", ref) == 0
    assert f" .github/workflows/release.yml {ref} pull_request " in verifying.lines[0]
    assert verifying.verify(path, "--event", "pull_request") == 0


def test_a_merged_pull_request_is_one_that_has_to_be_asked_for(verifying: Verifying) -> None:
    """Its ref is then the branch that it was merged into."""
    ref = "refs/heads/main"
    path = of_pull_request(verifying, "pull_request", ref)
    assert verifying.verify(path) == 1
    assert verifying.failures[0].endswith(f"at {ref}; write --ref {ref} if that is meant")
    assert verifying.verify(path, "--ref", ref) == 0


@pytest.mark.parametrize("ref", ["", "refs/heads/main"])
def test_the_ref_of_pull_request_target_says_nothing_of_the_pull_request(
    verifying: Verifying, ref: str
) -> None:
    """It is that of the branch which the pull request, of anybody, is to be merged into."""
    event = "pull_request_target"
    path = of_pull_request(verifying, event, "refs/heads/main")
    asked = ["--ref", ref] if ref else []
    assert verifying.verify(path, *asked) == 1
    assert verifying.failures == [
        (
            f"FAILED {WHEEL}: it was signed for a pull request, by the event {event} at "
            f"refs/heads/main; write --event {event} if that is meant"
        )
    ]
    assert verifying.verify(path, *asked, "--event", "pull_request") == 1
    assert verifying.verify(path, *asked, "--event", event) == 0
    assert f" refs/heads/main {event} " in verifying.lines[0]


@pytest.mark.parametrize("event", ["pull_request_review", "pull_request_review_comment"])
def test_a_review_is_one_of_a_pull_request(verifying: Verifying, event: str) -> None:
    path = of_pull_request(verifying, event, "refs/pull/7/merge")
    assert verifying.verify(path) == 1
    assert verifying.verify(path, "--ref", "refs/pull/7/merge") == 0


def test_a_ref_and_an_event_may_be_asked_for(verifying: Verifying) -> None:
    path = verifying.attested()
    assert verifying.verify(path, "--ref", "refs/heads/main", "--event", "push") == 0
    assert verifying.verify(path, "--ref", "refs/tags/main") == 1
    assert verifying.failures == [
        f"FAILED {WHEEL}: it was signed at refs/heads/main (event push), not at refs/tags/main"
    ]
    assert verifying.verify(path, "--event", "workflow_dispatch") == 1
    assert verifying.failures == [
        f"FAILED {WHEEL}: it was signed by the event push, not by workflow_dispatch"
    ]


def test_a_release_with_a_statement_of_a_pull_request_is_refused(verifying: Verifying) -> None:
    verifying.put(WHEEL)
    sound = verifying.statement(WHEEL)
    verifying.sigstore.claims.update(event_name="pull_request", ref="refs/pull/7/merge")
    other = verifying.statement(WHEEL)
    verifying.put("provenance.jsonl", sound.text + b"\n" + other.text)
    assert verifying.verify(verifying.place) == 1
    assert verifying.failures[0].startswith("FAILED provenance.jsonl:2: it was signed for a pull")


def test_what_a_stranger_has_signed_is_refused(verifying: Verifying, tmp_path: Path) -> None:
    path = verifying.put(WHEEL)
    with sigstore_double.serving(tmp_path / "other") as other:
        (bundle,) = signed(other, [about(CONTENT)])
    verifying.put(f"{WHEEL}.sigstore.json", bundle.text)
    assert verifying.verify(path) == 1
    assert "not issued by an authority that is trusted here" in verifying.failures[0]


def test_the_public_instance_is_trusted_where_no_other_is_named(verifying: Verifying) -> None:
    assert verifying.verify(verifying.attested(), public=True) == 1
    assert "an authority that is trusted here" in verifying.lines[0]
    assert len(verifying.error.splitlines()) == 1  # what runs; the client warns of nothing


def test_what_a_build_leaves_in_the_cache_is_not_believed(
    verifying: Verifying, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R36: it may write there, and Sigstore's client would take its word."""
    keys = verifying.sigstore.trusted_root.read_bytes()
    files = tuf.served(keys)
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
        planted = tmp_path / name / "sigstore-python/tuf" / quote(verifier._TUF, safe="")
        planted.mkdir(parents=True)
        (planted / "trusted_root.json").write_bytes(keys)
        (planted / "root.json").write_bytes(files["root.json"])
    offline = ClientTrustConfig.production(offline=True)
    assert offline._inner.trusted_root == Keys.from_json(keys)  # what the client would believe
    path = verifying.attested()
    assert verifying.verify(path, public=True) == 1
    assert "not issued by an authority that is trusted here" in verifying.failures[0]


@pytest.mark.parametrize("statement", ["provenance.jsonl", "widgets-1.4.0.intoto.jsonl"])
def test_a_whole_release_is_verified_by_its_statement(verifying: Verifying, statement: str) -> None:
    for name in (WHEEL, f"sub/{SDIST}", "extra.jar"):
        verifying.put(name)
    first = verifying.statement(WHEEL, SDIST)
    second = verifying.statement("maven/extra.jar", "gone.crate", content=CONTENT)
    verifying.put(statement, first.text + b"\n" + second.text + b"\n")
    digest = hashlib.sha256(CONTENT).hexdigest()
    verifying.put("SHA256SUMS", f"{digest}  {WHEEL}\n{digest}  {SDIST}\n".encode())
    tagged = f"SHA256 ({WHEEL}) = {digest}\nSHA512 ({SDIST}) = {'0' * 128}\n"
    verifying.put("checksums.txt", tagged.encode())
    assert verifying.verify(verifying.place) == 0
    assert [line.split()[1] for line in verifying.lines[:3]] == [
        "extra.jar",
        f"sub/{SDIST}",
        WHEEL,
    ]
    assert verifying.lines[-1] == "3 of 3 verified"


def test_what_is_not_in_the_directory_is_told(verifying: Verifying) -> None:
    verifying.put(WHEEL)
    bundle = verifying.statement(WHEEL)
    other = verifying.statement("gone.crate", content=b"gone")
    verifying.put("provenance.jsonl", bundle.text + b"\n" + other.text)
    assert verifying.verify(verifying.place) == 0
    assert "not here, and not verified: 1 more of what is signed" in verifying.lines


def test_every_file_of_a_directory_counts(verifying: Verifying) -> None:
    verifying.attested()
    verifying.put(SDIST)
    assert verifying.verify(verifying.place) == 1
    assert verifying.failures == [f"FAILED {SDIST}: there is no attestation about it"]
    assert verifying.lines[2] == "1 of 2 verified"
    verifying.put("provenance.jsonl", verifying.statement("other.tar.gz", content=b"x").text)
    assert verifying.verify(verifying.place) == 1
    assert verifying.failures == [f"FAILED {SDIST}: what was signed is other.tar.gz, not this file"]
    verifying.put("provenance.jsonl", verifying.statement(SDIST, content=b"x").text)
    assert verifying.verify(verifying.place) == 1
    assert verifying.failures == [
        (
            f"FAILED {SDIST}: its sha256 is {hashlib.sha256(CONTENT).hexdigest()}, and "
            f"{hashlib.sha256(b'x').hexdigest()} was signed"
        )
    ]


def test_a_release_statement_that_is_broken_is_a_failure_of_its_own(verifying: Verifying) -> None:
    verifying.attested()
    sound = verifying.statement(SDIST)
    document = json.loads(sound.text)
    document["dsseEnvelope"]["signatures"][0]["sig"] = "AAAA"
    verifying.put("provenance.jsonl", sound.text + b"\n" + json.dumps(document).encode())
    assert verifying.verify(verifying.place) == 1
    assert verifying.failures == [
        "FAILED provenance.jsonl:2: its attestation is not valid: DSSE: invalid signature"
    ]
    verifying.put("provenance.jsonl", b"{}")
    assert verifying.verify(verifying.place) == 1
    assert verifying.failures == [
        "FAILED provenance.jsonl: it is neither a bundle of Sigstore nor a provenance object"
    ]


def test_checksums_have_to_agree(verifying: Verifying) -> None:
    verifying.attested()
    digest = hashlib.sha256(b"other").hexdigest()
    verifying.put("checksums.txt", f"# of the release\n{digest} *{WHEEL}\n".encode())
    assert verifying.verify(verifying.place) == 1
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    assert verifying.failures == [
        f"FAILED {WHEEL}: its sha256 is {sha256}, and checksums.txt says {digest}"
    ]
    verifying.put("checksums.txt", f"{sha256}  {WHEEL}\n{sha256}  gone.jar\n".encode())
    assert verifying.verify(verifying.place) == 1
    assert verifying.failures == ["FAILED gone.jar: it is not there, and checksums.txt names it"]
    verifying.put("checksums.txt", b"nothing of the kind\n")
    assert verifying.verify(verifying.place) == 2
    assert "checksums.txt: line 1 is not a sha256 and a filename; write it" in verifying.error


def test_what_cannot_be_read_is_told(verifying: Verifying, monkeypatch: pytest.MonkeyPatch) -> None:
    verifying.attested()
    (verifying.place / f"{WHEEL}.provenance").mkdir()
    assert verifying.verify(WHEEL) == 1
    assert f"FAILED {WHEEL}: {WHEEL}.provenance cannot be read: " in verifying.failures[0]
    monkeypatch.setattr(verify_files, "MAX_FILES", 1)
    assert verifying.verify(verifying.place) == 2
    assert "has more than 1 files; write the path of less" in verifying.error

    def denied(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(type(verifying.place), "iterdir", denied)
    assert verifying.verify(verifying.place) == 2
    assert "Permission denied; it has to be readable" in verifying.error


def test_digests_of_another_algorithm_say_nothing(verifying: Verifying) -> None:
    path = verifying.put(WHEEL)
    job = Job.from_token(verifying.sigstore.issuer.token("sigstore"), server=SERVER)
    subject = Subject(name=WHEEL, digests={"sha1": hashlib.sha1(CONTENT).hexdigest()})
    (bundle,) = signed(verifying.sigstore, [slsa([subject], job)])
    verifying.put(f"{WHEEL}.sigstore.json", bundle.text)
    assert verifying.verify(path) == 1
    assert verifying.failures == [
        f"FAILED {WHEEL}: what is signed has none of its digests by SHA-256 or SHA-512"
    ]


def test_each_digest_that_was_signed_has_to_fit(verifying: Verifying) -> None:
    path = verifying.put(WHEEL)
    job = Job.from_token(verifying.sigstore.issuer.token("sigstore"), server=SERVER)
    digests = {"sha256": hashlib.sha256(CONTENT).hexdigest(), "sha512": "0" * 128}
    (bundle,) = signed(verifying.sigstore, [slsa([Subject(name=WHEEL, digests=digests)], job)])
    verifying.put(f"{WHEEL}.sigstore.json", bundle.text)
    assert verifying.verify(path) == 1
    sha512 = hashlib.sha512(CONTENT).hexdigest()
    assert verifying.failures == [
        f"FAILED {WHEEL}: its sha512 is {sha512}, and {'0' * 128} was signed"
    ]


def test_more_attestations_than_any_release_has_are_refused(
    verifying: Verifying, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = verifying.attested()
    text = (verifying.place / f"{WHEEL}.sigstore.json").read_bytes()
    monkeypatch.setattr(verify_files, "MAX_BUNDLES", 1)
    verifying.put(f"{WHEEL}.sigstore.json", text + b"\n" + text)
    assert verifying.verify(path) == 1
    assert "has more than 1 attestations" in verifying.failures[0]


def test_attestations_may_be_named(verifying: Verifying, tmp_path: Path) -> None:
    """They stand for what lies beside the files."""
    for name in (WHEEL, SDIST):
        verifying.put(name)
        verifying.put(f"{name}.sigstore.json", b"broken")
    release = tmp_path / "elsewhere.jsonl"
    lines = [signed(verifying.sigstore, [about(CONTENT, name)])[0] for name in (WHEEL, SDIST)]
    release.write_bytes(b"\n".join(each.text for each in lines))
    assert verifying.verify(verifying.place, "--bundle", release) == 0
    assert verifying.verify(WHEEL, SDIST, "--bundle", release) == 0
    assert verifying.verify(WHEEL, "--bundle", release, repository="acme/other") == 1
    assert [line.split(":")[0] for line in verifying.failures] == [
        "FAILED elsewhere.jsonl",
        "FAILED elsewhere.jsonl",
        f"FAILED {WHEEL}",
    ]
    assert verifying.verify(WHEEL, "--bundle", "none.jsonl") == 2
    assert "none.jsonl is not there; write its path" in verifying.error
    release.write_bytes(lines[0].text + b"\ngarbage\n")
    assert verifying.verify(WHEEL, "--bundle", release) == 2
    assert "elsewhere.jsonl has a line that is not JSON: " in verifying.error
    release.write_bytes(b"[]")
    assert verifying.verify(WHEEL, "--bundle", release) == 2
    assert "is neither a bundle of Sigstore nor a provenance object" in verifying.error


@pytest.mark.parametrize(
    ("words", "repository", "says"),
    [
        (["x"], "", "--repository is missing: write --repository OWNER/NAME"),
        (["x"], "widgets", '--repository = "widgets" is not the name of a repository; write OWNER'),
        (["x"], "https://github.com/acme/widgets", "of a repository; write acme/widgets"),
        (["x"], "git+https://github.com/acme/widgets.git", "of a repository; write acme/widgets"),
        (["x"], "http://elsewhere.example/acme/widgets", "of a repository; write OWNER/NAME"),
        (["x", "--bundle", "x"], "acme/widgets", "x is not JSON: Expecting value"),
        ([], "acme/widgets", "there is nothing to verify: write releasekit verify PATH… or URL…"),
        (["x", "--workflow", "a/b"], "acme/widgets", "write its name, like release.yml"),
        (["x", "--ref", "main"], "acme/widgets", '"main" may be a branch or a tag: write refs/hea'),
        (["x", "--ref", "v1.2"], "acme/widgets", "refs/heads/v1.2 or refs/tags/v1.2"),
        (
            ["x", "--ref", "refs/heads/a b"],
            "acme/widgets",
            "is not the ref of a run: write one",
        ),
        (["x", "--event", "Push it"], "acme/widgets", "is not the event of a run: write its name"),
        (["none.whl"], "acme/widgets", "none.whl: No such file or directory; write the path of"),
        (["empty"], "acme/widgets", "empty: there is no file in it; write the path of what"),
        (["http://example.org/x.whl"], "acme/widgets", "must be https://"),
        (["https://example.org/x.txt"], "acme/widgets", "x.txt: is not the address of a wheel"),
        (["https://example.org/x/"], "acme/widgets", "x/: is not the address of a file; write"),
        (["x", "--fix"], "acme/widgets", "--fix works with check, not with verify"),
        (["x", "--ecosystem", "npm"], "acme/widgets", "not with verify"),
    ],
)
def test_a_mistake_is_named_in_one_line(
    verifying: Verifying, words: list[str], repository: str, says: str
) -> None:
    verifying.put("x")
    (verifying.place / "empty").mkdir()
    assert verifying.verify(*words, repository=repository) == 2
    (error,) = [line for line in verifying.error.splitlines() if line.startswith("error: ")]
    assert says in error


def test_it_minds_no_configuration_of_the_directory(verifying: Verifying) -> None:
    """It is that of somebody else's workspace, if any."""
    path = verifying.attested()
    verifying.put("releasekit.toml", b"broken = ")
    assert verifying.verify(path) == 0


def test_names_from_outside_are_shown_harmlessly(verifying: Verifying) -> None:
    """R33"""
    verifying.put("x\x1b[31m\n::error::.whl")
    assert verifying.verify(verifying.place) == 1
    (line,) = verifying.failures
    assert "\x1b" not in line
    assert not any(line.startswith("::") for line in verifying.lines)


class Served:
    """A registry that serves a file and what is attested about it."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes | int] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.url = ""


@pytest.fixture
def registry() -> Iterator[Served]:
    served = Served()

    class Files(Handler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            served.asked.append((self.path, headers))
            page = served.pages.get(self.path, 404)
            status, body = (200, page) if isinstance(page, bytes) else (page, b"no")
            self.send(status, body=b"" if status == 204 else body)

    with serving(Files) as served.url:
        yield served


def test_a_file_of_an_index_is_verified_by_its_provenance(
    verifying: Verifying, registry: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELEASEKIT_PYPI_TOKEN", "pypi-never-sent-anywhere")
    (bundle,) = signed(verifying.sigstore, [about(CONTENT)])
    registry.pages |= {
        f"/files/{WHEEL}": CONTENT,
        f"/files/{WHEEL}.provenance": json.dumps(provenance_object(bundle)).encode(),
    }
    assert verifying.verify(f"{registry.url}/files/{WHEEL}") == 0
    assert verifying.lines[0].startswith(f"ok {WHEEL} sha256:")
    assert not any("authorization" in headers for _, headers in registry.asked)
    registry.pages[f"/files/{WHEEL}"] = b"replaced"
    assert verifying.verify(f"{registry.url}/files/{WHEEL}") == 1
    assert "its sha256 is" in verifying.failures[0]
    registry.pages[f"/files/{WHEEL}.provenance"] = b"<html>"
    assert verifying.verify(f"{registry.url}/files/{WHEEL}") == 1
    assert f"the answer of {registry.url}/files/{WHEEL}.provenance " in verifying.failures[0]
    del registry.pages[f"/files/{WHEEL}.provenance"]
    assert verifying.verify(f"{registry.url}/files/{WHEEL}") == 1
    assert "there is no attestation about it at http://127.0.0.1" in verifying.failures[0]


def test_a_tarball_of_npm_is_verified_by_the_list_of_its_registry(
    verifying: Verifying, registry: Served
) -> None:
    job = Job.from_token(verifying.sigstore.issuer.token("sigstore"), server=SERVER)
    sha512 = {"sha512": hashlib.sha512(CONTENT).hexdigest()}
    subject = Subject(name="pkg:npm/%40acme/core@1.0.0", digests=sha512)
    (bundle,) = signed(verifying.sigstore, [slsa([subject], job)])
    url = f"{registry.url}/npm/@acme/core/-/{TARBALL}"
    registry.pages[f"/npm/@acme/core/-/{TARBALL}"] = CONTENT
    asked = "/npm/-/npm/v1/attestations/@acme%2fcore@1.0.0"
    registry.pages[asked] = json.dumps(npm_list(bundle)).encode()
    assert verifying.verify(url) == 0
    assert [path for path, _ in registry.asked] == [f"/npm/@acme/core/-/{TARBALL}", asked]
    registry.pages[f"/npm/@acme/core/-/{TARBALL}"] = b"replaced"
    assert verifying.verify(url) == 1
    assert f"its sha512 is {hashlib.sha512(b'replaced').hexdigest()}, and " in verifying.failures[0]


def test_any_file_that_is_served_is_verified_by_attestations_at_hand(
    verifying: Verifying, registry: Served
) -> None:
    """Crates and jars have none of their own on their registries."""
    bundle = verifying.put("provenance.jsonl", verifying.statement("tool-1.0.0.crate").text)
    registry.pages["/crates/tool-1.0.0.crate"] = CONTENT
    url = f"{registry.url}/crates/tool-1.0.0.crate"
    assert verifying.verify(url, "--bundle", bundle) == 0
    assert verifying.lines[0].startswith("ok tool-1.0.0.crate sha256:")
    assert verifying.verify(verifying.attested(), url) == 2
    assert "name those of the release with --bundle" in verifying.error
    assert verifying.lines == []


def test_a_file_that_is_not_served_is_a_failure(verifying: Verifying, registry: Served) -> None:
    registry.pages[f"/{WHEEL}"] = 204
    assert verifying.verify(f"{registry.url}/{WHEEL}") == 1
    assert "HTTP 204, and no file" in verifying.failures[0]
    del registry.pages[f"/{WHEEL}"]
    assert verifying.verify(f"{registry.url}/{WHEEL}") == 1
    assert "HTTP 404" in verifying.failures[0]
    assert verifying.lines[-2] == "0 of 1 verified"


@pytest.mark.parametrize(
    ("url", "attestations"),
    [
        (
            "https://files.pythonhosted.org/packages/aa/bb/cc/acme_core-1.0-py3-none-any.whl",
            "https://pypi.org/integrity/acme-core/1.0/acme_core-1.0-py3-none-any.whl/provenance",
        ),
        (
            "https://test-files.pythonhosted.org/packages/aa/acme.core-1.0.tar.gz#sha256=1",
            "https://test.pypi.org/integrity/acme-core/1.0/acme.core-1.0.tar.gz/provenance",
        ),
        (
            "https://index.example/pypi/acme-1.0.tar.gz?x=1",
            "https://index.example/pypi/acme-1.0.tar.gz.provenance",
        ),
        (
            "https://registry.npmjs.org/core/-/core-1.0.0-rc.1.tgz",
            "https://registry.npmjs.org/-/npm/v1/attestations/core@1.0.0-rc.1",
        ),
        (
            "https://example.org/npm/-/core/core-1.0.0.tgz",
            "https://example.org/npm/-/npm/v1/attestations/core@1.0.0",
        ),
        (
            "https://registry.npmjs.org/@acme%2fcore/-/core-1.0.0.tgz",
            "https://registry.npmjs.org/-/npm/v1/attestations/@acme%2fcore@1.0.0",
        ),
    ],
)
def test_each_registry_is_asked_in_its_own_way(url: str, attestations: str) -> None:
    assert str(find_attestations(httpx.URL(url)).attestations) == attestations


@pytest.mark.parametrize(
    "url",
    [
        "https://files.pythonhosted.org/packages/x.tar.gz",
        "https://files.pythonhosted.org/packages/x-1.whl",
        "https://registry.npmjs.org/core",
    ],
)
def test_an_address_of_no_package_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"; (?:write|name) "):
        find_attestations(httpx.URL(url))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is not JSON: Expecting value"),
        (b'{"attestations": []}\n{', "has a line that is not JSON: "),
        (b'{\n"a": 1', "is not JSON: "),
        (b"[]", "neither a bundle"),
        (b'{"attestation_bundles": []}', "has no attestation in it"),
        (b'{"attestation_bundles": [7]}', "neither a bundle"),
        (b'{"verification_material": {}}', "not of PEP 740's version 1"),
        (b'{"verificationMaterial": {}}', "cannot be read: mediaType is not there"),
        (b'{"attestations": [{"predicateType": "x", "bundle": {}}]}', "has no attestation in it"),
    ],
)
def test_what_holds_no_attestation_is_told(data: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_bundles(data)


def test_what_lies_in_a_static_registry_is_verified(verifying: Verifying, tmp_path: Path) -> None:
    """As ReleaseKit itself publishes into a directory, and any web server serves it."""
    www, sigstore = tmp_path / "www", verifying.sigstore
    www.mkdir()
    publish(sigstore, *python_package(tmp_path / "python"), www)
    publish(sigstore, *npm_package(tmp_path / "npm"), www)
    names = ("widgets-1.0.0-py3-none-any.whl", "widgets-1.0.0.tar.gz")
    assert verifying.verify(*(www / "files/widgets" / name for name in names)) == 0
    assert [line.split()[1] for line in verifying.lines[:-1]] == [*names]
    tarball = "-/@acme/core/acme-core-1.0.0.tgz"
    listed = www / "-/npm/v1/attestations/@acme/core@1.0.0"
    assert verifying.verify(www / tarball, "--bundle", listed) == 0
    assert verifying.verify(www / tarball) == 0
    assert verifying.verify(www / tarball, repository="acme/other") == 1
    with static_server(www) as origin:
        served = [f"{origin}/files/widgets/{name}" for name in names]
        assert verifying.verify(*served, f"{origin}/{tarball}") == 0
    assert verifying.lines[-1] == "3 of 3 verified"
    (www / tarball).write_bytes(b"replaced")
    assert verifying.verify(www / tarball) == 1
    assert "its sha512 is" in verifying.failures[0]
    listed.write_bytes(b"garbage")
    assert verifying.verify(www / tarball) == 1
    assert "core@1.0.0 is not JSON" in verifying.failures[0]


def test_only_what_says_where_a_file_comes_from_vouches_for_it(verifying: Verifying) -> None:
    """A workflow may sign other things too: that it has scanned the file of a stranger, say."""
    told = json.loads(about(CONTENT))
    scanned = canonical({**told, "predicateType": "https://in-toto.io/attestation/vulns/v0.1"})
    scan, origin = signed(verifying.sigstore, [scanned, about(CONTENT)])
    path = verifying.put(WHEEL)
    beside = verifying.put(f"{WHEEL}.sigstore.json", scan.text)
    assert verifying.verify(path) == 1
    assert verifying.failures == [
        (
            f"FAILED {WHEEL}: what is signed is https://in-toto.io/attestation/vulns/v0.1, which "
            "does not say where a file comes from"
        )
    ]
    beside.write_bytes(scan.text + b"\n" + origin.text + b"\n")
    assert verifying.verify(path) == 0


@pytest.mark.parametrize("package", ["%40acme/core", "@acme/core"])
def test_a_package_url_is_about_one_version_of_one_package(
    verifying: Verifying, package: str
) -> None:
    """An old version, under the name of a new one, is not what was signed as that."""
    (bundle,) = signed(verifying.sigstore, [about(CONTENT, f"pkg:npm/{package}@1.0.0")])
    codes = {}
    for name in ("core-1.0.0.tgz", "acme-core-1.0.0.tgz", "core-2.0.0.tgz", "web-1.0.0.tgz"):
        path = verifying.put(name)
        verifying.put(f"{name}.sigstore.json", bundle.text)
        codes[name] = verifying.verify(path)
    assert list(codes.values()) == [0, 0, 1, 1]
    assert f"what was signed is pkg:npm/{package}@1.0.0, not this file" in verifying.failures[0]


def test_what_lies_beside_no_file_is_a_file(verifying: Verifying) -> None:
    """Whatever its name ends in."""
    verifying.attested()
    hidden = ("install.provenance", f"{WHEEL}.sigstore.json.sigstore", ".sigstore")
    for name in hidden:
        verifying.put(name)
    assert verifying.verify(verifying.place) == 1
    assert verifying.failures == [
        f"FAILED {name}: there is no attestation about it" for name in sorted(hidden)
    ]


def test_a_link_that_leads_nowhere_is_named(verifying: Verifying) -> None:
    verifying.attested()
    (verifying.place / "loop").symlink_to("loop")
    assert verifying.verify(verifying.place) == 2
    assert re.search(r"loop: .*symbolic link.*; write the path of a file", verifying.error)
    (verifying.place / "loop").rename(verifying.place / "provenance.jsonl")
    assert verifying.verify(verifying.place) == 1
    assert verifying.failures == ["FAILED provenance.jsonl: it is a link to nothing"]


def test_a_name_may_leave_no_room_for_an_attestation_beside_it(verifying: Verifying) -> None:
    name = f"{'a' * 245}.whl"
    verifying.put(name)
    verifying.put("provenance.jsonl", verifying.statement(name).text)
    assert verifying.verify(verifying.place) == 0


@pytest.mark.parametrize(
    "path",
    ["x%0d%0aHost:evil/-/x%0d%0aHost:evil-1.tgz", "x%00-1-py3-none-any.whl", "%e2%80%ae.whl"],
)
def test_an_address_without_a_name_to_show_is_refused(verifying: Verifying, path: str) -> None:
    assert verifying.verify(f"https://127.0.0.1:1/{path}") == 2
    assert "has a control character in it; write the address of a file" in verifying.error


def test_what_is_asked_of_npm_is_about_the_file_that_was_named() -> None:
    address = find_attestations(httpx.URL("https://127.0.0.1/a/%40b/c%3fd%23/-/c%3fd%23-1.0.0.tgz"))
    assert address.attestations.raw_path == b"/a/-/npm/v1/attestations/@b%2fc%3Fd%23@1.0.0"
